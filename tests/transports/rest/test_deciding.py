"""Proposals are decided on over REST by their id, and the answer says what came of it."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from folkmoot.client import Room, ToolFailed
from folkmoot.rooms.model import Outcome
from folkmoot.rooms.proposals import answer_to
from tests.transports.rest.support import ROOMS, Asker, House, chat, done, refused

ROOM = "planning"


async def proposed(
    who: Asker, tool: str = "lamp", to: tuple[str, ...] = ("rob",), **members: Any
) -> str:
    """The id of a new proposal."""
    payload = {"method": "tools/call", "params": {"name": tool, "arguments": {"on": True}}}
    envelope = chat("", kind=f"mcp.proposal.tools/call:{tool}", to=to, payload=payload, **members)
    return str(done(await who.post(ROOM, envelope), 201)["id"])


def place(id_: str, step: str = "") -> str:
    return f"{ROOMS}/{ROOM}/proposals/{quote(id_, safe='')}" + (f"/{step}" if step else "")


def agent(here: House, rob: Asker) -> Room:
    room = Room(here.hub.base_url, room=ROOM, token=rob.token)

    @room.tool
    def lamp(on: bool) -> str:
        return "It is on." if on else "It is off."

    @room.tool
    def broken(on: bool) -> str:
        raise ToolFailed("It has no bulb.")

    return room


@pytest.mark.requirement("proposal.decided-by-id")
async def test_an_approval_needs_the_id_alone_and_is_answered_with_the_outcome(
    hub, ada, bob, rob, planning
):
    async with agent(hub, rob):
        id_ = await proposed(bob)
        shown = await ada.get(place(id_))
        assert (shown["id"], shown["state"]) == (id_, "open")
        outcome = done(await ada.ask("POST", place(id_, "approve")), 200)
        assert outcome["result"]["content"] == [{"type": "text", "text": "It is on."}]
        known = {"id": id_, "state": "fulfilled", "by": "ada", "to": "rob"}
        assert outcome == {**outcome, **known}
        page = await ada.read(ROOM, f"?after={outcome['seq'] - 1}&limit=1")
        assert page["messages"][0]["id"] == outcome["decision"]
        assert page["messages"][0]["correlation_id"] == [id_]
        assert (await bob.get(place(id_)))["closed_by"] == "ada"
        failing = await proposed(bob, tool="broken")
        outcome = done(await ada.ask("POST", place(failing, "approve")), 200)
        assert outcome["result"]["isError"]


@pytest.mark.requirement("proposal.decided-by-id", "proposal.first-wins")
async def test_one_of_many_approvals_at_once_is_carried_out(hub, ada, bob, rob, planning):
    async with agent(hub, rob):
        id_ = await proposed(bob)
        answers = await asyncio.gather(*(ada.ask("POST", place(id_, "approve")) for _ in range(4)))
        assert sorted(one.status for one in answers) == [200, 409, 409, 409]
        for answer in answers:
            if answer.status == 409:
                assert refused(answer, 409, "proposal_closed")["state"] == "fulfilled"


@pytest.mark.requirement("proposal.decided-by-id")
async def test_an_approval_says_so_when_no_answer_came_in_time(hub, ada, bob, rob, planning):
    async with Room(hub.hub.base_url, room=ROOM, token=rob.token):
        id_ = await proposed(bob)
        # An id that the hub made is found in capitals too.
        capitals = place(id_.upper(), "approve?wait=0")
        outcome = done(await ada.ask("POST", capitals), 200)
        assert outcome["state"] == "fulfilled"
        assert not {"result", "error"} & outcome.keys()
        rooms = hub.hub.rooms
        asked = msgspec.convert(outcome, Outcome)
        visitor = await rooms.authenticate(ada.token)
        assert await answer_to(rooms, visitor, ROOM, asked, 0.02) == asked


@pytest.mark.requirement("proposal.decided-by-id")
async def test_a_rejection_is_answered_with_where_the_proposal_stands(ada, bob, cyd):
    grants = {"cyd": ["mcpx.reject.proposal"]}
    await ada.create(ROOM, policy={"quorum": 2}, grants=grants)
    id_ = await proposed(bob, id="a/b c")
    assert id_ == "a/b c"
    for who, state, count in ((ada, "open", 1), (cyd, "rejected", 2)):
        outcome = await who.did("POST", place(id_, "reject"), {"reason": "No lamp."})
        known = {"state": state, "rejections": count, "by": who.handle, "reason": "No lamp."}
        assert outcome == {**outcome, **known}


@pytest.mark.requirement("proposal.decided-by-id")
async def test_what_cannot_be_decided_is_refused_with_the_reason(hub, ada, bob, rob, planning):
    id_ = await proposed(bob)
    anyone = await proposed(bob, to=())
    approve, reject = place(id_, "approve"), place(id_, "reject")
    refused(await ada.ask("POST", place("none", "approve")), 404, "proposal_unknown")
    refused(await ada.ask("GET", place("none")), 404, "proposal_unknown")
    refused(await bob.ask("POST", approve), 403, "proposal_required")
    refused(await rob.ask("POST", approve), 403, "proposal_required")
    refused(await ada.ask("POST", approve), 404, "recipient_unknown")
    answer = await ada.ask("POST", place(anyone, "approve"))
    assert refused(answer, 400, "argument_invalid")["field"] == "to"
    refused(await ada.ask("POST", f"{approve}?wait=56"), 400, "query_invalid")
    for body in ({}, {"reason": "x", "more": 1}, *({"reason": it} for it in ("", "  ", 1))):
        refused(await ada.ask("POST", reject, body), 400, "argument_invalid")
    refused(await ada.ask("POST", reject), 415, "media_type_unsupported")
    refused(await hub.stranger.ask("POST", approve), 401, "authentication_required")
    assert (await ada.get(place(id_)))["state"] == "open"
    done(await ada.ask("POST", reject, {"reason": "No lamp."}), 200)
    assert refused(await ada.ask("POST", approve), 409, "proposal_closed")["state"] == "rejected"


@pytest.mark.requirement("room.welcome-waiting")
async def test_what_waits_for_someone_is_listed_with_the_messages(hub, ada, bob, rob, planning):
    path = f"{ROOMS}/{ROOM}/waiting"
    nothing = {"requests": [], "proposals": [], "more": False}
    assert await ada.get(path) == nothing
    ids = [await proposed(bob) for _ in range(3)]
    async with Room(hub.hub.base_url, room=ROOM, token=rob.token) as room:
        waiting = await ada.get(path)
        assert [one["id"] for one in waiting["proposals"]] == ids
        assert waiting["proposals"][0]["message"]["id"] == ids[0]
        assert await bob.get(path) == nothing
        first = waiting["proposals"][0]["seq"]
        page = await ada.get(f"{path}?after={first}&limit=1")
        assert [one["id"] for one in page["proposals"]] == [ids[1]]
        assert page["more"]
        done(await ada.ask("POST", place(ids[0], "approve?wait=0")), 200)
        (request,) = (await rob.get(path))["requests"]
        known = {"requester": "ada", "state": "waiting", "proposer": "bob"}
        assert request == {**request, **known, "kind": "mcp.request.tools/call:lamp"}
        asked = request["message"]["payload"]["params"]
        assert asked == {"name": "lamp", "arguments": {"on": True}}
        assert [one.id for one in await room.list_waiting()] == [request["id"]]
        refused(await rob.ask("GET", f"{path}?after=-1"), 400, "query_invalid")
