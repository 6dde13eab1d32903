"""Two processes that think they own a room: what the replaced one does leaves no trace.

Both run statement by statement on a real server, in many orders. The key of messages would hide
most of what a missing fence does to them, so snapshots, trims, kicks and changes are looked at.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Unit
from folkmoot.rooms import Rooms, fence, read_patch
from folkmoot.rooms.fence import RoomElsewhere
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import RoomRecord
from folkmoot.store.postgres.nodes import NodeRooms
from tests import postgres
from tests.harness import reached
from tests.mail.support import StillClock
from tests.rooms.gathering import Gathering, chat, envelope, gathered

VERSIONS = [
    pytest.param(18, id="18", marks=postgres.needs_own(18)),
    pytest.param(16, id="16", marks=postgres.needs_own(16)),
]
ORDERS = 12
# Among so many, one goes wrong without a fence, however slow the machine is.
ENOUGH_ORDERS = 10 * ORDERS
# After so long a statement is thought to wait for the other process.
BLOCKED_SECONDS = 0.02


CALL = {"method": "tools/call", "params": {"name": "mow"}}
PROPOSAL = envelope("mcp.proposal.tools/call", CALL, to=["bob"], id="p1")


# Which of the actions a statement belongs to.
WHO: ContextVar[int] = ContextVar("who", default=0)


class Turns:
    """Lets one statement run at a time, in an order by a seed, which also says who is slow."""

    def __init__(self) -> None:
        self.is_on = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._done = asyncio.Event()

    async def step(self, work: Callable[[], Awaitable[Any]]) -> Any:
        if self.is_on:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((WHO.get(), turn))
            await turn
        try:
            return await work()
        finally:
            self._done.set()

    async def run(self, seed: int, *actions: Awaitable[Any]) -> list[Any]:
        choose, self.is_on = random.Random(seed), True
        paces = ((0.001, 1.0), (1.0, 0.1), (1.0, 1.0), (0.1, 1.0))[seed % 4]
        tasks = [asyncio.ensure_future(self._as(who, act)) for who, act in enumerate(actions)]
        both = asyncio.gather(*tasks, return_exceptions=True)
        while not both.done():
            await self._gathered(tasks)
            if not self._waiting:
                continue
            self._done.clear()
            [chosen] = choose.choices(self._waiting, [paces[who] for who, _ in self._waiting])
            self._waiting.remove(chosen)
            chosen[1].set_result(None)
            try:
                await asyncio.wait_for(self._done.wait(), BLOCKED_SECONDS)
            except TimeoutError:
                continue
        self.is_on = False
        # What the actions left to tasks of their own, such as giving a room back, goes on freely.
        for _, turn in self._waiting:
            if not turn.done():
                turn.set_result(None)
        self._waiting.clear()
        return await both

    async def _gathered(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Wait until all who go on want to do something, or seem to wait for another."""
        deadline = time.monotonic() + BLOCKED_SECONDS
        await asyncio.sleep(0)
        while time.monotonic() < deadline:
            waiting = {who for who, _ in self._waiting}
            if all(task.done() or who in waiting for who, task in enumerate(tasks)):
                return
            await asyncio.sleep(0.0005)

    async def _as(self, who: int, action: Awaitable[Any]) -> Any:
        WHO.set(who)
        return await action


class SteppedTx:
    """A transaction whose statements wait for their turns."""

    def __init__(self, tx: Any, turns: Turns) -> None:
        self._tx, self._turns = tx, turns

    def __getattr__(self, name: str) -> Any:
        done = getattr(self._tx, name)
        if name == "publish":
            return done
        return lambda *said, **named: self._turns.step(lambda: done(*said, **named))


class SteppedStore:
    """A store whose units run statement by statement, also their commits."""

    def __init__(self, store: Any, turns: Turns) -> None:
        self._store, self._turns = store, turns
        self.room_owners = NodeRooms(store.room_owners.process, self.write, self.read)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, unit: Unit[Any], *, single: bool = False) -> Any:
        async def stepped(tx: Any) -> Any:
            result = await unit(SteppedTx(tx, self._turns))
            if self._turns.is_on:
                await self._turns.step(lambda: asyncio.sleep(0))
            return result

        return await self._store.write(stepped, single=single)

    async def read(self, query: Unit[Any], *, long: bool = False) -> Any:
        return await self._turns.step(lambda: self._store.read(query, long=long))


class Pair(Gathering):
    """Two processes on one database; the lease of the first is over."""

    turns: Any = None
    second: Any = None
    execute: Any = None

    @property
    def first(self) -> Rooms:
        return self.rooms

    async def post(self, live: LiveRoom, raw: bytes) -> None:
        await live.post(self.ann.principal, Role.OWNER, raw)

    async def loaded(self, name: str, **spec: Any) -> tuple[RoomRecord, LiveRoom]:
        """A room of the first with ten messages in it."""
        await self.create(self.ann, name, **spec)
        record, _ = await self.first.find(self.ann, name)
        live = await self.first._live.load(record)
        for number in range(10):
            await self.post(live, chat(f"message {number}"))
        return record, live

    async def rows(self, room_id: int) -> list[Any]:
        """All that is stored of a room."""
        found = []
        for table in ("messages", "snapshots", "members", "shares", "proposals"):
            sql = f"SELECT * FROM room_{table} WHERE room_id = $1 ORDER BY 1, 2"
            found.append([tuple(row) for row in await self.execute(sql, room_id)])
        return [*found, await self.execute("SELECT * FROM rooms WHERE id = $1", room_id)]


@pytest.fixture(params=VERSIONS)
async def pair(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    import asyncpg

    from folkmoot.store.postgres import HubNode, PostgresStore

    url = await postgres.schema_of(tmp_path, request.param)
    connection = await asyncpg.connect(url)
    turns, clock = Turns(), StillClock()
    stores = [
        await PostgresStore.open(
            url,
            connections=4,
            node=HubNode(name, secrets.token_hex(8), shared=True, lease_seconds=1000),
        )
        for name in ("first", "second")
    ]
    try:
        one, two = [await gathered(SteppedStore(each, turns), clock) for each in stores]
        await connection.execute("UPDATE nodes SET until = 0 WHERE id = 'first'")
        more = {"turns": turns, "second": two.rooms, "execute": connection.fetch}
        async with one.rooms.running(), two.rooms.running():
            pair = Pair(one.store, clock, one.accounts, one.rooms, **more)
            pair.ann, pair.bob = await pair.people("ann", "bob")
            yield pair
    finally:
        for each in stores:
            await each.close()
        await connection.close()


async def trim(pair: Pair, live: LiveRoom) -> None:
    await pair.first._upkeep._trim(live, 6)


async def trim_shares(pair: Pair, live: LiveRoom) -> None:
    live.keep_messages = 5
    await pair.first._upkeep._keep_share(live)


async def save(pair: Pair, live: LiveRoom) -> None:
    await live.save()


async def say(pair: Pair, live: LiveRoom) -> None:
    await pair.post(live, chat("of the first"))


async def kick(pair: Pair, live: LiveRoom) -> None:
    await pair.post(live, envelope("room.kick", {"participant": "bob"}))


async def kick_from_memory(pair: Pair, live: LiveRoom) -> None:
    await kick(pair, live)
    await reached(lambda: not live.is_busy)


async def change(pair: Pair, live: LiveRoom) -> None:
    await pair.first.change(pair.ann, live.name, read_patch({"capabilities": ["chat.*"]}))


ACTIONS = [say, save, trim, trim_shares, kick, kick_from_memory, change]
# What comes with a message, so that the key of messages refuses it by itself.
HIDDEN = {say, kick}


async def broken_orders(pair: Pair, act: Any, orders: int) -> AsyncGenerator[int]:
    """The orders after which the second process and the database do not agree."""
    for seed in range(orders):
        name = f"room{seed}"
        record, live = await pair.loaded(name, durable=act is not kick_from_memory)
        await pair.first.enter(pair.bob, name)

        async def take_over(record: RoomRecord = record) -> list[Any]:
            live = await pair.second._live.load(record)
            await pair.post(live, chat("of the second"))
            await live.save()
            return await pair.rows(record.id)

        told, seen = await pair.turns.run(seed, act(pair, live), take_over())
        assert told is None or isinstance(told, e.RoomTakenOver | e.RoomUnavailable), told
        if not isinstance(seen, list):
            yield seed
            continue
        second = pair.second._live.get(record.id)
        stored = await pair.rows(record.id)
        # What was to go may still be there; nobody is shown it.
        oldest = second.machine.oldest_seq
        seqs = [row[1] for row in stored[0] if row[1] >= oldest]
        whole = seqs == list(range(oldest, second.machine.seq + 1)) or not record.durable
        if stored != seen or not whole:
            yield seed
        for rooms in (pair.first, pair.second):
            rooms._live.end(record.id, e.RoomUnavailable("the end"))


@pytest.mark.parametrize("act", ACTIONS, ids=lambda act: act.__name__)
async def test_what_a_replaced_owner_does_leaves_no_trace_in_any_order(pair, act):
    assert [seed async for seed in broken_orders(pair, act, ORDERS)] == []


@pytest.mark.parametrize("act", [a for a in ACTIONS if a not in HIDDEN], ids=lambda a: a.__name__)
async def test_without_the_fence_the_two_would_differ(pair, act, monkeypatch):
    monkeypatch.setattr(fence.Fence, "step", lambda *_: None)
    monkeypatch.setattr(fence.Fence, "guard", lambda _, unit: unit)
    async with aclosing(broken_orders(pair, act, ENOUGH_ORDERS)) as broken:
        assert await anext(broken, None) is not None


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
async def test_whoever_was_replaced_is_told_and_closes_its_connections(pair, durable):
    record, live = await pair.loaded("square", durable=durable)
    await pair.second.enter(pair.bob, "square")
    before = await pair.rows(record.id)
    if durable:
        with pytest.raises(e.RoomTakenOver):
            await pair.post(live, chat("too late"))
        assert pair.first._live.get(record.id) is None
    else:
        kicked = envelope("room.kick", {"participant": "bob"})
        with pytest.raises(e.RoomUnavailable):
            await pair.post(live, kicked)
        await reached(lambda: not live.is_busy)
    with pytest.raises((e.RoomTakenOver, RoomElsewhere)):
        await pair.first.change(pair.ann, "square", read_patch({"capabilities": ["chat.*"]}))
    assert await pair.rows(record.id) == before


@pytest.mark.parametrize("act", [trim, trim_shares], ids=lambda act: act.__name__)
async def test_a_room_that_is_taken_while_it_is_trimmed_loses_no_more_rows(pair, act):
    record, live = await pair.loaded("square")
    store: Any = pair.first._live.store
    write, units = store.write, 0
    seen: list[Any] = []

    async def late(unit: Unit[Any], **how: Any) -> Any:
        nonlocal units
        units += 1
        if units == 2:
            # The room begins later already; what is before that is about to be removed.
            await pair.second._live.load(record)
            seen.extend(await pair.rows(record.id))
        return await write(unit, **how)

    store.write = late
    with pytest.raises(e.RoomTakenOver):
        await act(pair, live)
    assert seen[0]
    assert await pair.rows(record.id) == seen


async def test_a_room_is_taken_only_from_those_who_are_gone_or_hand_it_over(pair):
    await pair.execute("UPDATE nodes SET until = 1e12")
    record, live = await pair.loaded("square")
    owners = pair.second._live.owners
    there = await owners.take(record.id)
    first = pair.first._live.owners.process
    assert (there.epoch, there.process) == (live.journal.fence.epoch, first)
    with pytest.raises(RoomElsewhere):
        await pair.second.enter(pair.ann, "square")
    live.end(e.RoomUnavailable("handed over"))
    await pair.first._live.release(live)
    taken = await owners.take(record.id)
    assert (taken.process, taken.epoch) == (owners.process, there.epoch + 1)
    assert taken.last_seq == live.machine.seq
    assert not await owners.release(record.id, there.epoch)
    assert await owners.release(record.id, taken.epoch, to=there.process)
    assert await owners.take(-1) is None


async def test_of_many_who_take_a_room_at_once_one_gets_it(pair):
    await pair.execute("UPDATE nodes SET until = 1e12")
    both = [rooms._live.owners for rooms in (pair.first, pair.second)]
    for number in range(ORDERS):
        await pair.create(pair.ann, f"room{number}")
        record, _ = await pair.first.find(pair.ann, f"room{number}")
        said = await pair.turns.run(number, *(each.take(record.id) for each in both if each))
        assert len({(owner.process, owner.epoch) for owner in said}) == 1


async def test_each_process_looks_after_its_own_rooms_and_one_after_the_rest(pair):
    await pair.execute("UPDATE nodes SET until = 1e12")
    rooms = {"mine": pair.first, "other": pair.second, "free": pair.second}
    for name, there in rooms.items():
        await pair.create(pair.ann, name, policy={"keep_days": 1})
        live, _ = await there.enter(pair.ann, name)
        await pair.post(live, chat("old"))
        if name == "free":
            pair.second._live.end(live.room_id, e.RoomUnavailable("unloaded"))
            await pair.second._live.release(live)  # type: ignore[arg-type]
    pair.clock.seconds += 3 * 86_400

    async def left() -> list[str]:
        found = "SELECT name FROM rooms WHERE id IN (SELECT room_id FROM room_messages)"
        return sorted(row[0] for row in await pair.execute(found))

    assert await left() == ["free", "mine", "other"]
    await pair.first._upkeep.round()
    assert await left() == ["other"]
    await pair.second._upkeep.round()
    assert await left() == []


async def test_rooms_of_a_hub_that_stops_are_free_at_once(pair):
    await pair.execute("UPDATE nodes SET until = 1e12")
    await pair.loaded("square")
    await pair.first._live.release_all()
    live, _ = await pair.second.enter(pair.ann, "square")
    assert live.status.last_seq == 10
