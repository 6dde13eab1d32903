"""What happens in a room, in the same words for all who take part, whichever way they came."""

from __future__ import annotations

import asyncio

import pytest

from tests.interaction.room_client import (
    answer,
    chat,
    fulfilment,
    grant,
    message,
    proposal,
)
from tests.interaction.room_ways import Refused, about, every_way, line, taking_part

MOW = "mcp.request.tools/call:mow"


@pytest.mark.requirement("chat.rest-broadcast", "room.tools", "room.read-waits")
@every_way
async def test_what_is_said_in_any_way_is_heard_in_every_way_in_one_order(there, way):
    await there.people("ann", "bob")
    await there.room("ann")
    async with there.seat("ann") as ann, taking_part(there, "bob", way) as bob:
        for number in range(3):
            id_ = await bob.say(f"question {number}")
            told = await ann.until(lambda told, id_=id_: told["id"] == id_)
            assert told["from"] == "bob"
            await ann.said(chat(f"answer {number}"))
        last = await bob.follow((await ann.said(chat("that is all")))["id"])
        heard = [line(one) for one in ann.heard]
        # Ann was here before; presence is told to both.
        assert last == heard[-len(last) :]
        assert [one.sender for one in last] == ["gateway", *["bob", "ann"] * 3, "ann"]
        here = await there.rest("ann", "GET", "/plaza/participants")
        assert [one["id"] for one in here.json()["participants"]] == ["ann", "bob"]


@pytest.mark.requirement("proposal.response-to-both", "room.tools", "proposal.not-own")
@every_way
async def test_what_is_proposed_in_any_way_is_fulfilled_and_answered(there, way):
    await there.people("ann", "bob", "tools")
    await there.room("ann", grants={"bob": [MOW, "mcpx.reject.proposal"]})
    async with (
        there.seats("ann", "tools") as (ann, tools),
        taking_part(there, "bob", way) as bob,
    ):
        id_ = await bob.propose("mow", {"rows": 3})
        for step in (bob.fulfil(id_, "tools"), bob.reject(id_, "no")):
            with pytest.raises(Refused) as own:
                await step
            assert str(own.value) == "You can withdraw your own proposal, not decide on it."
        await ann.said(fulfilment(await ann.until(lambda told: told["id"] == id_), "tools"))
        asked = await tools.kind("mcp.request.tools/call")
        assert asked["payload"]["params"]["arguments"] == {"rows": 3}
        done = await tools.said(answer(asked))
        assert done["to"] == ["ann", "bob"]
        read = await bob.follow(done["id"])
        assert [one.sender for one in read[-3:]] == ["bob", "ann", "tools"]
        with pytest.raises(Refused) as closed:
            await bob.withdraw(id_)
        assert str(closed.value) == "The proposal is already fulfilled."
        withdrawn = await bob.propose("mow", {"rows": 4})
        await bob.withdraw(withdrawn)
        late = await ann.until(lambda told: told["id"] == withdrawn)
        refusal = await ann.refused(fulfilment(late, "tools"))
        assert (refusal["error"], refusal["state"]) == ("proposal_closed", "withdrawn")


@pytest.mark.requirement("proposal.first-wins", "room.tools")
@every_way
async def test_who_may_decide_does_so_in_any_way_and_for_as_long_as_they_may(there, way):
    await there.people("ann", "bob", "cat", "tools")
    await there.room("ann", policy={"quorum": 2})
    async with (
        there.seats("ann", "cat", "tools") as (ann, cat, tools),
        taking_part(there, "bob", way) as bob,
    ):
        ids = [(await cat.said(proposal(arguments={"row": n})))["id"] for n in range(4)]

        async def sentence(id_: str) -> str:
            with pytest.raises(Refused) as refused:
                await bob.fulfil(id_, "tools")
            return str(refused.value)

        must_propose = await sentence(ids[0])
        assert "propose" in must_propose
        await ann.said(grant("bob", MOW, "mcpx.reject.proposal"))
        await bob.fulfil(ids[0], "tools")
        asked = await tools.until(lambda told: told["kind"].startswith("mcp.request"))
        assert (asked["from"], asked["correlation_id"]) == ("bob", [ids[0]])
        assert (await tools.said(answer(asked)))["to"] == ["bob", "cat"]
        assert await sentence(ids[0]) == "The proposal is already fulfilled."
        await bob.reject(ids[1], "not today")
        with pytest.raises(Refused) as again:
            await bob.reject(ids[1], "still not")
        assert str(again.value) == "You have already rejected this proposal."
        await ann.said(about("mcpx.reject.proposal", ids[1], {"reason": "I agree"}))
        assert await sentence(ids[1]) == "The proposal is already rejected."
        await ann.said(message("capability.revoke", {"recipient": "bob"}))
        assert await sentence(ids[2]) == must_propose
        states = await there.rest("ann", "GET", "/plaza/proposals")
        found = {one["id"]: one["state"] for one in states.json()["proposals"]}
        assert [found[id_] for id_ in ids] == ["fulfilled", "rejected", "open", "open"]


@pytest.mark.requirement("chat.rate-limit", "chat.deny-both")
@every_way
@pytest.mark.settings(rate_limits="on", rates={"chat_person_per_minute": 3})
async def test_who_says_too_much_or_may_not_speak_is_told_so_in_any_way(there, way):
    await there.people("ann", "bob")
    await there.room("ann")
    async with there.seat("ann") as ann, taking_part(there, "bob", way) as bob:
        for number in range(3):
            await bob.say(f"{number}")
        with pytest.raises(Refused, match=r"too fast.*Try again in"):
            await bob.say("too much")
        rights = {"capabilities": ["chat.*", "!chat.message"]}
        assert (await there.rest("ann", "PATCH", "/plaza", rights)).status == 200
        with pytest.raises(Refused, match="is denied to you"):
            await bob.say("silenced")
        await ann.said(message("room.kick", {"participant": "bob"}))
        with pytest.raises(Exception, match=r"removed from|4403"):
            await bob.say("gone")
        assert len([one for one in await there.history("ann") if one["from"] == "bob"]) == 3


@pytest.mark.requirement("proposal.first-wins")
async def test_of_two_who_fulfil_at_once_the_first_in_the_rooms_order_wins(there):
    await there.people("ann", "bob", "cat", "tools")
    await there.room("ann", capabilities=["*"])
    async with there.seats("ann", "bob", "cat", "tools") as (ann, bob, cat, _):
        for _ in range(15):
            proposed = await bob.said(proposal())
            first, second = (fulfilment(proposed, "tools") for _ in range(2))
            await asyncio.gather(ann.send(first), cat.send(second))
            told = await asyncio.gather(ann.outcome(first["id"]), cat.outcome(second["id"]))
            ends = sorted(one["payload"].get("error", "") for one in told)
            assert ends == ["", "proposal_closed"]
        kinds = [one["kind"] for one in await there.history("ann")]
        assert kinds.count("mcp.request.tools/call") == 15
