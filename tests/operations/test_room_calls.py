"""Listing and calling the tools of participants, and answering as one, through the rooms' tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from folkmoot.rooms import visitor_of
from tests.operations.test_room_tools import LONG, Office, Someone

TIDES = {
    "name": "high_water",
    "description": "When the tide is highest.",
    "inputSchema": {"type": "object", "properties": {"harbour": {"type": "string"}}},
}


@asynccontextmanager
async def offering(
    who: Someone, *tools: dict[str, Any], failing: bool = False
) -> AsyncIterator[None]:
    """Someone whose connection serves, and who answers with the rooms' own tools."""
    joined = await who.call("room/join")
    here = who.office.here
    ear, live = await here.join(visitor_of(who.account), serve=True)

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
        if message["payload"]["method"] == "tools/list":
            await who.call("room/respond", **request, result={"tools": list(tools)})
        elif failing:
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
    requests = await ann.messages(kinds=["request"])
    for request in requests:
        given = {"request": request["id"], "text": "late"}
        assert await tides.denied("room/respond", **given) == "request_not_open"

    async with offering(tides, TIDES), offering(tides2, TIDES, failing=True):
        for tool, sentence in (
            ("high_water", "Give in to whose high_water to call: tides, tides2."),
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
async def test_one_who_joined_by_tool_is_asked_for_tools_only_by_name(office):
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
