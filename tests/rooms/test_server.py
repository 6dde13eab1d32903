"""The connections of other nodes at a room's owner: each comes, fails and leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.bus.limits import MAX_SENT_BYTES
from folkmoot.cluster.limits import BACKLOG_BYTES, WELCOME_BYTES
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import Visitor
from folkmoot.rooms.journal import Barrier
from folkmoot.rooms.server import RoomServer
from tests import nats, postgres
from tests.rooms.gathering import Ear, chat
from tests.rooms.nodes import Member

pytestmark = [*nats.NEEDED, *postgres.needs_own()]


@pytest.fixture
async def met(one: Member, two: Member, ann: Visitor, bob: Visitor) -> tuple[Ear, Any, Any]:
    """`ann` is in a room of the first node, and `bob` came to it from the second."""
    _, live = await one.host(ann)
    return *await two.join(bob), live


def server_of(node: Member) -> RoomServer:
    (server,) = node.rooms._nodes._servers.values()
    return server


async def test_who_leaves_while_it_waits_to_be_welcomed_keeps_nobody_from_coming(
    met, bob, one, two
):
    _, room, _ = met
    server = server_of(one)
    (session,) = server.owner._sessions.values()
    # Others have all turns.
    session.turns[-1] = BACKLOG_BYTES
    early = Ear()
    _, role = await two.rooms.enter(bob, "square")
    room.join(early, bob, role)
    await nats.until(lambda: server._turns)
    room.left(early)
    await nats.until(lambda: not server._turns and not server._commands)
    del session.turns[-1]
    await two.join(bob)
    assert list(server.owner._sessions.values()) == [session]


async def test_who_leaves_at_once_keeps_no_turn_and_what_it_said_counts(met, bob, one, two):
    ear, room, live = met
    _, role = await two.rooms.enter(bob, "square")
    for number in range(BACKLOG_BYTES // WELCOME_BYTES + 1):
        brief = Ear()
        room.join(brief, bob, role)
        room.receive(brief, chat(f"brief {number}"))
        room.left(brief)
    await ear._until(lambda: f"brief {number}" in ear.texts)
    await two.join(bob)
    assert len(ear.texts) == number + 1
    (session,) = server_of(one).owner._sessions.values()
    await nats.until(lambda: not session.turns)
    await nats.until(lambda: len(live.outlets) == 3)


@pytest.mark.parametrize("code", [CloseCode.NOT_AUTHENTICATED, CloseCode.TOO_SLOW])
async def test_whom_the_owner_closes_at_another_node_has_left(met, bob, two, code):
    ear, _, live = met
    (outlet,) = [one for one, who in live.outlets.items() if who.principal == bob.principal]
    outlet.close(code)
    assert await ear.until_closed() is code
    await nats.until(lambda: len(live.outlets) == 1)
    assert [each["id"] for each in await live.participants()] == ["ann"]
    # It has left once, also where its node says so too.
    live.left(outlet)
    await live.flushed()
    await two.join(bob)


async def test_what_fails_in_the_room_closes_whom_it_concerns_and_no_other(met, bob, one, two):
    ear, room, live = met
    receive, join = live.receive, live.join

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("This was not thought of.")

    other, _ = await two.join(bob)
    live.receive = broken
    room.receive(other, chat("lost"))
    assert await other.until_closed() is CloseCode.INTERNAL
    live.receive, live.join = receive, broken
    late = Ear()
    _, role = await two.rooms.enter(bob, "square")
    room.join(late, bob, role)
    assert await late.until_closed() is CloseCode.INTERNAL
    live.join = join
    room.receive(ear, chat("still here"))
    await ear.until_text("still here")
    assert ear.is_open
    await nats.until(lambda: server_of(one).owner.is_resolved)


async def test_a_call_that_fails_is_answered_so(met, one):
    _, room, live = met
    answers = live.participants

    async def broken() -> Any:
        raise ValueError("This was not thought of.")

    async def unwritable() -> Any:
        return [object()]

    async def refused() -> Any:
        raise e.RoomForbidden("You may not.", what=object())

    for answer in (broken, unwritable, refused):
        live.participants = answer
        with pytest.raises(e.InternalError, match="its log says why"):
            await room.participants()
    live.participants = answers
    assert len(await room.participants()) == 2
    server = server_of(one)
    await nats.until(lambda: server.owner.is_resolved)
    (session,) = server.owner._sessions.values()
    assert not session.turns


async def test_a_node_whose_commands_cannot_be_resolved_begins_anew(met, bob, one, two):
    ear, room, live = met
    perform = live.perform

    def broken(effects: Any) -> None:
        if [type(one) for one in effects] == [Barrier]:
            raise ValueError("This was not thought of.")
        perform(effects)

    live.perform = broken
    room.receive(ear, chat("of which nobody knows"))
    assert await ear.until_closed() is CloseCode.RESTARTING
    live.perform = perform
    again, _ = await two.join(bob)
    room.receive(again, chat("here again"))
    await again.until_text("here again")
    await nats.until(lambda: server_of(one).owner.is_resolved)


async def test_an_answer_larger_than_the_bus_carries_comes_in_parts(met, bob, two):
    ear, room, live = met
    answer = [{"id": f"{number}", "told": 1_000 * "x"} for number in range(17_000)]
    assert sum(len(str(one)) for one in answer) > MAX_SENT_BYTES

    async def participants() -> Any:
        return answer

    live.participants = participants
    traffic = two.rooms._nodes.traffic
    before = traffic._sessions
    assert await room.participants() == answer
    assert traffic._sessions == before
    room.receive(ear, chat("still here"))
    await ear.until_text("still here")
