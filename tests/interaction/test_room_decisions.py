"""Proposals under attack: what is done is what was proposed, once, and by one who may."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.room_client import (
    Message,
    Seat,
    answer,
    fulfilment,
    message,
    proposal,
    square,
)
from tests.interaction.room_ways import both_ways, mouth

ARGUMENTS = {"rows": 3, "by": "hand", "at": [1, 2.5, None], "deep": {"a": True}}
ROUNDS = 15


def withdrawal(proposed: Message) -> Message:
    return message("mcpx.withdraw.proposal", correlation_id=[proposed["id"]])


def rejection(proposed: Message, reason: str = "not today") -> Message:
    return message("mcpx.reject.proposal", {"reason": reason}, correlation_id=[proposed["id"]])


def altered(proposed: Message, **changes: Any) -> Message:
    """A fulfilment with other arguments."""
    sent = fulfilment(proposed, "tools")
    params = sent["payload"]["params"]
    arguments = {**params["arguments"], **changes}
    return {**sent, "payload": {**sent["payload"], "params": {**params, "arguments": arguments}}}


async def both(one: Seat, first: Message, other: Seat, second: Message) -> list[str]:
    """What becomes of two messages that are sent at once: `ok`, or the code of the refusal."""
    await asyncio.gather(one.send(first), other.send(second))
    told = await asyncio.gather(one.outcome(first["id"]), other.outcome(second["id"]))
    return [it["payload"]["error"] if it["kind"] == "system.error" else "ok" for it in told]


@pytest.mark.requirement(
    "proposal.exact-arguments",
    "proposal.same-recipient",
    "proposal.not-own",
    "proposal.withdraw-own",
    "proposal.reject-others",
)
@both_ways
async def test_what_is_done_is_what_was_proposed_and_not_by_the_proposer(
    tmp_path: Path, way: str
) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "tools", "other")
        await there.room("ann", capabilities=["*"])
        async with (
            there.seat("ann") as ann,
            there.seat("bob") as bob,
            there.seat("tools") as tools,
            there.seat("other"),
        ):
            ann_by, bob_by = mouth(there, ann, way), mouth(there, bob, way)
            proposed = await bob_by.said(proposal("mow", ARGUMENTS, to=["tools"]))
            for changes in (
                {"rows": 4},
                {"rows": "3"},
                {"rows": 3.0},
                {"at": [1, 2.5]},
                {"at": [1.0, 2.5, None]},
                {"at": [2.5, 1, None]},
                {"deep": {"a": 1}},
                {"by": "Hand"},
                {"more": None},
            ):
                refusal = await ann_by.refused(altered(proposed, **changes))
                assert refusal["error"] == "proposal_altered", changes
            sent = fulfilment(proposed, "tools")
            meta = {**sent["payload"]["params"], "_meta": {"other": 1}}
            attempts = [
                (ann_by, fulfilment(proposed, "other"), "proposal_altered"),
                (
                    ann_by,
                    {**sent, "payload": {**sent["payload"], "params": meta}},
                    "proposal_altered",
                ),
                (bob_by, fulfilment(proposed, "tools"), "proposal_own"),
                (bob_by, rejection(proposed), "proposal_own"),
                (ann_by, withdrawal(proposed), "proposal_not_own"),
                (ann_by, rejection({"id": "nothing"}), "proposal_unknown"),
            ]
            for by, attempt, code in attempts:
                assert (await by.refused(attempt))["error"] == code, code
            asked = await ann_by.said(fulfilment(proposed, "tools"))
            for attempt in (fulfilment(proposed, "tools"), rejection(proposed)):
                closed = await ann_by.refused(attempt)
                assert (closed["error"], closed["state"]) == ("proposal_closed", "fulfilled")
            late = await bob_by.refused(withdrawal(proposed))
            assert late["error"] == "proposal_closed"
            done = await tools.said(answer(asked, to=["ann"]))
            assert done["to"] == ["ann", "bob"]


@pytest.mark.requirement("proposal.first-wins")
async def test_of_two_who_fulfil_at_once_the_first_in_the_rooms_order_wins(tmp_path: Path) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "cat", "tools")
        await there.room("ann", capabilities=["*"])
        async with (
            there.seat("ann") as ann,
            there.seat("bob") as bob,
            there.seat("cat") as cat,
            there.seat("tools"),
        ):
            for _ in range(ROUNDS):
                proposed = await bob.said(proposal())
                first, second = (fulfilment(proposed, "tools") for _ in range(2))
                ends = await both(ann, first, cat, second)
                assert sorted(ends) == ["ok", "proposal_closed"]
            history = await there.history("ann")
            done = Counter(
                one["correlation_id"][0] for one in history if one["kind"].startswith("mcp.request")
            )
            assert len(done) == ROUNDS
            assert set(done.values()) == {1}


@pytest.mark.requirement("proposal.states", "proposal.withdraw-own")
async def test_a_race_with_a_withdrawal_or_a_rejection_has_one_winner(tmp_path: Path) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "cat", "tools")
        await there.room("ann", capabilities=["*"])
        async with (
            there.seat("ann") as ann,
            there.seat("bob") as bob,
            there.seat("cat") as cat,
            there.seat("tools"),
        ):
            states = Counter[str]()
            for round_ in range(ROUNDS):
                proposed = await bob.said(proposal())
                does = fulfilment(proposed, "tools")
                rival, stops = (
                    (bob, withdrawal(proposed)) if round_ % 2 else (cat, rejection(proposed))
                )
                # Each is sent first half of the time.
                pair = (ann, does, rival, stops), (rival, stops, ann, does)
                ends = await both(*pair[round_ % 4 < 2])
                assert sorted(ends) == ["ok", "proposal_closed"]
                found = await there.rest("ann", "GET", "/plaza/proposals?limit=1")
                (view,) = found.json()["proposals"]
                assert view["id"] == proposed["id"]
                states[view["state"]] += 1
            kinds = Counter(one["kind"] for one in await there.history("ann"))
            assert states["fulfilled"] == kinds["mcp.request.tools/call"]
            assert states["withdrawn"] == kinds["mcpx.withdraw.proposal"]
            assert states["rejected"] == kinds["mcpx.reject.proposal"]
            assert states.total() == ROUNDS


@pytest.mark.requirement("proposal.quorum")
async def test_a_quorum_is_of_different_participants_whatever_their_connections(
    tmp_path: Path,
) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "cat")
        await there.room("ann", capabilities=["*"], policy={"quorum": 2})
        async with (
            there.seat("ann") as ann,
            there.seat("bob") as bob,
            there.seat("cat") as phone,
            there.seat("cat") as desk,
        ):
            proposed = await bob.said(proposal())
            await phone.said(rejection(proposed))
            for by in (desk, mouth(there, phone, "rest")):
                assert (await by.refused(rejection(proposed)))["error"] == "rejected_already"
            await ann.said(rejection(proposed))
            assert (await desk.refused(rejection(proposed)))["error"] == "proposal_closed"
