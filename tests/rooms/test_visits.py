"""Visits over nodes: whoever is in a room through tools stays there when its owner changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import Visitor, queries_visits, visitor_of
from folkmoot.rooms.live import LiveRoom
from tests import nats, postgres
from tests.rooms.gathering import chat, envelope
from tests.rooms.nodes import Member

pytestmark = [*nats.NEEDED, *postgres.needs_own()]

BOTH = pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])


async def visited(nodes: list[Member], *visitors: Visitor, durable: bool = True) -> LiveRoom:
    """Let people visit a room that the first node has, through the second node."""
    one, two = nodes[:2]
    await one.create(visitors[0], durable=durable)
    await one.rooms.enter(visitors[0], "square")
    for each in visitors:
        await two.rooms.visit(each, "square")
    (live,), (remote,) = one.rooms._live, two.rooms._nodes.rooms
    await nats.until(lambda: remote.is_idle)
    return live


async def taken(nodes: list[Member], by: Visitor) -> LiveRoom:
    """Wait until another node has the room, and let the time pass in which people may return."""
    others = nodes[1:]
    while not (found := [live for node in others for live in node.rooms._live]):
        try:
            await others[-1].rooms.post(by, "square", chat("hello"))
        except e.RoomUnavailable:
            await asyncio.sleep(0.1)
    (live,) = found
    others[0].clock.seconds += 60
    live._tick()
    await live.flushed()
    return live


async def here(live: LiveRoom) -> list[str]:
    return sorted(each["id"] for each in await live.participants())


async def stored(node: Member) -> int:
    return await node.count("room_visits")


async def until_stored(node: Member, count: int) -> None:
    """Wait until so many are stored: the node's own upkeep may be at it already."""
    while await stored(node) != count:
        pass


def do_once_before(table: Any, name: str, do: Callable[[], Awaitable[Any]]) -> asyncio.Event:
    """Have something done before the next visit is `put` or `remove`d; when that begins."""
    next_step, begins = getattr(table, name), asyncio.Event()

    async def later(*how: Any) -> None:
        setattr(table, name, next_step)
        begins.set()
        await do()
        await next_step(*how)

    setattr(table, name, later)
    return begins


@BOTH
async def test_visitors_stay_when_the_owner_of_their_room_dies(
    nodes, one, two, three, ann, bob, cyd, durable
):
    live = await visited(nodes, ann, bob, cyd, durable=durable)
    assert await here(live) == ["ann", "bob", "cyd"]
    # Whoever has left stays away, and so does whoever was put out.
    await three.rooms.depart(cyd, "square")
    await one.die()
    next_live = await taken(nodes, ann)
    assert await here(next_live) == ["ann", "bob"]
    # They go on as visits: they can leave, and do so when they are idle.
    await three.rooms.depart(bob, "square")
    assert await here(next_live) == ["ann"]
    two.clock.seconds += 1_000
    for node in (two, three):
        await node.rooms._upkeep.round()
    # A round may also have let go of the room, which nobody uses.
    assert next_live.machine.participants() == []
    await until_stored(two, 0)


@BOTH
@pytest.mark.settings(count=2)
async def test_visitors_stay_when_the_owner_of_their_room_stops(nodes, one, ann, bob, durable):
    await visited(nodes, ann, bob, durable=durable)
    await one.stop()
    next_live = await taken(nodes, ann)
    assert await here(next_live) == ["ann", "bob"]
    said = [bytes(one) for one in (await next_live.read(0, None, 100)).messages]
    assert sum(b"presence.join" in one and b'"bob"' in one for one in said) == 1
    assert not any(b"presence.leave" in one for one in said)


@BOTH
async def test_who_leaves_while_the_owner_is_dead_does_not_come_back(
    nodes, one, two, three, ann, bob, cyd, durable
):
    await visited(nodes, ann, bob, cyd, durable=durable)
    await one.die()
    # An owner stays a member, so only the visit tells that she is gone.
    await asyncio.gather(two.rooms.depart(ann, "square"), three.rooms.depart(bob, "square"))
    next_live = await taken(nodes, cyd)
    assert await here(next_live) == ["cyd"]


@pytest.mark.settings(count=3)
async def test_who_leaves_after_a_take_over_that_its_node_has_not_noticed_is_gone(
    nodes, one, two, ann, bob
):
    await visited(nodes, ann, bob)
    await one.die()
    next_live = await taken(nodes, ann)
    assert await here(next_live) == ["ann", "bob"]
    (remote,) = two.rooms._nodes.rooms
    # As if it had heard of it a moment ago.
    assert remote._edge.owner.node == one.bus.node
    remote._edge._sent_at = remote.traffic.now()
    await two.rooms.depart(ann, "square")
    assert await here(next_live) == ["bob"]


@pytest.mark.settings(count=2)
async def test_a_replaced_owner_stores_no_visit_and_removes_none(nodes, one, ann, bob):
    live = await visited(nodes, ann)
    await until_stored(one, 1)
    visits, now = one.rooms._live.visits, one.clock.monotonic()
    assert visits is not None
    await one.execute("UPDATE room_owners SET owner_epoch = owner_epoch + 1")
    with pytest.raises(e.RoomTakenOver):
        await visits.put(live, bob, now)
    await visits.remove(live, {ann.principal.account_id: now})
    assert await stored(one) == 1


@pytest.mark.settings(count=3)
async def test_who_was_active_of_late_is_here_with_the_next_owner_too(
    nodes, one, two, ann, bob, cyd
):
    live = await visited(nodes, ann, bob, cyd)
    one.clock.seconds += 300
    two.rooms._nodes.rooms[0].visits._touched.clear()
    await two.rooms.messages(bob, "square")
    await one.join(ann)
    await nats.until(lambda: live.visits._visits[bob.principal.account_id].unstored_seconds)
    await one.rooms._upkeep.round()
    assert await stored(one) == 3
    # Longer ago than a visit lasts for cyd, and shorter for bob.
    one.clock.seconds += 400
    await one.die()
    next_live = await taken(nodes, ann)
    assert await here(next_live) == ["bob"]


@BOTH
async def test_who_may_not_be_here_any_more_is_not_with_the_next_owner(
    nodes, one, two, ann, durable
):
    made = {name: await nodes[0].accounts.register(name) for name in ("bob", "cyd", "dan", "eve")}
    people = []
    for each in made.values():
        identity = await nodes[0].accounts.identify(each.token)
        people.append(visitor_of(each.account, identity.credential.id))
    await visited(nodes, ann, *people, durable=durable)
    # Nobody tells the room: its owner is gone.
    await one.die()
    update = "UPDATE room_members SET state = 'banned' WHERE account_id = $1"
    await two.execute(update, people[0].principal.account_id)
    await two.accounts.suspend(made["cyd"].account, suspended=True)
    await two.execute("DELETE FROM credentials WHERE id = $1", people[2].credential_id)
    next_live = await taken(nodes, ann)
    assert await here(next_live) == ["ann", "eve"]


@pytest.mark.parametrize("comes_again", [False, True])
async def test_who_leaves_while_their_visit_is_stored_has_none_unless_they_come_again(
    nodes, one, two, ann, bob, comes_again
):
    live = await visited(nodes, ann)
    go_on = asyncio.Event()
    waits = do_once_before(live.visits.table, "put", go_on.wait)
    coming = asyncio.ensure_future(two.rooms.visit(bob, "square"))
    await waits.wait()
    await two.rooms.depart(bob, "square")
    if comes_again:
        await two.rooms.visit(bob, "square")
    go_on.set()
    await coming
    assert await here(live) == (["ann", "bob"] if comes_again else ["ann"])
    assert await stored(one) == 1 + comes_again


async def test_who_comes_again_while_the_visit_that_they_left_is_removed_has_one(
    nodes, one, two, ann, bob
):
    live = await visited(nodes, ann)
    table = live.visits.table
    do_once_before(table, "put", lambda: two.rooms.depart(bob, "square"))
    came = do_once_before(table, "remove", lambda: two.rooms.visit(bob, "square"))
    await two.rooms.visit(bob, "square")
    assert came.is_set()
    assert await here(live) == ["ann", "bob"]
    assert await stored(one) == 2


async def test_who_was_put_out_and_comes_again_while_their_visit_is_removed_has_one(
    nodes, one, two, ann, bob
):
    live = await visited(nodes, ann, bob)
    table = live.visits.table
    came = do_once_before(table, "remove", lambda: two.rooms.visit(bob, "square"))
    live.visits._visits[bob.principal.account_id].close(CloseCode.REPLACED)
    await live.visits.look_after(600)
    assert came.is_set()
    assert await here(live) == ["ann", "bob"]
    assert await stored(one) == 2


async def test_a_visit_goes_with_its_room_and_its_account(nodes, one, two, ann, bob):
    live = await visited(nodes, ann, bob)
    await two.rooms.post(ann, "square", envelope("room.kick", {"participant": "bob"}))
    # The clock that all nodes share was set.
    one.clock.now = lambda: one.clock.monotonic() - 0.5
    await one.rooms._upkeep.round()
    assert await here(live) == ["ann"]
    await until_stored(one, 1)
    await two.rooms.delete(ann, "square")
    assert await stored(one) == 0


async def test_who_leaves_while_the_next_owner_loads_the_room_does_not_come_back(
    nodes, one, three, ann, bob
):
    await visited(nodes, ann, bob)
    await one.die()
    table = three.rooms._live.visits
    of_room, has_read, go_on = table.of_room, asyncio.Event(), asyncio.Event()

    async def slowly(room_id: Any) -> Any:
        found = await of_room(room_id)
        has_read.set()
        await go_on.wait()
        return found

    table.of_room = slowly
    taking = asyncio.ensure_future(taken(nodes, ann))
    await has_read.wait()
    leaving = asyncio.ensure_future(three.rooms.depart(bob, "square"))
    await until_stored(three, 1)
    await asyncio.wait((leaving,), timeout=0.5)
    go_on.set()
    await leaving
    next_live = await taking
    assert await here(next_live) == ["ann"]


async def test_who_comes_again_is_stored_after_a_leave_that_the_owner_did_not_hear_of(
    nodes, one, two, ann, bob
):
    live = await visited(nodes, ann, bob)
    gone = bob.principal.account_id
    await two.store.write(lambda tx: queries_visits.remove(tx, live.room_id, gone))
    assert await stored(one) == 1
    await two.rooms.visit(bob, "square")
    assert await stored(one) == 2
