"""What clients are told of by themselves: lists that changed, and resources they watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from folkmoot.transports.mcp import backend_changes
from tests.faults.backends import operator
from tests.mcp_harness import Meeting, meeting, until
from tests.transports.mcp.gateway_support import (
    Demo,
    Wire,
    echo,
    fronted,
    session_stream,
    settle,
    stateless,
    wired,
)

TOOLS, PROMPTS, RESOURCES = (
    f"notifications/{each}/list_changed" for each in ("tools", "prompts", "resources")
)
UPDATED = "notifications/resources/updated"
NOTE = "demo://notes//a"
LISTED: dict[str, Any] = {"resources": ({"uri": "notes://a", "name": "a"},)}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are told of sooner than people would want it."""
    monkeypatch.setattr(backend_changes, "WATCH_DELAY_SECONDS", 0.05)


@pytest.fixture
def backend() -> Demo:
    demo = Demo()
    demo.listed = LISTED
    return demo


class Heard:
    """What someone is told on a stream."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []

    async def take(self, events: AsyncIterator[Any]) -> None:
        async for event in events:
            if "method" in event:
                self.all.append((event["method"], event.get("params", {}).get("uri", "")))

    async def until(self, *expected: tuple[str, str] | str) -> None:
        """Wait for exactly this, in any order."""
        wanted = sorted(each if isinstance(each, tuple) else (each, "") for each in expected)
        await until(lambda: len(self.all) >= len(wanted))
        assert sorted(self.all) == wanted
        self.all.clear()


@asynccontextmanager
async def heard_on(events: AsyncIterator[Any]) -> AsyncIterator[Heard]:
    """What is told from now on."""
    heard = Heard()
    taking = asyncio.ensure_future(heard.take(events))
    try:
        yield heard
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)


@asynccontextmanager
async def hearing(wire: Wire) -> AsyncIterator[Heard]:
    """The stream of a session that answers nothing."""
    async with session_stream(wire) as events, heard_on(events) as heard:
        yield heard


@asynccontextmanager
async def listening(wire: Wire, **wanted: Any) -> AsyncIterator[tuple[Heard, Any]]:
    """A stream of the stateless era, and what was said of it."""
    message = wire.message("subscriptions/listen", {"notifications": wanted}, 1, None)
    async with wire.streamed(message) as events:
        acknowledged = await anext(events)
        async with heard_on(events) as heard:
            yield heard, acknowledged["params"]


async def change(there: Meeting, demo: Demo) -> None:
    """The backend has another tool, twice over."""
    for number in range(2):
        demo.tools[f"new_{len(demo.tools)}_{number}"] = echo
        await there.hub.behind.gateway.arrived("demo", demo.inventory())


async def test_sessions_are_told_that_a_list_changed_once_and_only_that_list(
    hub, backend, ann, bob
):
    wire, bobs, stranger = [await wired(hub, who) for who in (ann, bob, "")]
    deaf = await wired(hub, ann)
    await quiet(hub)
    async with hearing(wire) as anns, hearing(bobs) as heard, hearing(stranger) as nothing:
        await change(hub, backend)
        await anns.until(TOOLS)
        await heard.until(TOOLS)
        # What changes someone's rights changes their lists, and nothing else does.
        granted = ("mcp.request.tools/call:nothing:*",)
        await ann.call("msg_set_profile", bio="Not a right of mine.")
        await settle(hub, everyone=True, ann=granted)
        await anns.until(TOOLS, PROMPTS, RESOURCES)
        hub.hub.behind.gateway.lost("demo", "It is away.")
        await anns.until(TOOLS, RESOURCES)
        await heard.until(TOOLS, RESOURCES)
        assert nothing.all == []
    assert deaf.session in hub.hub.mcp._parts.subscribers._sessions
    await deaf.end()
    assert deaf.session not in hub.hub.mcp._parts.subscribers._sessions


async def test_a_session_in_which_someone_registers_is_told_that_its_lists_are_theirs_now(
    hub, backend
):
    wire = await wired(hub, "")
    await quiet(hub)
    async with hearing(wire) as heard:
        register = {"name": "msg_register", "arguments": {"handle": "ann"}}
        assert (await wire.ask("tools/call", register))["result"]["isError"] is False
        await heard.until(TOOLS, PROMPTS, RESOURCES)
        tools = (await wire.ask("tools/list"))["result"]["tools"]
        assert "demo_echo" in [tool["name"] for tool in tools]
        await change(hub, backend)
        await heard.until(TOOLS)


async def quiet(there: Meeting) -> None:
    """Wait until what happened before is told."""
    await until(lambda: there.hub.mcp._parts._changes._timer is None)


async def all_told(there: Meeting, wire: Wire) -> None:
    """Wait until a session has been told what there was to tell."""
    subscriber = there.hub.mcp._parts.subscribers._sessions[wire.session]
    await until(lambda: not subscriber.telling)


@stateless
async def test_streams_are_told_of_the_lists_they_asked_for(hub, backend, ann, bob):
    wire, bobs, stranger = [await wired(hub, who) for who in (ann, bob, "")]
    await quiet(hub)
    async with (
        listening(wire, toolsListChanged=True) as (anns, agreed),
        listening(bobs, resourcesListChanged=True, promptsListChanged=True) as (heard, _),
        listening(stranger, toolsListChanged=True) as (nothing, _),
    ):
        assert agreed["notifications"] == {"toolsListChanged": True}
        assert "folkmoot/refused" not in agreed["_meta"]
        await change(hub, backend)
        await anns.until(TOOLS)
        hub.hub.behind.gateway.lost("demo", "It is away.")
        await anns.until(TOOLS)
        await heard.until(RESOURCES)
        assert nothing.all == []
    streams = hub.hub.mcp._parts.subscribers._streams
    await until(lambda: not streams)


@stateless
async def test_a_list_that_was_read_between_a_grant_and_its_end_is_told_to_be_out_of_date(
    hub, monkeypatch
):
    [ann] = await hub.people("ann")
    await settle(hub)
    wire = await wired(hub, ann)
    await quiet(hub)

    async def shown() -> bool:
        tools = (await wire.ask("tools/list"))["result"]["tools"]
        return "demo_echo" in [tool["name"] for tool in tools]

    monkeypatch.setattr(backend_changes, "WATCH_DELAY_SECONDS", 60)
    async with listening(wire, toolsListChanged=True) as (heard, _):
        right = {"handle": "ann", "patterns": ["mcp.request.tools/call:demo:*"]}
        await operator(hub.hub, "folkmoot/grant", **right)
        assert await shown()
        await operator(hub.hub, "folkmoot/revoke", **right)
        assert not await shown()
        changes = hub.hub.mcp._parts._changes
        changes._timer.cancel()
        changes._notify()
        # Her rights are what they were; her list is not.
        await heard.until(TOOLS)


async def test_a_watched_resource_is_told_of_to_whoever_watches_it(hub, backend, bob, wire, bobs):
    also = await wired(hub, bob, "stateless")
    named = [NOTE, "demo://notes//still", "no://where"]
    async with (
        hearing(wire) as anns,
        hearing(bobs) as heard,
        listening(also, resourceSubscriptions=named) as (streamed, agreed),
    ):
        assert agreed["notifications"] == {"resourceSubscriptions": [NOTE]}
        reasons = agreed["_meta"]["folkmoot/refused"]
        assert "no changes" in reasons["demo://notes//still"]["message"]
        assert reasons["no://where"]["message"] == "Resource not found"
        for _ in range(2):
            told = await wire.ask("resources/subscribe", {"uri": NOTE})
            assert told["result"] == {}
        # A backend is asked once for each who watches, however often they say so.
        assert [len(each) for each in backend.watched.values()] == [2]
        for _ in range(3):
            backend.change("notes://a")
        await anns.until((UPDATED, NOTE))
        await streamed.until((UPDATED, NOTE))
        assert heard.all == []
        still = await wire.ask("resources/subscribe", {"uri": "demo://notes//still"})
        assert "no changes" in still["error"]["message"]
        await wire.ask("resources/unsubscribe", {"uri": NOTE})
        backend.change("notes://a")
        await streamed.until((UPDATED, NOTE))
        assert anns.all == []
    await until(lambda: not backend.watched)
    assert len(hub.hub.mcp._parts._watches or ()) == 0


@pytest.mark.requirement("gateway.rights-by-effective-kind")
@pytest.mark.settings(everyone=False)
async def test_nobody_watches_what_they_may_not_and_rights_are_asked_again_each_time(
    hub, backend, ann, bob
):
    granted = ("mcp.request.resources/*:demo://*",)
    await settle(hub, ann=granted)
    wire, bobs, stranger = [await wired(hub, who) for who in (ann, bob, "")]
    also = await wired(hub, bob, "stateless")
    for who, code in ((bobs, "capability_denied"), (stranger, "authentication_required")):
        told = await who.ask("resources/subscribe", {"uri": NOTE})
        assert told["error"]["data"]["code"] == code
    for uri in ("demo://notes//x/../a", "nothing://a", "Demo://notes//a"):
        assert "error" in await wire.ask("resources/subscribe", {"uri": uri})
    async with listening(also, resourceSubscriptions=[NOTE]) as (_, agreed):
        assert agreed["notifications"] == {}
        assert agreed["_meta"]["folkmoot/refused"][NOTE]["code"]
    assert backend.watched == {}
    await quiet(hub)
    async with hearing(wire) as heard:
        await wire.ask("resources/subscribe", {"uri": NOTE})
        backend.change("notes://a")
        await heard.until((UPDATED, NOTE))
        await settle(hub, bob=granted)
        await heard.until(TOOLS, PROMPTS, RESOURCES)
        backend.change("notes://a")
        await all_told(hub, wire)
        await settle(hub, ann=granted)
        await heard.until(TOOLS, PROMPTS, RESOURCES)
        backend.change("notes://a")
        await heard.until((UPDATED, NOTE))
        await hub.hub.accounts.recover("ann", ann.recovery_code)
        backend.change("notes://a")
        await change(hub, backend)
        await quiet(hub)
        await all_told(hub, wire)
        assert heard.all == []


async def test_a_session_watches_so_many_resources_and_a_new_backend_is_asked_anew(
    hub, backend, wire, monkeypatch
):
    monkeypatch.setattr(backend_changes, "MAX_RESOURCES_WATCHED", 2)
    for name in "ab":
        told = await wire.ask("resources/subscribe", {"uri": f"demo://notes//{name}"})
        assert "result" in told
    refused = await wire.ask("resources/subscribe", {"uri": "demo://notes//c"})
    assert refused["error"]["data"]["code"] == "too_many_in_flight"
    await quiet(hub)
    async with hearing(wire) as heard:
        other = Demo(another=echo)
        hub.hub.behind.gateway.attach(other)
        await hub.hub.behind.gateway.arrived("demo", other.inventory())
        # Whatever happened in between went unheard, so it is told as if it had.
        await heard.until(TOOLS, RESOURCES, (UPDATED, NOTE), (UPDATED, "demo://notes//b"))
        assert backend.watched == {}
        other.change("notes://b")
        await heard.until((UPDATED, "demo://notes//b"))
    await wire.end()
    assert other.watched == {}


async def test_a_session_watches_again_after_a_restart_once_the_backend_is_there(tmp_path, backend):
    async with fronted(tmp_path, "handshake", Demo()) as there:
        made = await there.hub.accounts.register("ann")
        wire = await wired(there, made.token)
        assert (await wire.ask("resources/subscribe", {"uri": NOTE}))["result"] == {}
    async with meeting(tmp_path) as there:
        again = Wire(there, made.token, wire.session)
        there._people.append(again)  # type: ignore[arg-type] - it leaves like everyone
        async with hearing(again) as heard:
            gateway = there.hub.behind.gateway
            gateway.attach(backend)
            # First: what may not be watched when it arrives is tried again only when lists change.
            await settle(there, everyone=True)
            await gateway.arrived("demo", backend.inventory())
            await until(lambda: backend.watched)
            backend.change("notes://a")
            await until(lambda: (UPDATED, NOTE) in heard.all)
            assert there.hub.mcp._parts._resources.resubscriptions._pending == {}
