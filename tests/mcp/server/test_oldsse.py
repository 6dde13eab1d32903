"""HTTP+SSE of the first version of the protocol, for clients that know nothing newer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client

from folkmoot.clock import SystemClock
from folkmoot.core.message import Notification
from folkmoot.core.strict import Limits
from folkmoot.core.transport import HttpMetadata
from folkmoot.mcp.server.http import OldSseFront
from tests.mcp.server.played import Http, Played, initialize, served, until


@asynccontextmanager
async def fronted(**options: Any) -> AsyncIterator[tuple[OldSseFront, Played, str]]:
    played = Played()
    front = OldSseFront(played.serve, SystemClock(), **options)
    async with front.running(), served({"/sse": front, "/messages": front}) as url:
        try:
            yield front, played, url
        finally:
            played.go_on.set()
            front.stop()


async def test_the_official_client_calls_and_hears_and_its_leaving_ends_the_conversation() -> None:
    async with fronted() as (front, played, url):
        heard: list[Any] = []
        steps: list[float] = []

        async def hear(message: Any) -> None:
            heard.append(message)

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        async with (
            sse_client(f"{url}/sse") as (read, write),
            ClientSession(read, write, message_handler=hear) as session,
        ):
            await session.initialize()
            said = await session.call_tool(
                "progress", {"steps": 3, "text": "done"}, progress_callback=progressed
            )
            assert said.content[0].text == "done"  # type: ignore[union-attr]
            assert steps == [0, 1, 2]
            await session.call_tool("log", {"text": "noted"})
            await until(lambda: any("noted" in repr(each) for each in heard))
            said_of = played.got[-1].context.transport.metadata
            assert isinstance(said_of, HttpMetadata)
            # Its query names the session, which is all it takes to use it.
            assert said_of.uri == "/messages"
        await until(lambda: front.sessions == 0)
        assert played.carriers[0].current_context().metadata is not None


async def test_two_clients_never_hear_each_other() -> None:
    async with (
        fronted() as (_, played, url),
        httpx2.AsyncClient(timeout=30) as http,
        Http(f"{url}/sse", http).stream("GET") as one,
        Http(f"{url}/sse", http).stream("GET") as two,
    ):
        places = [(await events.next()).data.decode() for events in (one, two)]
        assert len(set(places)) == 2
        await until(lambda: len(played.carriers) == 2)
        for number, carrier in enumerate(played.carriers):
            said = Notification(method="notifications/x", params={"n": number})
            await carrier.send(said)
        told = [(await events.message())[1]["params"]["n"] for events in (one, two)]
        assert told == [0, 1]


async def test_what_cannot_be_served_is_refused() -> None:
    async with (
        fronted(limits=Limits(message_bytes=1000), most=1) as (_, played, url),
        httpx2.AsyncClient(timeout=30) as http,
        Http(f"{url}/sse", http).stream("GET") as events,
    ):
        first = await events.next()
        assert first.event_type == "endpoint"
        place = url + first.data.decode()
        big = {**initialize(), "x": "x" * 2000}
        cases: list[tuple[str, str, Any, dict[str, str], int]] = [
            ("POST", f"{url}/messages", initialize(), {}, 400),
            ("POST", f"{url}/messages?session_id=00", initialize(), {}, 404),
            ("POST", place, b"nonsense", {}, 400),
            ("POST", place, big, {}, 413),
            ("POST", place, initialize(), {"content-type": "text/plain"}, 415),
            ("GET", f"{url}/sse", None, {"accept": "application/json"}, 406),
            ("GET", f"{url}/sse", None, {}, 503),
            ("DELETE", place, None, {}, 405),
            ("POST", place, initialize(), {}, 202),
        ]
        for method, where, message, headers, status in cases:
            answer = await Http(where, http).ask(method, message, headers)
            assert answer.status_code == status, (method, where, answer.text)
        assert (await events.message())[1]["id"] == 0
        assert len(played.got) == 1


@pytest.mark.parametrize("how", ["end", "stop"])
async def test_a_conversation_that_is_ended_from_inside_ends_its_stream(how: str) -> None:
    async with (
        fronted() as (front, played, url),
        httpx2.AsyncClient(timeout=30) as http,
        Http(f"{url}/sse", http).stream("GET") as events,
    ):
        place = (await events.next()).data.decode()
        await until(lambda: len(played.carriers) == 1)
        if how == "end":
            front.end("00")
            front.end(place.rpartition("=")[2])
        else:
            front.stop()
        assert await events.rest() == []
        answer = await Http(url + place, http).ask("POST", initialize())
        assert answer.status_code == 404


async def test_a_client_that_does_not_read_has_the_server_wait() -> None:
    async with (
        fronted() as (_, played, url),
        httpx2.AsyncClient(timeout=30) as http,
        Http(f"{url}/sse", http).stream("GET") as events,
    ):
        await events.next()
        await until(lambda: len(played.carriers) == 1)
        sent = 0

        async def flood() -> None:
            nonlocal sent
            for _ in range(150):
                said = Notification(method="notifications/x", params={"x": "x" * 100_000})
                await played.carriers[0].send(said)
                sent += 1

        flooding = asyncio.ensure_future(flood())
        before = -1
        while before != sent or not sent:
            before = sent
            await asyncio.sleep(0.05)
        assert sent < 150
        for _ in range(150):
            await events.message()
        await flooding
