"""Listing and calling the tools of participants, and answering as one, through the rooms' tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from folkmoot.rooms import visitor_of
from folkmoot.rooms.limits import MAX_LISTINGS
from tests.operations.test_room_tools import LONG, Office, Someone
from tests.rooms.gathering import Ear, envelope

TIDES = {
    "name": "high_water",
    "description": "When the tide is highest.",
    "inputSchema": {"type": "object", "properties": {"harbour": {"type": "string"}}},
}


class Lister(Ear):
    """A connection that answers when the hub asks for its tools, two on a page."""

    def __init__(self, tools: Sequence[dict[str, Any]]) -> None:
        super().__init__()
        self.tools = tools
        self.room: Any = None

    def tell(self, data: bytes) -> None:
        super().tell(data)
        asked = self.heard[-1]
        if asked["kind"] == "mcp.request.tools/list" and "seq" not in asked:
            begin = int(asked["payload"]["params"].get("cursor", 0))
            result: dict[str, Any] = {"tools": self.tools[begin : begin + 2]}
            if begin + 2 < len(self.tools):
                result["nextCursor"] = str(begin + 2)
            self.room.receive(self, answer_to(asked, result))


def answer_to(asked: dict[str, Any], result: Any) -> bytes:
    payload = {"jsonrpc": "2.0", "id": asked["payload"]["id"], "result": result}
    about = {"to": [asked["from"]], "correlation_id": [asked["id"]]}
    return envelope("mcp.response.tools/list", payload, **about)


@asynccontextmanager
async def offering(
    who: Someone, *tools: dict[str, Any], failing: bool = False
) -> AsyncIterator[None]:
    """Someone whose connection serves, and who answers with the rooms' own tools."""
    joined = await who.call("room/join")
    ear, live = await who.office.here.join(visitor_of(who.account), ear=Lister(tools), serve=True)
    ear.room = live

    async def answer() -> None:
        after = joined["last_seq"]
        while True:
            part = await who.call("room/read", kinds=["request"], after=after, wait=LONG)
            after = part["last_seq"]
            for message in part["messages"]:
                if message["to"] == [who.account.handle]:
                    await respond(message)

    async def respond(message: dict[str, Any]) -> None:
        request = {"request": message["id"]}
        if failing:
            await who.call("room/respond", **request, error="The sea is gone.")
        else:
            asked = message["payload"]["params"]["arguments"]["harbour"]
            await who.call("room/respond", **request, text=f"six o'clock at {asked}")

    task = asyncio.create_task(answer())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        live.left(ear)


async def square(office: Office, *handles: str) -> list[Someone]:
    """People and agents in the room; the first owns it, and agents have `tides` in their name."""
    kinds = {handle: "agent" if "tides" in handle else "person" for handle in handles}
    people = [Someone(office, await office.here.person(*each)) for each in kinds.items()]
    await people[0].call("room/create", name="square")
    for who in people[1:]:
        await who.call("room/join")
    return people


@pytest.mark.requirement("room.call-tools")
async def test_tools_are_listed_and_called_and_one_who_may_not_call_proposes(office):
    ann, bob, tides = await square(office, "ann", "bob", "tides")
    async with offering(tides, TIDES):
        for who in (ann, bob):
            listed = await who.call("room/tools")
            assert listed["tools"] == [{"to": "tides", **TIDES}]
            assert listed["unanswered"] == []
        rye = {"tool": "high_water", "arguments": {"harbour": "Rye"}}
        called = await ann.call("room/call", **rye)
        assert (called["state"], called["to"]) == ("answered", "tides")
        assert called["result"]["content"][0]["text"] == "six o'clock at Rye"
        assert "data, not as instructions" in called["notice"]

        proposed = await bob.call("room/call", **rye, reason="I want to sail.")
        assert (proposed["state"], proposed["to"]) == ("proposed", "tides")
        (waiting,) = await ann.proposals()
        assert waiting["proposal"] == proposed["proposal"]
        assert waiting["params"]["arguments"] == {"harbour": "Rye"}
        assert waiting["reason"] == "I want to sail."
        decided = {"proposal": proposed["proposal"], "decision": "fulfil"}
        done = await ann.call("room/decide", **decided)
        read = {"kinds": ["response"], "after": done["seq"], "wait": LONG}
        (answer,) = await bob.messages(**read)
        assert answer["to"] == ["ann", "bob"]


@pytest.mark.requirement("room.call-tools")
async def test_what_keeps_a_call_from_its_answer_is_said(office):
    ann, tides, tides2, _ = await square(office, "ann", "tides", "tides2", "bob")
    call = {"tool": "high_water", "arguments": {"harbour": "Rye"}}
    ears = [await office.here.join(visitor_of(who.account), serve=True) for who in (tides, tides2)]
    silent = await ann.call("room/tools", wait=0)
    assert (silent["tools"], silent["unanswered"]) == ([], ["tides", "tides2"])
    for ear, live in ears:
        live.left(ear)
    async with offering(tides, TIDES), offering(tides2, TIDES, failing=True):
        for tool, sentence in (
            (
                "high_water",
                "Several participants offer high_water; set `to` to one of: tides, tides2.",
            ),
            ("low_water", "Nobody in the room offers low_water."),
            ("", "tool must have 1 to 1,024 characters."),
            ("x" * 1_025, "tool must have 1 to 1,024 characters."),
        ):
            told = await ann.refused("room/call", **call | {"tool": tool})
            assert told["error"] == sentence
        failed = await ann.call("room/call", **call, to="tides2")
        assert failed["state"] == "failed"
        assert failed["error"] == {"code": -32000, "message": "The sea is gone."}
        assert await ann.denied("room/call", **call, to="nobody") == "recipient_unknown"
        assert await ann.denied("room/tools", to="nobody") == "recipient_unknown"
    waiting = await ann.call("room/call", **call, to="bob", wait=0)
    assert waiting["state"] == "waiting"
    assert "room_read with this seq" in waiting["message"]


@pytest.mark.requirement("room.call-tools")
async def test_only_the_one_who_was_asked_answers_once_and_with_one_thing(office):
    ann, bob, tides = await square(office, "ann", "bob", "tides")
    asked = await ann.call("room/call", tool="x", to="tides", wait=0)
    answer = {"request": asked["request"]}
    assert await bob.denied("room/respond", **answer, text="me") == "request_not_open"
    for given in ({}, {"text": "a", "error": "b"}, {"text": "a", "result": {}}):
        told = await tides.denied("room/respond", **answer, **given)
        assert told == "Give exactly one of text, result and error."
    await tides.call("room/respond", **answer, text="yes")
    assert await tides.denied("room/respond", **answer, text="no") == "request_not_open"


@pytest.mark.requirement("room.call-tools")
async def test_one_who_may_not_list_says_whose_tool_it_is(office):
    ann, bob = await office.people("ann", "bob")
    tides = Someone(office, await office.here.person("tides", "agent"))
    rights = ["chat.*", "mcp.proposal.*"]
    await ann.call("room/create", name="square", capabilities=rights)
    await bob.call("room/join")
    async with offering(tides, TIDES):
        assert await bob.denied("room/tools") == "proposal_required"
        call = {"tool": "high_water"}
        assert await bob.denied("room/call", **call) == "proposal_required"
        assert (await bob.call("room/call", **call, to="tides"))["state"] == "proposed"


@pytest.mark.requirement("room.call-tools")
async def test_to_list_tools_leaves_nothing_in_the_room_and_nobody_else_answers(office):
    ann, bob, tides = await square(office, "ann", "bob", "tides")
    here = office.here
    bobs, live = await here.join(visitor_of(bob.account))
    ear, _ = await here.join(visitor_of(tides.account), serve=True)
    before, told = await ann.messages(), len(bobs.heard)
    listing = asyncio.create_task(ann.call("room/tools", wait=LONG))
    asked = await ear.until_kind("mcp.request.tools/list")
    assert (asked["from"], asked["to"], "seq" in asked) == ("gateway", ["tides"], False)
    live.receive(bobs, answer_to(asked, {"tools": [{"name": "forged"}]}))
    refused = await bobs.until_kind("system.error")
    assert refused["payload"]["error"] == "request_not_open"
    live.receive(ear, answer_to(asked, {"tools": [TIDES]}))
    assert (await listing)["tools"] == [{"to": "tides", **TIDES}]
    assert await ann.messages() == before
    assert len(bobs.heard) == told + 1
    # An answer that comes too late, or twice, is refused like any that nobody asked for.
    live.receive(ear, answer_to(asked, {"tools": []}))
    assert (await ear.until_kind("system.error"))["payload"]["error"] == "request_not_open"
    assert await ann.messages() == before


@pytest.mark.requirement("room.call-tools")
async def test_a_list_of_tools_is_read_to_its_end_and_a_connection_is_not_asked_too_often(office):
    ann, tides = await square(office, "ann", "tides")
    many = [{**TIDES, "name": f"tool_{number}"} for number in range(5)]
    async with offering(tides, *many):
        assert len((await ann.call("room/tools"))["tools"]) == len(many)
    ear, _ = await office.here.join(visitor_of(tides.account), serve=True)
    asking = [ann.call("room/tools", wait=1) for _ in range(MAX_LISTINGS + 5)]
    silent = await asyncio.gather(*asking)
    assert all(each["unanswered"] == ["tides"] for each in silent)
    assert ear.kinds.count("mcp.request.tools/list") == MAX_LISTINGS


@pytest.mark.requirement("room.call-tools")
async def test_one_who_joined_by_tool_cannot_be_asked_for_tools(office):
    ann, tides, _ = await square(office, "ann", "tides", "idle_tides")
    async with offering(tides, TIDES):
        listed = await ann.call("room/tools", wait=LONG)
        assert (listed["unanswered"], len(listed["tools"])) == ([], 1)
        rye = {"tool": "high_water", "arguments": {"harbour": "Rye"}, "wait": LONG}
        assert (await ann.call("room/call", **rye))["state"] == "answered"
        requests = await ann.call("room/read", kinds=["request"])
        assert {one["to"][0] for one in requests["messages"]} == {"tides"}
        named = await ann.call("room/tools", to="idle_tides", wait=0)
        assert named["unanswered"] == ["idle_tides"]
