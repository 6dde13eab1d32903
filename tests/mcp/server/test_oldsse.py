"""HTTP+SSE of the first version of the protocol, for clients that know nothing newer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client

from folkmoot.clock import SystemClock
from folkmoot.core.message import Notification
from folkmoot.core.strict import Limits
from folkmoot.mcp.server.http import OldSseFront
from tests.conftest import settings_of
from tests.mcp.server.played import (
    Events,
    Http,
    Played,
    Steps,
    held_up,
    initialize,
    served,
    text_of,
    until,
)
from tests.peers.clients import Ears


class Opened(NamedTuple):
    """An old front, what is behind it, and a stream that a client has open."""

    front: OldSseFront
    played: Played
    url: str
    http: httpx2.AsyncClient
    events: Events
    # Where the client sends its messages.
    place: str

    async def ask(self, method: str, path: str, *given: Any) -> httpx2.Response:
        return await Http(self.url + path, self.http).ask(method, *given)


@pytest.fixture
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    played = Played()
    front = OldSseFront(played.serve, SystemClock(), **settings_of(request))
    async with (
        front.running(),
        served({"/sse": front, "/messages": front}) as url,
        httpx2.AsyncClient(timeout=30) as http,
        Http(f"{url}/sse", http).stream("GET") as events,
    ):
        try:
            first = await events.next()
            assert first.event_type == "endpoint"
            await until(lambda: len(played.carriers) == 1)
            yield Opened(front, played, url, http, events, first.data.decode())
        finally:
            played.go_on.set()
            front.stop()


async def test_the_leaving_of_the_official_client_ends_its_conversation(opened):
    ears, steps = Ears(), Steps()
    async with (
        sse_client(f"{opened.url}/sse") as (read, write),
        ClientSession(read, write, message_handler=ears.hear) as session,
    ):
        await session.initialize()
        asked = {"steps": 3, "text": "done"}
        said = await session.call_tool("progress", asked, progress_callback=steps)
        assert (text_of(said), steps) == ("done", [0, 1, 2])
        await session.call_tool("log", {"text": "noted"})
        assert "noted" in str(await ears.until("notifications/message"))
        said_of = opened.played.got[-1].context.transport.metadata
        # Its query names the session, which is all it takes to use it.
        assert said_of.uri == "/messages"
    await until(lambda: opened.front.sessions == 1)
    assert opened.played.carriers[1].current_context().metadata is not None


async def test_two_clients_never_hear_each_other(opened):
    async with Http(f"{opened.url}/sse", opened.http).stream("GET") as other:
        assert (await other.next()).data.decode() != opened.place
        await until(lambda: len(opened.played.carriers) == 2)
        for number, carrier in enumerate(opened.played.carriers):
            await carrier.send(Notification(method="notifications/x", params={"n": number}))
        told = [(await events.message())[1]["params"]["n"] for events in (opened.events, other)]
        assert told == [0, 1]


@pytest.mark.settings(limits=Limits(message_bytes=1000), most=1)
async def test_what_cannot_be_served_is_refused(opened):
    place, big = opened.place, {**initialize(), "x": "x" * 2000}
    cases: list[tuple[str, str, Any, dict[str, str], int]] = [
        ("POST", "/messages", initialize(), {}, 400),
        ("POST", "/messages?session_id=00", initialize(), {}, 404),
        ("POST", place, b"nonsense", {}, 400),
        ("POST", place, big, {}, 413),
        ("POST", place, initialize(), {"content-type": "text/plain"}, 415),
        ("GET", "/sse", None, {"accept": "application/json"}, 406),
        ("GET", "/sse", None, {}, 503),
        ("DELETE", place, None, {}, 405),
        ("POST", place, initialize(), {}, 202),
    ]
    for method, where, message, headers, status in cases:
        answer = await opened.ask(method, where, message, headers)
        assert answer.status_code == status, (method, where, answer.text)
    assert (await opened.events.message())[1]["id"] == 0
    assert len(opened.played.got) == 1


@pytest.mark.parametrize("how", ["end", "stop"])
async def test_a_conversation_that_is_ended_from_inside_ends_its_stream(opened, how):
    if how == "end":
        opened.front.end("00")
        opened.front.end(opened.place.rpartition("=")[2])
    else:
        opened.front.stop()
    assert await opened.events.rest() == []
    assert (await opened.ask("POST", opened.place, initialize())).status_code == 404


async def test_a_client_that_does_not_read_has_the_server_wait(opened):
    said = Notification(method="notifications/x", params={"x": "x" * 100_000})
    await held_up(lambda: opened.played.carriers[0].send(said), opened.events)
