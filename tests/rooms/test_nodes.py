"""One hub on three nodes: a room is used from any of them, whoever owns it, and outlives its owner.

Each node has its own connection to PostgreSQL and to NATS, both real, in one process.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from msgspec.msgpack import encode

from folkmoot.bus.limits import MAX_SENT_BYTES
from folkmoot.cluster import CallAnswered, Place, decode
from folkmoot.cluster.messages import AskNode
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import Visitor, read_patch
from folkmoot.rooms.limits import MAX_STATUSES, REMOTE_IDLE_SECONDS
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import RoomRecord
from folkmoot.rooms.remote import RemoteRoom
from tests import nats, postgres
from tests.ports import free_port
from tests.rooms.gathering import Ear, chat, envelope
from tests.rooms.nodes import Member

pytestmark = [*nats.NEEDED, *postgres.needs_own()]


async def test_people_on_three_nodes_meet_in_a_room_that_one_of_them_owns(
    one, two, three, ann, bob, cyd
):
    ear_a, at_one = await one.host(ann)
    ear_b, at_two = await two.join(bob)
    ear_c, at_three = await three.join(cyd)
    rooms = [type(room) for room in (at_one, at_two, at_three)]
    assert rooms == [LiveRoom, RemoteRoom, RemoteRoom]
    for number in range(5):
        at_one.receive(ear_a, chat(f"a{number}"))
        at_two.receive(ear_b, chat(f"b{number}"))
        at_three.receive(ear_c, chat(f"c{number}"))
    for ear in (ear_a, ear_b, ear_c):
        await ear._until(lambda ear=ear: len(ear.texts) >= 15)
    assert ear_a.texts == ear_b.texts == ear_c.texts
    assert [text for text in ear_a.texts if text[0] == "b"] == [f"b{n}" for n in range(5)]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
async def test_a_message_is_posted_read_and_waited_for_from_a_node_that_is_not_the_owner(
    one, two, ann, bob, durable
):
    await one.host(ann, durable=durable)
    assert b"hello" in await two.rooms.post(bob, "square", chat("hello"))
    page = await two.rooms.messages(bob, "square", limit=10)
    assert b"hello" in bytes(page.messages[-1])
    waiting = asyncio.ensure_future(two.rooms.messages(bob, "square", after=page.last_seq, wait=20))
    await asyncio.sleep(0.1)
    await one.rooms.post(ann, "square", chat("welcome"))
    assert b"welcome" in bytes((await waiting).messages[-1])
    assert "ann" in str(await two.rooms.participants(bob, "square"))


async def test_what_is_refused_elsewhere_is_told_as_here(one, two, ann, bob):
    ear_a, room_a = await one.host(ann)
    ear_b, room_b = await two.join(bob)
    room_b.receive(ear_b, envelope("room.kick", {"participant": "ann"}))
    await ear_b.until_kind("system.error")
    with pytest.raises(Exception, match="no permission"):
        await two.rooms.post(bob, "square", envelope("room.kick", {"participant": "ann"}))
    room_a.receive(ear_a, envelope("room.kick", {"participant": "bob"}))
    assert await ear_b.until_closed() is CloseCode.NOT_ALLOWED
    with pytest.raises(e.RoomForbidden):
        await two.rooms.enter(bob, "square")


async def test_connections_elsewhere_stay_when_the_owner_dies(one, two, three, ann, bob, cyd):
    await one.host(ann)
    ear_b, at_two = await two.join(bob)
    ear_c, _ = await three.join(cyd)
    at_two.receive(ear_b, chat("before"))
    for ear in (ear_b, ear_c):
        await ear.until_text("before")
    await one.die()
    await two.say_at_last(bob, "after", id="after-1")
    for ear in (ear_b, ear_c):
        await ear.until_text("after")
        assert ear.is_open
        assert ear.texts.count("after") == 1
        assert ear.seqs == list(range(ear.seqs[0], ear.seqs[0] + len(ear.seqs))), "a gap, or twice"


async def test_a_connection_with_messages_nobody_knows_of_is_closed_when_the_owner_dies(
    one, two, ann, bob
):
    await one.host(ann)
    ear_b, at_two = await two.join(bob)
    await one.die()
    at_two.receive(ear_b, chat("lost", id="lost-1"))
    assert await ear_b.until_closed() is CloseCode.RESTARTING
    again, room = await two.join(bob, after=max(ear_b.seqs, default=0))
    room.receive(again, chat("lost", id="lost-1"))
    await again.until_text("lost")
    assert (await two.said(bob)).count(b'"lost-1"') == 1


async def test_a_node_that_stops_hands_its_rooms_over_and_closes_nobody_elsewhere(
    one, two, three, ann, bob, cyd
):
    await one.host(ann)
    ear_b, at_two = await two.join(bob)
    ear_c, _ = await three.join(cyd)
    said = 0

    async def talk() -> None:
        nonlocal said
        while True:
            said += 1
            at_two.receive(ear_b, chat(f"t{said}"))
            await asyncio.sleep(0.01)

    talking = asyncio.ensure_future(talk())
    await asyncio.sleep(0.2)
    one.rooms.stop()
    # Whoever comes while the owner stops comes to the next one.
    coming = asyncio.ensure_future(two.join(ann))
    await one.stop()
    ear_a, _ = await coming
    assert ear_a.is_open
    await asyncio.sleep(1.0)
    talking.cancel()
    for ear in (ear_b, ear_c):
        await ear.until_text(f"t{said}")
        assert ear.is_open
        assert ear.texts == [f"t{number}" for number in range(1, said + 1)]


async def test_a_node_whose_rooms_are_not_handed_over_stops_all_the_same(
    one, two, ann, monkeypatch
):
    monkeypatch.setattr("folkmoot.rooms.rooms.STOP_SECONDS", 0.1)
    await one.host(ann)
    monkeypatch.setattr(one.rooms._nodes, "_hand_over", lambda _: asyncio.Event().wait())
    await one.stop()
    # Nobody has to wait until the lease of that node is over.
    _, room = await two.join(ann)
    assert isinstance(room, LiveRoom)


async def test_a_post_while_the_owner_is_gone_is_refused_and_can_be_tried_again(one, two, ann):
    await one.create(ann)
    room = await one.rooms._live.load((await one.rooms.find(ann, "square"))[0])
    await room.post(ann.principal, Role.OWNER, chat("hello"))
    await two.rooms.post(ann, "square", chat("there"))
    one.hear_nothing()
    with pytest.raises(e.RoomUnreachable, match="may have been done"):
        await two.rooms.post(ann, "square", chat("again"))


async def test_someone_whose_account_is_suspended_is_out_also_where_the_owner_is_not_heard(
    nodes, one, two, ann, bob
):
    await one.host(ann)
    ear_b, _ = await two.join(bob)
    one.bus.send = lambda *_: False
    assert bob.account is not None
    await nodes[0].accounts.suspend(bob.account, suspended=True)
    assert await ear_b.until_closed() is CloseCode.NOT_AUTHENTICATED


async def test_a_room_is_changed_and_removed_from_a_node_that_is_not_the_owner(one, two, ann, bob):
    ear_a, live = await one.host(ann)
    ear_b, _ = await two.join(bob)
    view = await two.rooms.change(ann, "square", read_patch({"access": "private"}))
    assert view.access == "private"
    assert (await one.rooms.get(ann, "square")).access == "private"
    assert not live.is_ended
    with pytest.raises(e.RoomForbidden):
        await two.rooms.change(bob, "square", read_patch({"access": "open"}))
    await two.rooms.delete(ann, "square")
    assert await ear_a.until_closed() is CloseCode.NO_SUCH_ROOM
    assert await ear_b.until_closed() is CloseCode.NO_SUCH_ROOM


async def test_someone_who_was_put_out_and_is_invited_on_another_node_comes_in_again(
    one, two, ann, bob
):
    await one.host(ann)
    await two.join(bob)
    await two.rooms.post(ann, "square", envelope("room.kick", {"participant": "bob"}))
    with pytest.raises(e.RoomForbidden):
        await two.rooms.enter(bob, "square")
    await two.rooms.invite(ann, "square", handle="bob")
    ear, _ = await two.join(bob)
    assert ear.is_open


async def test_who_waits_for_a_room_that_is_left_is_told_and_so_is_who_asks_it_later(one, two, ann):
    await one.host(ann)
    await two.rooms.post(ann, "square", chat("hello"))
    (remote,) = two.rooms._nodes.rooms
    one.hear_nothing()
    asked = asyncio.ensure_future(remote.participants())
    await asyncio.sleep(0.1)
    two.rooms._nodes.leave(remote.room_id, e.RoomUnavailable("It is left."))
    with pytest.raises(e.RoomUnavailable):
        await asked
    with pytest.raises(e.RoomUnavailable):
        await remote.participants()


async def test_a_room_elsewhere_that_is_only_read_seeks_nobody_and_is_left_in_time(one, two, ann):
    await one.host(ann)
    await two.rooms.messages(ann, "square", limit=10)
    (remote,) = two.rooms._nodes.rooms
    await nats.until(lambda: remote._edge.due == math.inf)
    remote.used_at -= REMOTE_IDLE_SECONDS + 1
    await two.rooms._upkeep.round()
    assert not two.rooms._nodes.rooms


async def test_a_room_that_ended_on_its_node_is_found_by_the_others(one, two, ann):
    for durable in (True, False):
        name = f"square-{durable}".lower()
        await one.create(ann, name, durable=durable)
        _, live = await one.join(ann, name)
        await two.join(ann, name)
        assert one.rooms._nodes._servers
        one.rooms._live.end(live.room_id, e.RoomUnavailable("It was changed."))
        assert not one.rooms._nodes._servers
        assert not one.rooms._nodes.traffic._owners
        await taken_by(two, ann, name)


async def test_a_room_that_failed_or_was_not_loaded_is_found_by_the_others(one, two, ann):
    _, live = await one.host(ann)
    live.fail(e.RoomUnavailable("The disk is full."))
    await taken_by(two, ann)
    at_two = two.rooms._live.get(live.room_id)
    at_two.fail(e.RoomUnavailable("The disk is full."))
    read = one.store.read

    async def broken(*_: Any, long: bool = False, **__: Any) -> Any:
        raise e.RoomUnavailable("The disk cannot be read.")

    record, _ = await one.rooms.find(ann, "square")
    await nats.until(lambda: not two.rooms._live._giving_back)
    one.store.read = broken
    with pytest.raises(e.RoomUnavailable, match="cannot be read"):
        await one.rooms._live.load(record)
    one.store.read = read
    await taken_by(two, ann)


async def taken_by(node: Member, visitor: Visitor, name: str = "square") -> None:
    """Use the room until the node has it itself."""
    record, _ = await node.rooms.find(visitor, name)
    while node.rooms._live.get(record.id) is None:
        with suppress(e.RoomUnavailable):
            await node.rooms.post(visitor, name, chat("hello"))


async def test_a_node_that_stops_takes_no_room_and_serves_none_anew(one, two, ann, bob):
    await one.create(ann)
    await one.create(ann, "other")
    _, live = await one.join(ann)
    other, _ = await one.rooms.find(ann, "other")
    one.rooms.stop()
    with pytest.raises(e.HubStopping):
        await one.rooms._live.load(other)
    assert one.rooms._live.get(other.id) is None
    # It is the first that comes from another node, and takes nothing.
    coming = asyncio.ensure_future(two.join(bob))
    await nats.until(lambda: one.rooms._nodes._servers)
    (server,) = one.rooms._nodes._servers.values()
    assert not server.owner.is_taking
    await one.rooms._nodes.hand_over()
    await coming
    assert two.rooms._live.get(live.room_id) is not None
    # And whoever comes after it was handed over is told so.
    del one.rooms._nodes._servers[live.room_id]
    driven = one.rooms._nodes._serve(live.room_id, live.owner_epoch)
    assert driven is not None
    assert driven.machine._is_handed_over


async def test_who_comes_from_a_node_that_fell_silent_meanwhile_does_not_stay(one, two, ann, bob):
    _, live = await one.host(ann)
    prepare, go_on = live.prepare, asyncio.Event()

    async def slowly(account: str) -> None:
        await go_on.wait()
        await prepare(account)

    live.prepare = slowly
    room, role = await two.rooms.enter(bob, "square")
    room.join(Ear(), bob, role)
    await nats.until(lambda: one.rooms._nodes._servers)
    (server,) = one.rooms._nodes._servers.values()
    await nats.until(lambda: server._commands)
    two.rooms._nodes.leave(live.room_id, e.RoomUnavailable("It is left."))
    await nats.until(lambda: not server.owner.nodes)
    go_on.set()
    await nats.until(lambda: not server._commands)
    assert len(live.outlets) == 1


async def test_a_node_that_alone_lacks_the_bus_leaves_its_rooms_to_others(
    servers, one, two, ann, bob
):
    ear_a, live = await one.host(ann)
    await one.create(ann, "brief", durable=False)
    ear_brief, _ = await one.join(ann, "brief")
    late, go_on = await slowly_loaded(one, ann, "late")
    live.receive(ear_a, chat("before"))
    ear_b, _ = await two.join(bob)
    servers[0].kill()
    assert await ear_a.until_closed() is CloseCode.RESTARTING
    # The other node has it now, with everything that was said.
    await taken_by(two, bob)
    assert b"before" in await two.said(bob)
    assert ear_b.is_open
    # It is read where the bus is not, and said there it is not known to be lost.
    await two.rooms.post(bob, "square", chat("meanwhile"))
    assert b"meanwhile" in await one.said(ann)
    with pytest.raises(e.RoomUnavailable, match="does not reach"):
        await one.rooms.post(ann, "square", chat("refused"))
    again = Ear()
    room, role = await one.rooms.enter(ann, "square")
    room.join(again, ann, role)
    assert again.code is CloseCode.RESTARTING
    # A room in memory would be lost.
    assert ear_brief.is_open
    # What was being loaded meanwhile does not stay either.
    go_on.set()
    await nats.until(lambda: not one.rooms._live.is_loading(late.id))
    await nats.until(lambda: one.rooms._live.get(late.id) is None)
    servers[0].start()
    await nats.until(lambda: one.bus.is_connected and not one.rooms._nodes.is_alone)
    await one.say_at_last(ann, "after")
    await ear_b.until_text("after")


@pytest.fixture
def servers() -> Iterator[list[nats.NatsProcess]]:
    """Two NATS servers that are one; each node uses its own."""
    routes = [f"nats://127.0.0.1:{free_port()}" for _ in range(2)]
    servers = [
        nats.NatsProcess("--cluster_name", "one", "--cluster", mine, "--routes", ",".join(routes))
        for mine in routes
    ]
    yield servers
    for one in servers:
        one.kill()


async def slowly_loaded(
    node: Member, visitor: Visitor, name: str
) -> tuple[RoomRecord, asyncio.Event]:
    """A room that is loaded as soon as an event is set."""
    await node.create(visitor, name)
    record, _ = await node.rooms.find(visitor, name)
    live, go_on = node.rooms._live, asyncio.Event()
    stored = live._stored

    async def slowly(room_id: int, fence: Any) -> LiveRoom:
        await go_on.wait()
        return await stored(room_id, fence)

    live._stored = slowly  # type: ignore[method-assign]
    node.rooms._spawn(live.load(record))
    await nats.until(lambda: live.is_loading(record.id))
    return record, go_on


async def test_a_node_is_alone_only_as_long_as_others_reach_the_bus(servers, one, two, ann):
    await one.create(ann)
    servers[0].kill()
    look, looks = one.store.room_owners.is_bus_reached, 0

    async def failing(seconds: float) -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise OSError("something unforeseen")
        return await look(seconds)

    one.store.room_owners.is_bus_reached = failing
    await nats.until(lambda: one.rooms._nodes.is_alone)
    with pytest.raises(e.RoomUnavailable):
        await one.rooms.post(ann, "square", chat("refused"))
    await two.die()
    ended = "UPDATE nodes SET until = extract(epoch FROM clock_timestamp()) - 1 WHERE boot = $1"
    await one.execute(ended, two.bus.node)
    assert not await look(60.0)
    await nats.until(lambda: not one.rooms._nodes.is_alone)
    await one.rooms.post(ann, "square", chat("here again"))


async def test_who_leaves_a_room_needs_no_other_node_and_loads_none(one, two, ann, bob, cyd):
    await one.create(ann, access="private")
    for each in ("bob", "cyd"):
        await one.rooms.invite(ann, "square", handle=each)
    ear, live = await one.join(ann)
    ear_b, _ = await two.join(bob)
    # The owner is not heard.
    two.hear_nothing()
    await two.rooms.depart(bob, "square")
    assert await ear_b.until_closed() is CloseCode.NOT_ALLOWED
    with pytest.raises(e.RoomNotFound):
        await two.rooms.find(bob, "square")
    live.left(ear)
    await live.flushed()
    one.rooms._live.dropped(live)
    await one.rooms._live.release(live)
    await one.rooms.depart(cyd, "square")
    assert one.rooms._live.get(live.room_id) is None


async def test_nodes_that_all_lack_the_bus_keep_their_rooms(servers, one, two, ann):
    ear, live = await one.host(ann)
    for server in servers:
        server.kill()
    await nats.until(lambda: not one.bus.is_connected and not two.bus.is_connected)
    for node in (one, two):
        owners = node.store.room_owners
        while await owners.is_bus_reached(60.0):
            pass
    assert not one.rooms._nodes.is_alone
    live.receive(ear, chat("still here"))
    await ear._until(lambda: ear.texts == ["still here"])
    assert await two.store.room_owners.is_first() is False


async def test_one_node_removes_the_credentials_whose_time_is_over(one, two, ann):
    await one.execute("UPDATE credentials SET expires_at = 1")
    for node, left in ((two, 1), (one, 0)):
        await node.accounts.authentication.upkeep()
        assert await one.count("credentials") == left


async def said_in(one: Member, ann: Visitor, name: str, *, durable: bool, count: int) -> int:
    """Make a room in which much was said; the `seq` of the last message."""
    await one.create(ann, name, durable=durable)
    ear, room = await one.join(ann, name)
    for number in range(count):
        room.receive(ear, chat(f"{number} " + 60_000 * "x"))
        await room.flushed()
    return max(ear.seqs)


async def test_many_who_resume_together_at_another_node_get_all_in_one_session(one, two, ann, bob):
    for durable in (True, False):
        name = f"square-{durable}".lower()
        last = await said_in(one, ann, name, durable=durable, count=30)
        before = two.rooms._nodes.traffic._sessions
        room, role = await two.rooms.enter(bob, name)
        epoch = one.rooms._live.get(room.room_id).status.epoch
        ears = [Ear() for _ in range(16)]
        for ear in ears:
            room.join(ear, bob, role, after=0, epoch=epoch)
        for ear in ears:
            await ear.until_seq(last)
            assert ear.seqs[:last] == list(range(1, last + 1))
            assert ear.is_open
        assert two.rooms._nodes.traffic._sessions == before + 1
        for ear in ears:
            room.left(ear)


async def test_who_resumes_at_another_node_and_reads_nothing_is_told_no_more_than_a_page(
    one, two, ann, bob
):
    last = await said_in(one, ann, "square", durable=True, count=40)
    slow, fast = Ear(), Ear()
    slow.reads.clear()
    room, role = await two.rooms.enter(bob, "square")
    epoch = room.status.epoch
    room.join(slow, bob, role, after=0, epoch=epoch)
    room.join(fast, bob, role, after=0, epoch=epoch)
    await fast.until_seq(last)
    assert len(slow.seqs) < last
    slow.reads.set()
    await slow.until_seq(last)
    assert slow.seqs[:last] == list(range(1, last + 1))


async def test_what_is_too_large_for_the_bus_does_not_keep_the_rest_from_being_done(one):
    seen: list[Any] = []
    driven = one.rooms._nodes.traffic.add_edge(7, seen.append, durable=True)
    driven.machine.ask(1, bytes(MAX_SENT_BYTES + 1))
    place = Place("another", 1)
    driven.run([*driven.machine.owner_is(place, one.rooms._nodes.traffic.now()), "the rest"])
    assert "the rest" in seen
    # Whoever asked is told, and it is not sent again.
    assert CallAnswered(1, None) in seen
    assert driven.machine.is_idle


async def test_proposals_of_rooms_in_memory_elsewhere_are_listed_at_any_node(one, two, ann, bob):
    await one.create(ann, durable=False)
    await one.join(bob)
    payload = {"method": "tools/call", "params": {"name": "mow"}}
    proposal = envelope("mcp.proposal.tools/call", payload, to=["ann"], id="p1")
    await one.rooms.post(bob, "square", proposal)
    for node in (one, two):
        found = await node.rooms.asks.open_for(ann)
        assert found.complete
        assert [each.id for each in found.proposals] == ["p1"]
        assert b"mow" in (await node.rooms.asks.message(found.proposals[0]) or b"")
    reach = two.rooms._live.reach

    async def draining(_: Any) -> Any:
        raise e.NodeDraining("This node is draining. Connect again.")

    two.rooms._live.reach = draining
    assert not (await two.rooms.asks.open_for(ann)).complete
    two.rooms._live.reach = reach
    one.hear_nothing()
    assert not (await two.rooms.asks.open_for(ann)).complete


async def test_an_invitation_holds_after_a_kick_from_a_room_in_memory(one, two, ann, bob):
    _, live = await one.host(ann, durable=False)
    ear, _ = await two.join(bob)
    write, go_on = one.store.write, asyncio.Event()

    async def slowly(unit: Any, **how: Any) -> Any:
        await go_on.wait()
        return await write(unit, **how)

    one.store.write = slowly
    kick = envelope("room.kick", {"participant": "bob"})
    kicking = asyncio.ensure_future(two.rooms.post(ann, "square", kick))
    assert await ear.until_closed() is CloseCode.NOT_ALLOWED
    inviting = asyncio.ensure_future(two.rooms.invite(ann, "square", handle="bob"))
    await asyncio.wait((inviting,), timeout=1)
    go_on.set()
    await asyncio.gather(kicking, inviting)
    await nats.until(lambda: not live.is_busy)
    await two.join(bob)


async def test_lists_of_rooms_count_who_is_in_them_at_any_node_and_keep_no_session(
    one, two, ann, bob
):
    for name in ("east", "west", "nobody"):
        await one.create(ann, name)
    for name in ("east", "west"):
        await one.join(ann, name)
    await one.join(bob, "west")
    ids = [(await one.rooms.find(ann, name))[0].id for name in ("east", "west", "nobody")]
    here = {ids[0]: 1, ids[1]: 2}
    for node in (one, two):
        # A node that does not answer in time is left out.
        while {k: v for k, v in (await node.rooms.present(ids)).items() if v} != here:
            pass
    sent: list[bytes] = []
    send = two.bus.send
    two.bus.send = lambda node, message: sent.append(message) or send(node, message)
    counted: list[int] = []
    while counted != [1, 0, 2]:
        counted = [each.participants for each in (await two.rooms.list(bob)).rooms]
    await two.rooms.get(bob, "west")
    assert not two.rooms._nodes.rooms
    assert not one.rooms._nodes._servers
    assert all(isinstance(decode(each), AskNode) for each in sent)
    one.hear_nothing()
    assert await two.rooms.present(ids) == {}
    assert not two.rooms._nodes.traffic._asked


@pytest.mark.parametrize("body", [b"", b"nothing", encode([*range(MAX_STATUSES + 1)])])
async def test_a_question_of_a_node_that_cannot_be_read_is_answered_with_nothing(nodes, body):
    assert nodes[0].rooms._nodes._own_statuses(body) == encode({})
