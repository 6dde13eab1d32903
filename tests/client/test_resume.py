"""Connections are lost at every moment, and nothing is lost with them, nor comes twice."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folkmoot.client import AnswerLost, Gap, Message, RequestFailed, Room
from folkmoot.core.closecodes import CloseCode
from tests.amounts import few
from tests.client.hub import CuttingHub, Envelope, cutting_hub, never
from tests.client.support import (
    check_whole,
    enter,
    eventually,
    of,
    offer_double,
    outcome_of,
    read_to,
    until,
)
from tests.harness import run

MOMENTS = ["before", "after", "told bob"]
ENDS = [True, CloseCode.TOO_SLOW, CloseCode.RESTARTING, CloseCode.INTERNAL, CloseCode.PONG_TIMEOUT]


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("moment", MOMENTS)
async def test_what_is_said_is_stored_once_wherever_the_connection_is_lost(hub, bob, moment, how):
    hub.cut_once(moment, "chat.message", how)
    said = await bob.say("hello")
    assert hub.said() == ["hello"]
    assert said.seq == next(a.seq for a in hub.stored if a.kind == "chat.message")
    await bob.say("again")
    assert hub.said() == ["hello", "again"]
    assert {asked["conn"] for asked in hub.joins} == {hub.joins[0]["conn"]}
    assert len(hub.joins) == 2


@pytest.mark.parametrize("kind", ["mcp.request", "mcp.response"])
@pytest.mark.parametrize("moment", [*MOMENTS, "told alice"])
async def test_a_call_is_answered_or_fails_wherever_a_connection_is_lost(
    hub, alice, bob, moment, kind
):
    runs = offer_double(bob)
    hub.cut_once(moment, kind)
    outcome = await outcome_of(alice.call("bob", "double", {"n": 4}, timeout=30))
    # The hub answers for one whom it saw leave, and nobody is asked twice.
    away = kind == "mcp.response" and moment in ("before", "after")
    assert outcome in (["8", "target_left"] if moment == "told bob" or away else ["8"])
    assert len(runs) <= 1
    await eventually(lambda: len(hub.joins) >= 3)
    kinds = hub.kinds()
    assert sum(kind.startswith("mcp.request") for kind in kinds) == 1
    assert sum(kind.startswith("mcp.response") for kind in kinds) == 1


async def test_a_tool_is_not_run_for_one_whom_the_hub_answered_meanwhile(hub, alice, bob):
    runs: list[str] = []

    @bob.tool
    def act() -> None:
        runs.append("acted")

    def cuts(moment: str, envelope: Envelope) -> bool:
        asked = envelope["kind"].startswith("mcp.request")
        if moment == "after" and asked:
            hub.cut("bob")
        # It learns of the request, and is away again before it learns of the answer.
        return moment == "told bob" and asked

    hub.cuts = cuts
    with pytest.raises(RequestFailed) as failure:
        await alice.call("bob", "act")
    assert failure.value.reason == "target_left"
    await eventually(lambda: len(hub.joins) == 4 and len(hub.clients) == 2)
    await bob.say("back")
    assert runs == []


async def test_a_tool_that_runs_when_the_hub_answers_for_it_is_ended(hub, alice, bob):
    ended = asyncio.Event()

    @bob.tool
    async def act() -> None:
        hub.cut("bob")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(RequestFailed) as failure:
        await alice.call("bob", "act")
    assert failure.value.reason == "target_left"
    await ended.wait()


async def test_the_hub_may_be_away_for_a_while(hub, alice, bob):
    await alice.say("one")
    await hub.close()
    async with asyncio.TaskGroup() as tasks:
        saying = tasks.create_task(alice.say("two"))
        await asyncio.sleep(0)
        assert not saying.done()
        await hub.open()
    assert [m.text for m in await read_to(bob, "two") if m.text] == ["one", "two"]


async def test_a_cancelled_say_is_not_sent_later(hub, bob):
    await hub.close()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await bob.say("never")
    await hub.open()
    await bob.say("now")
    assert hub.said() == ["now"]


@pytest.mark.parametrize("seed", few(range(8), 2))
async def test_under_a_storm_of_lost_connections_everyone_reads_everything_once_and_in_order(seed):
    chance = random.Random(seed)
    many = 60
    async with cutting_hub() as there:
        there.cuts = lambda moment, envelope: chance.random() < 0.04
        names = ["alice", "bob", "carol"]
        rooms = [enter(there, name) for name in names]
        read: dict[str, list[Message]] = {name: [] for name in names}

        async def talk(name: str, room: Room) -> None:
            for n in range(many):
                message = await room.say(f"{name} {n}")
                assert message.text == f"{name} {n}"

        async def listen(name: str, room: Room) -> None:
            async for message in room:
                read[name].append(message)

        async with rooms[0], rooms[1], rooms[2], asyncio.TaskGroup() as tasks:
            pairs = list(zip(names, rooms, strict=True))
            listeners = [tasks.create_task(listen(*pair)) for pair in pairs]
            async with asyncio.TaskGroup() as talking:
                for pair in pairs:
                    talking.create_task(talk(*pair))
            there.cuts = never
            last = next(a.seq for a in reversed(there.stored) if a.kind == "chat.message")
            await eventually(lambda: all(read[n] and read[n][-1].seq >= last for n in names))
            for listener in listeners:
                listener.cancel()
        assert len(there.joins) > 5
        assert sorted(there.said()) == sorted(f"{n} {i}" for n in names for i in range(many))
        for name in names:
            ordered = [text for text in there.said() if text.startswith(name)]
            assert ordered == [f"{name} {n}" for n in range(many)]
            check_whole(read[name])


Plan = list[tuple[str, int]]


@settings(max_examples=settings.default.max_examples // 2)
@given(
    plan=st.lists(
        st.tuples(st.sampled_from(["say", "cut", "other", "cut after"]), st.integers(0, 3)),
        max_size=12,
    )
)
def test_no_order_of_words_and_cuts_makes_a_gap_or_a_duplicate(plan):
    async def main() -> None:
        async with (
            cutting_hub() as there,
            enter(there, "alice") as alice,
            enter(there, "bob") as bob,
        ):
            expected: list[str] = []
            for step, (what, n) in enumerate(plan):
                if what == "cut":
                    there.cut("bob")
                elif what == "other":
                    expected.append(f"alice {step}")
                    await alice.say(expected[-1])
                else:
                    if what == "cut after":
                        there.cut_once(MOMENTS[n % 3], "chat.message")
                    expected.append(f"bob {step}")
                    await bob.say(expected[-1])
            await alice.say("the end")
            read = await read_to(bob, "the end")
            check_whole(read)
            assert [m.text for m in read if m.text] == [*expected, "the end"]

    run(main())


async def test_a_gap_is_told_where_the_history_no_longer_reaches_back(hub, alice, bob):
    await until(bob, lambda m: m.kind == "system.presence.join")
    last = bob.last_seq
    hub.refuses = (CloseCode.RESTARTING, "")
    hub.cut("bob")
    for n in range(5):
        kept = (await alice.say(f"missed {n}")).seq
    hub.room.trim(kept)
    hub.refuses = None
    gap = await anext(bob)
    assert isinstance(gap, Gap)
    assert (gap.after, gap.seq, gap.reason) == (last, kept - 1, "history_gone")
    assert gap.kind == "client.gap"
    assert (await anext(bob)).text == "missed 4"


async def test_a_gap_is_told_where_the_room_began_anew(hub, bob):
    for n in range(5):
        await bob.say(str(n))
    last = bob.last_seq
    hub.refuses = (CloseCode.RESTARTING, "")
    hub.cut()
    await eventually(lambda: not hub.clients)
    hub.begin_anew("e2")
    hub.refuses = None
    gap = await until(bob, lambda m: isinstance(m, Gap))
    assert isinstance(gap, Gap)
    assert (gap.after, gap.reason) == (last, "epoch_changed")
    assert bob.epoch == "e2"
    assert (await bob.say("hello")).seq == 2
    await until(bob, of("hello"))


async def test_what_was_sent_into_a_room_that_began_anew_is_said_there(hub, bob):

    def cuts(moment: str, envelope: Envelope) -> bool:
        if moment != "after":
            return False
        hub.cuts = never
        hub.begin_anew("e2")
        return True

    hub.cuts = cuts
    said = await bob.say("hello")
    assert (said.text, said.sender) == ("hello", "bob")
    assert bob.epoch == "e2"


async def test_an_answer_that_may_be_in_the_gap_is_not_waited_for(hub, alice, bob):
    proposal = await alice.propose("ping")

    async def lost(wait: Any) -> None:
        with pytest.raises(AnswerLost):
            await wait

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(lost(alice.request("bob", "ping")))
        tasks.create_task(lost(proposal.outcome()))
        await until(bob, lambda m: m.base == "mcp.request.ping")
        hub.refuses = (CloseCode.RESTARTING, "")
        hub.cut("alice")
        await until(bob, lambda m: m.kind == "system.presence.leave")
        hub.room.trim(hub.room.seq + 1)
        hub.refuses = None


async def test_what_may_have_been_stored_and_forgotten_is_not_sent_again(hub, alice, bob):

    def cuts(moment: str, envelope: Envelope) -> bool:
        if moment != "after":
            return False
        hub.cuts = never
        asyncio.get_running_loop().call_soon(hub.room.trim, 1000)
        return True

    hub.cuts = cuts
    with pytest.raises(AnswerLost, match="unknown whether"):
        await bob.say("once at most")
    await bob.say("and on")
    assert hub.said() == ["once at most", "and on"]


async def test_an_echo_that_was_missed_is_made_up_from_what_was_sent(hub, bob):
    hub.cut_once("after", "chat.message")
    # The room keeps ids for longer than this client is told of what it missed.
    hub._attach = without_replay(hub)  # type: ignore[method-assign]
    said = await bob.say("hello", to="alice")
    assert (said.seq, said.text, said.to) == (2, "hello", ("alice",))
    assert said.sender == "bob"
    assert hub.said() == ["hello"]


async def test_the_answer_to_what_was_stored_unseen_is_not_waited_for(hub, alice, bob):
    hub._attach = without_replay(hub)  # type: ignore[method-assign]
    hub.cut_once("after", "mcp.request")
    with pytest.raises(AnswerLost):
        await alice.request("bob", "ping")
    hub.cut_once("after", "mcp.proposal")
    proposal = await alice.propose("ping")
    with pytest.raises(AnswerLost):
        await proposal.outcome()
    assert hub.kinds().count("mcp.proposal.ping") == 1


def without_replay(there: CuttingHub) -> Any:
    attach = type(there)._attach

    def silent(effect: Any) -> None:
        welcome = msgspec.json.decode(effect.welcome)
        if effect.after is not None:
            welcome["payload"]["resume"] = {"complete": False, "reason": "seq_unknown"}
        told = msgspec.json.encode(welcome)
        attach(there, msgspec.structs.replace(effect, after=None, welcome=told))

    return silent


async def test_an_invitation_whose_answer_was_lost_is_not_waited_for(hub, alice):
    hub.cut_once("after", "room.invite")
    with pytest.raises(AnswerLost):
        await alice.invite(guest="kim")
    assert (await alice.invite(guest="kim")).token == "gi_kim"
