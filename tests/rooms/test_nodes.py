"""One hub on three nodes: a room is used from any of them, whoever owns it, and outlives its owner.

Each node has its own connection to PostgreSQL and to NATS, both real, in one process.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.msgpack import encode

from folkmoot.accounts import Accounts
from folkmoot.bus.limits import MAX_SENT_BYTES
from folkmoot.cluster import CallAnswered, Place, decode
from folkmoot.cluster.messages import AskNode
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import RoomOptions, Rooms, Visitor, read_patch, read_spec, visitor_of
from folkmoot.rooms.limits import MAX_STATUSES, REMOTE_IDLE_SECONDS
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import RoomRecord
from folkmoot.rooms.remote import RemoteRoom
from folkmoot.vault import Vault
from tests import nats, postgres
from tests.mail.support import KEY, StillClock
from tests.ports import free_port
from tests.rooms.gathering import Ear, Ears, chat, envelope

pytestmark = [*nats.NEEDED, *postgres.needs_own()]

LEASE_SECONDS = 10.0
"""Longer than a busy machine lets a process wait; who dies ends its lease at once."""
WAIT_SECONDS = 60.0
"""For what must happen, however busy the machine is."""


class Member:
    """One node of the hub."""

    def __init__(
        self, bus: Any, store: Any, accounts: Accounts, rooms: Rooms, stack: AsyncExitStack
    ) -> None:
        self.bus, self.store, self.accounts, self.rooms = bus, store, accounts, rooms
        self._stack = stack

    async def join(
        self, visitor: Visitor, name: str = "square", ear: Ear | None = None, **how: Any
    ) -> tuple[Ear, Any]:
        """Come in, and wait for the welcome."""
        ear = ear or Ear()
        room, role = await self.rooms.enter(visitor, name)
        room.join(ear, visitor, role, **how)
        async with asyncio.timeout(WAIT_SECONDS):
            await ear.until_kind("system.welcome")
        return ear, room

    async def stop(self) -> None:
        """Stop as a hub does: rooms are handed over."""
        await self._stack.aclose()

    async def die(self) -> None:
        """Do nothing more, without a word: the bus is cut and the lease ends."""
        self.bus.receive(lambda *_: None)
        self.bus.send = lambda *_: False
        async with self.store._pool.acquire() as connection:
            await connection.execute("UPDATE nodes SET until = 0 WHERE boot = $1", self.bus.node)
        self.store._lease.is_lost = True


class Hub:
    """All nodes, and the people of the hub."""

    def __init__(self, nodes: list[Member], accounts: Accounts) -> None:
        self.nodes, self.accounts = nodes, accounts

    async def people(self, *handles: str) -> list[Visitor]:
        return [visitor_of((await self.accounts.register(each)).account) for each in handles]


@asynccontextmanager
async def hub(
    folder: Path, count: int = 3, urls: Mapping[int, str] | None = None
) -> AsyncIterator[Hub]:
    """Some nodes, each of which may have a NATS server of its own."""
    from folkmoot.store.postgres import HubNode, PostgresStore

    url = await postgres.schema_of(folder)
    key, clock, nodes = secrets.token_bytes(32), StillClock(), []
    known: Accounts | None = None
    async with AsyncExitStack() as all_nodes:
        for number in range(count):
            stack = await all_nodes.enter_async_context(AsyncExitStack())
            bus = await stack.enter_async_context(nats.node((urls or {}).get(number, ""), key))
            node = HubNode(f"node{number}", bus.node, shared=True, lease_seconds=LEASE_SECONDS)
            store = await PostgresStore.open(url, connections=3, node=node, shared=bus)
            stack.push_async_callback(store.close)
            vault = await Vault.load(store, KEY)
            accounts = Accounts(store, clock, vault, policy="open", owners=store.room_owners)
            known = known or accounts
            rooms = Rooms(
                store,
                clock,
                accounts,
                epoch=store.identity.epoch,
                crowd=Ears,
                options=RoomOptions(chat={}),
                owners=store.room_owners,
                node_bus=bus,
            )
            await stack.enter_async_context(rooms.running())
            nodes.append(Member(bus, store, accounts, rooms, stack))
        assert known is not None
        await nats.until(lambda: all(one.bus.peers == count - 1 for one in nodes))
        yield Hub(nodes, known)


async def test_people_on_three_nodes_meet_in_a_room_that_one_of_them_owns(tmp_path: Path) -> None:
    async with hub(tmp_path) as many:
        ann, bob, cy = await many.people("ann", "bob", "cyd")
        one, two, three = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        ear_a, at_one = await one.join(ann)
        ear_b, at_two = await two.join(bob)
        ear_c, at_three = await three.join(cy)
        assert isinstance(at_one, LiveRoom)
        assert isinstance(at_two, RemoteRoom)
        assert isinstance(at_three, RemoteRoom)
        for number in range(5):
            at_one.receive(ear_a, chat(f"a{number}"))
            at_two.receive(ear_b, chat(f"b{number}"))
            at_three.receive(ear_c, chat(f"c{number}"))
        for ear in (ear_a, ear_b, ear_c):
            async with asyncio.timeout(WAIT_SECONDS):
                await ear._until(lambda ear=ear: len(ear.texts) >= 15)
        assert ear_a.texts == ear_b.texts == ear_c.texts
        assert [text for text in ear_a.texts if text[0] == "b"] == [f"b{n}" for n in range(5)]


async def test_a_message_is_posted_read_and_waited_for_from_a_node_that_is_not_the_owner(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.join(ann)
        raw = await two.rooms.post(bob, "square", chat("hello"))
        assert b"hello" in raw
        page = await two.rooms.messages(bob, "square", limit=10)
        assert b"hello" in bytes(page.messages[-1])
        waiting = asyncio.ensure_future(
            two.rooms.messages(bob, "square", after=page.last_seq, wait=20)
        )
        await asyncio.sleep(0.1)
        await one.rooms.post(ann, "square", chat("welcome"))
        async with asyncio.timeout(WAIT_SECONDS):
            later = await waiting
        assert b"welcome" in bytes(later.messages[-1])
        here = await two.rooms.participants(bob, "square")
        assert "ann" in str(here)


async def test_a_room_in_memory_is_used_from_another_node(tmp_path: Path) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square", "durable": False}))
        ear_a, _ = await one.join(ann)
        ear_b, room = await two.join(bob)
        room.receive(ear_b, chat("hello"))
        async with asyncio.timeout(WAIT_SECONDS):
            await ear_a._until(lambda: ear_a.texts == ["hello"])
            await ear_b._until(lambda: ear_b.texts == ["hello"])
        page = await two.rooms.messages(bob, "square", limit=10)
        assert b"hello" in bytes(page.messages[-1])


async def test_what_is_refused_elsewhere_is_told_as_here(tmp_path: Path) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        ear_a, room_a = await one.join(ann)
        ear_b, room_b = await two.join(bob)
        room_b.receive(ear_b, envelope("room.kick", {"participant": "ann"}))
        async with asyncio.timeout(WAIT_SECONDS):
            await ear_b.until_kind("system.error")
        with pytest.raises(Exception, match="no permission"):
            await two.rooms.post(bob, "square", envelope("room.kick", {"participant": "ann"}))
        room_a.receive(ear_a, envelope("room.kick", {"participant": "bob"}))
        async with asyncio.timeout(WAIT_SECONDS):
            assert await ear_b.until_closed() is CloseCode.NOT_ALLOWED
        with pytest.raises(e.RoomForbidden):
            await two.rooms.enter(bob, "square")


async def test_connections_elsewhere_stay_when_the_owner_dies(tmp_path: Path) -> None:
    async with hub(tmp_path) as many:
        ann, bob, cy = await many.people("ann", "bob", "cyd")
        one, two, three = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.join(ann)
        ear_b, at_two = await two.join(bob)
        ear_c, _ = await three.join(cy)
        at_two.receive(ear_b, chat("before"))
        async with asyncio.timeout(WAIT_SECONDS):
            await ear_c._until(lambda: "before" in ear_c.texts)
            await ear_b._until(lambda: "before" in ear_b.texts)
        await one.die()
        async with asyncio.timeout(WAIT_SECONDS):
            while "after" not in ear_c.texts:
                try:
                    await two.rooms.post(bob, "square", chat("after", id="after-1"))
                except e.RoomUnavailable:
                    await asyncio.sleep(0.2)
                    continue
                await ear_c._until(lambda: "after" in ear_c.texts)
            await ear_b._until(lambda: "after" in ear_b.texts)
        assert ear_b.is_open
        assert ear_c.is_open
        assert ear_b.texts.count("after") == 1
        for ear in (ear_b, ear_c):
            seqs = list(ear.seqs)
            assert seqs == list(range(seqs[0], seqs[0] + len(seqs))), "a gap, or twice"


async def test_a_connection_with_messages_nobody_knows_of_is_closed_when_the_owner_dies(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.join(ann)
        ear_b, at_two = await two.join(bob)
        await one.die()
        at_two.receive(ear_b, chat("lost", id="lost-1"))
        async with asyncio.timeout(WAIT_SECONDS):
            assert await ear_b.until_closed() is CloseCode.RESTARTING
            again, room = await two.join(bob, after=max(ear_b.seqs, default=0))
            room.receive(again, chat("lost", id="lost-1"))
            await again._until(lambda: "lost" in again.texts)
        page = await two.rooms.messages(bob, "square", limit=50)
        assert sum(b"lost-1" in bytes(one) for one in page.messages) == 1


async def test_a_node_that_stops_hands_its_rooms_over_and_closes_nobody_elsewhere(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path) as many:
        ann, bob, cy = await many.people("ann", "bob", "cyd")
        one, two, three = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.join(ann)
        ear_b, at_two = await two.join(bob)
        ear_c, _ = await three.join(cy)
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
        async with asyncio.timeout(WAIT_SECONDS):
            ear_a, _ = await coming
        assert ear_a.is_open
        await asyncio.sleep(1.0)
        talking.cancel()
        async with asyncio.timeout(WAIT_SECONDS):
            await ear_c._until(lambda: len(ear_c.texts) == said)
            await ear_b._until(lambda: len(ear_b.texts) == said)
        assert ear_b.is_open
        assert ear_c.is_open
        assert ear_b.texts == ear_c.texts == [f"t{number}" for number in range(1, said + 1)]


async def test_a_node_whose_rooms_are_not_handed_over_stops_all_the_same(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("folkmoot.rooms.rooms.STOP_SECONDS", 0.1)
        async with hub(tmp_path, 2) as many:
            (ann,) = await many.people("ann")
            one, two = many.nodes
            await one.rooms.create(ann, read_spec({"name": "square"}))
            await one.join(ann)
            patched.setattr(one.rooms._nodes, "_hand_over", lambda _: asyncio.Event().wait())
            async with asyncio.timeout(WAIT_SECONDS):
                await one.stop()
                # Nobody has to wait until the lease of that node is over.
                _, room = await two.join(ann)
            assert isinstance(room, LiveRoom)


async def test_a_post_while_the_owner_is_gone_is_refused_and_can_be_tried_again(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, _ = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        room = await one.rooms._live.load((await one.rooms.find(ann, "square"))[0])
        await room.post(ann.principal, Role.OWNER, chat("hello"))
        await two.rooms.post(ann, "square", chat("there"))
        one.bus.receive(lambda *_: None)
        with pytest.raises(e.RoomUnreachable, match="may have been done"):
            async with asyncio.timeout(WAIT_SECONDS):
                await two.rooms.post(ann, "square", chat("again"))


async def test_someone_whose_account_is_suspended_is_out_also_where_the_owner_is_not_heard(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.join(ann)
        ear_b, _ = await two.join(bob)
        one.bus.send = lambda *_: False
        assert bob.account is not None
        await many.accounts.suspend(bob.account, suspended=True)
        async with asyncio.timeout(WAIT_SECONDS):
            assert await ear_b.until_closed() is CloseCode.NOT_AUTHENTICATED


async def test_a_room_is_changed_and_removed_from_a_node_that_is_not_the_owner(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        ear_a, live = await one.join(ann)
        ear_b, _ = await two.join(bob)
        view = await two.rooms.change(ann, "square", read_patch({"access": "private"}))
        assert view.access == "private"
        assert (await one.rooms.get(ann, "square")).access == "private"
        assert not live.is_ended
        with pytest.raises(e.RoomForbidden):
            await two.rooms.change(bob, "square", read_patch({"access": "open"}))
        await two.rooms.delete(ann, "square")
        async with asyncio.timeout(WAIT_SECONDS):
            assert await ear_a.until_closed() is CloseCode.NO_SUCH_ROOM
            assert await ear_b.until_closed() is CloseCode.NO_SUCH_ROOM


async def test_someone_who_was_put_out_and_is_invited_on_another_node_comes_in_again(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.join(ann)
        await two.join(bob)
        await two.rooms.post(ann, "square", envelope("room.kick", {"participant": "bob"}))
        with pytest.raises(e.RoomForbidden):
            await two.rooms.enter(bob, "square")
        await two.rooms.invite(ann, "square", handle="bob")
        ear, _ = await two.join(bob)
        assert ear.is_open


async def test_no_backend_is_asked_of_a_room_that_was_taken_in_a_lapse(tmp_path: Path) -> None:
    async with hub(tmp_path, 1) as many:
        (ann,) = await many.people("ann")
        (one,) = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        _, live = await one.join(ann)
        lease = one.store._lease
        for taken in (False, True):
            lease._lease.ended()
            async with one.store._pool.acquire() as connection:
                if taken:
                    await connection.execute("UPDATE room_owners SET owner_epoch = owner_epoch + 1")
                await lease.renew(connection)
            assert lease.holds
            assert not live.is_ours
            assert await live.make_sure() is not taken
        assert live.is_taken_over


async def test_a_room_in_memory_goes_on_after_a_lapse_only_if_nobody_took_it(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        (ann,) = await many.people("ann")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square", "durable": False}))
        ear, live = await one.join(ann)
        one.store._lease._lease.ended()
        live.receive(ear, chat("still here"))
        async with asyncio.timeout(WAIT_SECONDS):
            await ear._until(lambda: ear.texts == ["still here"])
        await one.die()
        one.store._lease.is_lost = False
        await two.rooms.post(ann, "square", chat("of another"))
        one.store._lease._lease.ended()
        live.receive(ear, chat("too late"))
        async with asyncio.timeout(WAIT_SECONDS):
            assert await ear.until_closed() is CloseCode.RESTARTING
        assert ear.texts == ["still here"]


async def test_who_waits_for_a_room_that_is_left_is_told_and_so_is_who_asks_it_later(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, _ = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.join(ann)
        await two.rooms.post(ann, "square", chat("hello"))
        (remote,) = two.rooms._nodes.rooms
        one.bus.receive(lambda *_: None)
        asked = asyncio.ensure_future(remote.participants())
        await asyncio.sleep(0.1)
        two.rooms._nodes.leave(remote.room_id, e.RoomUnavailable("It is left."))
        async with asyncio.timeout(WAIT_SECONDS):
            with pytest.raises(e.RoomUnavailable):
                await asked
            with pytest.raises(e.RoomUnavailable):
                await remote.participants()


async def test_a_room_elsewhere_that_is_only_read_seeks_nobody_and_is_left_in_time(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, _ = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.join(ann)
        await two.rooms.messages(ann, "square", limit=10)
        (remote,) = two.rooms._nodes.rooms
        await nats.until(lambda: remote._edge.due == math.inf)
        remote.used_at -= REMOTE_IDLE_SECONDS + 1
        await two.rooms._upkeep.round()
        assert not two.rooms._nodes.rooms


async def test_a_room_that_ended_on_its_node_is_found_by_the_others(tmp_path: Path) -> None:
    async with hub(tmp_path, 2) as many:
        (ann,) = await many.people("ann")
        one, two = many.nodes
        for durable in (True, False):
            name = f"square-{durable}".lower()
            await one.rooms.create(ann, read_spec({"name": name, "durable": durable}))
            _, live = await one.join(ann, name)
            await two.join(ann, name)
            assert one.rooms._nodes._servers
            one.rooms._live.end(live.room_id, e.RoomUnavailable("It was changed."))
            assert not one.rooms._nodes._servers
            assert not one.rooms._nodes.traffic._owners
            async with asyncio.timeout(WAIT_SECONDS):
                while two.rooms._live.get(live.room_id) is None:
                    with suppress(e.RoomUnavailable):
                        await two.rooms.post(ann, name, chat("hello"))


async def test_a_room_that_failed_or_was_not_loaded_is_found_by_the_others(tmp_path: Path) -> None:
    async with hub(tmp_path, 2) as many:
        (ann,) = await many.people("ann")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        _, live = await one.join(ann)
        live.fail(e.RoomUnavailable("The disk is full."))
        async with asyncio.timeout(WAIT_SECONDS):
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
        async with asyncio.timeout(WAIT_SECONDS):
            await taken_by(two, ann)


async def taken_by(node: Member, visitor: Visitor) -> None:
    """Use the room until the node has it itself."""
    record, _ = await node.rooms.find(visitor, "square")
    while node.rooms._live.get(record.id) is None:
        with suppress(e.RoomUnavailable):
            await node.rooms.post(visitor, "square", chat("hello"))


async def test_a_node_that_stops_takes_no_room_and_serves_none_anew(tmp_path: Path) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        await one.rooms.create(ann, read_spec({"name": "other"}))
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
        async with asyncio.timeout(WAIT_SECONDS):
            await coming
        assert two.rooms._live.get(live.room_id) is not None
        # And whoever comes after it was handed over is told so.
        del one.rooms._nodes._servers[live.room_id]
        driven = one.rooms._nodes._serve(live.room_id, live.owner_epoch)
        assert driven is not None
        assert driven.machine._is_handed_over


async def test_who_comes_from_a_node_that_fell_silent_meanwhile_does_not_stay(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square"}))
        _, live = await one.join(ann)
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


@contextmanager
def two_servers() -> Iterator[list[nats.NatsProcess]]:
    """Two NATS servers that are one."""
    routes = [f"nats://127.0.0.1:{free_port()}" for _ in range(2)]
    servers = [
        nats.NatsProcess("--cluster_name", "one", "--cluster", mine, "--routes", ",".join(routes))
        for mine in routes
    ]
    try:
        yield servers
    finally:
        for one in servers:
            one.kill()


async def test_a_node_that_alone_lacks_the_bus_leaves_its_rooms_to_others(tmp_path: Path) -> None:
    with two_servers() as (one_server, other):
        async with hub(tmp_path, 2, {0: one_server.url, 1: other.url}) as many:
            ann, bob = await many.people("ann", "bob")
            one, two = many.nodes
            await one.rooms.create(ann, read_spec({"name": "square"}))
            ear_a, live = await one.join(ann)
            await one.rooms.create(ann, read_spec({"name": "brief", "durable": False}))
            ear_brief, _ = await one.join(ann, "brief")
            late, go_on = await slowly_loaded(one, ann, "late")
            live.receive(ear_a, chat("before"))
            ear_b, _ = await two.join(bob)
            one_server.kill()
            async with asyncio.timeout(WAIT_SECONDS):
                assert await ear_a.until_closed() is CloseCode.RESTARTING
                # The other node has it now, with everything that was said.
                await taken_by(two, bob)
            page = await two.rooms.messages(bob, "square", limit=50)
            assert b"before" in b"".join(bytes(each) for each in page.messages)
            assert ear_b.is_open
            # It is read where the bus is not, and said there it is not known to be lost.
            await two.rooms.post(bob, "square", chat("meanwhile"))
            page = await one.rooms.messages(ann, "square", limit=50)
            assert any(b"meanwhile" in bytes(each) for each in page.messages)
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
            one_server.start()
            await nats.until(lambda: one.bus.is_connected and not one.rooms._nodes.is_alone)
            async with asyncio.timeout(WAIT_SECONDS):
                while "after" not in ear_b.texts:
                    with suppress(e.RoomUnreachable):
                        await one.rooms.post(ann, "square", chat("after"))
                        await ear_b._until(lambda: "after" in ear_b.texts)


async def slowly_loaded(
    node: Member, visitor: Visitor, name: str
) -> tuple[RoomRecord, asyncio.Event]:
    """A room that is loaded as soon as an event is set."""
    await node.rooms.create(visitor, read_spec({"name": name}))
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


async def test_a_node_is_alone_only_as_long_as_others_reach_the_bus(tmp_path: Path) -> None:
    with two_servers() as (one_server, other):
        async with hub(tmp_path, 2, {0: one_server.url, 1: other.url}) as many:
            (ann,) = await many.people("ann")
            one, two = many.nodes
            await one.rooms.create(ann, read_spec({"name": "square"}))
            one_server.kill()
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
            async with one.store._pool.acquire() as connection:
                ended = "UPDATE nodes SET until = extract(epoch FROM clock_timestamp()) - 1"
                await connection.execute(f"{ended} WHERE boot = $1", two.bus.node)
            assert not await look(60.0)
            await nats.until(lambda: not one.rooms._nodes.is_alone)
            await one.rooms.post(ann, "square", chat("here again"))


async def test_who_leaves_a_room_needs_no_other_node_and_loads_none(tmp_path: Path) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob, cy = await many.people("ann", "bob", "cyd")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square", "access": "private"}))
        for each in ("bob", "cyd"):
            await one.rooms.invite(ann, "square", handle=each)
        ear, live = await one.join(ann)
        ear_b, _ = await two.join(bob)
        # The owner is not heard.
        two.bus.receive(lambda *_: None)
        async with asyncio.timeout(WAIT_SECONDS):
            await two.rooms.depart(bob, "square")
            assert await ear_b.until_closed() is CloseCode.NOT_ALLOWED
        with pytest.raises(e.RoomNotFound):
            await two.rooms.find(bob, "square")
        live.left(ear)
        await live.flushed()
        one.rooms._live.dropped(live)
        await one.rooms._live.release(live)
        await one.rooms.depart(cy, "square")
        assert one.rooms._live.get(live.room_id) is None


async def test_nodes_that_all_lack_the_bus_keep_their_rooms(tmp_path: Path) -> None:
    server = nats.NatsProcess()
    try:
        async with hub(tmp_path, 2, {0: server.url, 1: server.url}) as many:
            (ann,) = await many.people("ann")
            one, two = many.nodes
            await one.rooms.create(ann, read_spec({"name": "square"}))
            ear, live = await one.join(ann)
            server.kill()
            await nats.until(lambda: not one.bus.is_connected and not two.bus.is_connected)
            for node in (one, two):
                owners = node.store.room_owners
                async with asyncio.timeout(WAIT_SECONDS):
                    while await owners.is_bus_reached(60.0):
                        pass
            assert not one.rooms._nodes.is_alone
            live.receive(ear, chat("still here"))
            async with asyncio.timeout(WAIT_SECONDS):
                await ear._until(lambda: ear.texts == ["still here"])
            assert await two.store.room_owners.is_first() is False
    finally:
        server.kill()


async def test_one_node_removes_the_credentials_whose_time_is_over(tmp_path: Path) -> None:
    async with hub(tmp_path, 2) as many:
        await many.people("ann")
        one, two = many.nodes
        async with one.store._pool.acquire() as connection:
            await connection.execute("UPDATE credentials SET expires_at = 1")
            for node, left in ((two, 1), (one, 0)):
                await node.accounts.authentication.upkeep()
                assert await connection.fetchval("SELECT COUNT(*) FROM credentials") == left


async def said_in(one: Member, ann: Visitor, name: str, *, durable: bool, count: int) -> int:
    """Make a room in which much was said; the `seq` of the last message."""
    await one.rooms.create(ann, read_spec({"name": name, "durable": durable}))
    ear, room = await one.join(ann, name)
    for number in range(count):
        room.receive(ear, chat(f"{number} " + 60_000 * "x"))
        await room.flushed()
    return max(ear.seqs)


async def test_many_who_resume_together_at_another_node_get_all_in_one_session(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        for durable in (True, False):
            name = f"square-{durable}".lower()
            last = await said_in(one, ann, name, durable=durable, count=30)
            before = two.rooms._nodes.traffic._sessions
            room, role = await two.rooms.enter(bob, name)
            epoch = one.rooms._live.get(room.room_id).status.epoch
            ears = [Ear() for _ in range(16)]
            for ear in ears:
                room.join(ear, bob, role, after=0, epoch=epoch)
            async with asyncio.timeout(WAIT_SECONDS):
                for ear in ears:
                    await ear.until_seq(last)
            for ear in ears:
                assert ear.seqs[:last] == list(range(1, last + 1))
                assert ear.is_open
            assert two.rooms._nodes.traffic._sessions == before + 1
            for ear in ears:
                room.left(ear)


async def test_who_resumes_at_another_node_and_reads_nothing_is_told_no_more_than_a_page(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        last = await said_in(one, ann, "square", durable=True, count=40)
        slow, fast = Ear(), Ear()
        slow.reads.clear()
        room, role = await two.rooms.enter(bob, "square")
        epoch = room.status.epoch
        room.join(slow, bob, role, after=0, epoch=epoch)
        room.join(fast, bob, role, after=0, epoch=epoch)
        async with asyncio.timeout(WAIT_SECONDS):
            await fast.until_seq(last)
        assert len(slow.seqs) < last
        slow.reads.set()
        async with asyncio.timeout(WAIT_SECONDS):
            await slow.until_seq(last)
        assert slow.seqs[:last] == list(range(1, last + 1))


async def test_what_is_too_large_for_the_bus_does_not_keep_the_rest_from_being_done(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 1) as many:
        (one,) = many.nodes
        seen: list[Any] = []
        driven = one.rooms._nodes.traffic.add_edge(7, seen.append, durable=True)
        driven.machine.ask(1, bytes(MAX_SENT_BYTES + 1))
        place = Place("another", 1)
        driven.run([*driven.machine.owner_is(place, one.rooms._nodes.traffic.now()), "the rest"])
        assert "the rest" in seen
        # Whoever asked is told, and it is not sent again.
        assert CallAnswered(1, None) in seen
        assert driven.machine.is_idle


async def test_proposals_of_rooms_in_memory_elsewhere_are_listed_at_any_node(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square", "durable": False}))
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
        one.bus.receive(lambda *_: None)
        assert not (await two.rooms.asks.open_for(ann)).complete


async def test_an_invitation_holds_after_a_kick_from_a_room_in_memory(tmp_path: Path) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        await one.rooms.create(ann, read_spec({"name": "square", "durable": False}))
        _, live = await one.join(ann)
        ear, _ = await two.join(bob)
        write, go_on = one.store.write, asyncio.Event()

        async def slowly(unit: Any, **how: Any) -> Any:
            await go_on.wait()
            return await write(unit, **how)

        one.store.write = slowly
        kick = envelope("room.kick", {"participant": "bob"})
        kicking = asyncio.ensure_future(two.rooms.post(ann, "square", kick))
        async with asyncio.timeout(WAIT_SECONDS):
            assert await ear.until_closed() is CloseCode.NOT_ALLOWED
        inviting = asyncio.ensure_future(two.rooms.invite(ann, "square", handle="bob"))
        await asyncio.wait((inviting,), timeout=1)
        go_on.set()
        async with asyncio.timeout(WAIT_SECONDS):
            await asyncio.gather(kicking, inviting)
            await nats.until(lambda: not live.is_busy)
            await two.join(bob)


async def test_lists_of_rooms_count_who_is_in_them_at_any_node_and_keep_no_session(
    tmp_path: Path,
) -> None:
    async with hub(tmp_path, 2) as many:
        ann, bob = await many.people("ann", "bob")
        one, two = many.nodes
        for name in ("east", "west", "nobody"):
            await one.rooms.create(ann, read_spec({"name": name}))
        for name in ("east", "west"):
            await one.join(ann, name)
        await one.join(bob, "west")
        ids = [(await one.rooms.find(ann, name))[0].id for name in ("east", "west", "nobody")]
        here = {ids[0]: 1, ids[1]: 2}
        for node in (one, two):
            async with asyncio.timeout(WAIT_SECONDS):
                # A node that does not answer in time is left out.
                while {k: v for k, v in (await node.rooms.present(ids)).items() if v} != here:
                    pass
        sent: list[bytes] = []
        send = two.bus.send

        def noted(node: str, message: bytes) -> bool:
            sent.append(message)
            return send(node, message)

        two.bus.send = noted
        async with asyncio.timeout(WAIT_SECONDS):
            counted: list[int] = []
            while counted != [1, 0, 2]:
                counted = [each.participants for each in (await two.rooms.list(bob)).rooms]
        await two.rooms.get(bob, "west")
        assert not two.rooms._nodes.rooms
        assert not one.rooms._nodes._servers
        assert all(isinstance(decode(each), AskNode) for each in sent)
        one.bus.receive(lambda *_: None)
        assert await two.rooms.present(ids) == {}
        assert not two.rooms._nodes.traffic._asked


@pytest.mark.parametrize("body", [b"", b"nothing", encode([*range(MAX_STATUSES + 1)])])
async def test_a_question_of_a_node_that_cannot_be_read_is_answered_with_nothing(
    tmp_path: Path, body: bytes
) -> None:
    async with hub(tmp_path, 1) as many:
        assert many.nodes[0].rooms._nodes._own_statuses(body) == encode({})
