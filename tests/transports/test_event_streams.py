"""Answers that go on, and rows for operators alone, as any row may have them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from msgspec import Struct
from starlette.applications import Starlette
from starlette.types import ASGIApp

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.operations import Absent, Arguments, Call, Operation, Route
from folkmoot.operations.call import EventStream, StreamEvent
from folkmoot.operations.routes import endpoints
from folkmoot.operations.row import says
from folkmoot.transports.address import Addresses
from folkmoot.transports.routes import Routes
from tests.harness import reached
from tests.mcp_harness import settings

EVENTS = "text/event-stream"


class Steps(Arguments, frozen=True, kw_only=True):
    steps: Annotated[int, says("How many.", ge=0, le=10)] = 2


class Step(Struct, frozen=True):
    done: int


class Climbed(Struct, frozen=True):
    steps: int


async def climb(call: Call[Steps]) -> Climbed:
    for number in range(call.arguments.steps):
        call.progress(Step(number + 1))
        await asyncio.sleep(0)
    if call.arguments.steps == 9:
        raise e.DiskFull("No room is left in /srv/secret.")
    if call.arguments.steps == 0:
        raise e.ArgumentInvalid("steps must be more than none.", field="steps")
    return Climbed(call.arguments.steps)


async def count(call: Call[Steps]) -> Any:
    async def source() -> AsyncIterator[StreamEvent]:
        for number in range(call.arguments.steps):
            yield StreamEvent(Step(number), "step", str(number))
        if call.arguments.steps == 10:
            await asyncio.Event().wait()

    return EventStream(source())


def row(name: str, handler: Callable[[Call[Steps]], Any], **more: Any) -> Operation:
    return Operation(
        name=f"room/{name}",
        description="A test.",
        takes=Steps,
        gives=Climbed,
        handler=handler,
        scope="rooms",
        tool=Absent("A test."),
        routes=(Route("GET", f"/v1/{name}", id=name),),
        commands=Absent("A test."),
        **more,
    )


ROWS = (
    row("climb", climb, progress=Step),
    row("count", count, events=Step),
)


class Bench:
    """A hub whose routes are those rows."""

    def __init__(self, routes: Routes, token: str) -> None:
        self.routes = routes
        self.token = token
        self.app: ASGIApp = Starlette(routes=routes.routes())

    async def get(self, path: str, *, accept: str = "*/*") -> httpx2.Response:
        headers = {"accept": accept, "authorization": f"Bearer {self.token}"}
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, headers=headers)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Hub(settings(tmp_path)).running() as running:
        routes = Routes(
            rooms=running.rooms,
            hub=running._operations,
            policy=running.behind.policy,
            dispatcher=running._dispatcher,
            hosts=running._hosts,
            addresses=Addresses(()),
            browsers=running._browsers,
            bus=running.bus,
            endpoints=tuple(endpoints(ROWS)),
        )
        yield Bench(routes, (await running.accounts.register("ada")).token)


async def test_a_long_call_tells_how_far_it_is_to_whoever_asks_for_events(hub):
    plain = await hub.get("/v1/climb")
    assert plain.json() == {"steps": 2}
    told = await hub.get("/v1/climb", accept=EVENTS)
    assert told.headers["content-type"] == EVENTS
    assert told.text == (
        'event: progress\ndata: {"done":1}\n\n'
        'event: progress\ndata: {"done":2}\n\n'
        'event: result\ndata: {"steps":2}\n\n'
    )


async def test_what_fails_before_any_progress_has_its_status_and_later_an_event(hub):
    early = await hub.get("/v1/climb?steps=0", accept=EVENTS)
    assert (early.status_code, early.json()["error"]["code"]) == (400, "argument_invalid")
    late = await hub.get("/v1/climb?steps=9", accept=EVENTS)
    assert late.status_code == 200
    assert late.text.count("event: progress") == 9
    *_, error = late.text.strip().split("\n\n")
    assert error.startswith('event: error\ndata: {"error":{"code":"disk_full"')
    assert "secret" not in error


async def test_an_answer_that_goes_on_is_sent_event_by_event(hub):
    told = await hub.get("/v1/count")
    assert told.headers["content-type"] == EVENTS
    assert told.text == (
        'id: 0\nevent: step\ndata: {"done":0}\n\nid: 1\nevent: step\ndata: {"done":1}\n\n'
    )


async def test_an_answer_that_goes_on_ends_when_the_hub_stops(hub):
    asked = asyncio.ensure_future(hub.get("/v1/count?steps=10"))
    await reached(lambda: bool(hub.routes._waiting._callers))
    hub.routes.stop()
    told = await asked
    assert told.text.count("event: step") <= 10
