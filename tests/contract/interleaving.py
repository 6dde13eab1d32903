"""An adversary for units: two run statement by statement on one connection, in any order.

SQLite has one writer, so its units never meet. On a database with many writers they do, and each
statement may find what another unit has done half. `Interleaver` is a store whose units take turns
by a seed: each sees at once what the other did, committed or not, and is never held up. That is
worse than READ COMMITTED in all but one respect: a database makes a unit wait for a row that
another changed. `row_locks` adds that, for units that rely on it.

A query runs as a whole, on one view, as in every store. A unit that raises is undone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, TypeVar

import apsw

from folkmoot.bus import MemoryBus
from folkmoot.core.ports import NewRows, Row, SqlStatement, SqlValue, Unit
from folkmoot.store.schema import load_schema, migrate
from folkmoot.store.sqlite import COMMON_PRAGMAS
from folkmoot.store.tx import SqliteTx, drive

T = TypeVar("T")

ORDERS = 30
MOST_RERUNS = 10

# Whose turn a statement needs; nobody's outside `together`.
WHO: ContextVar[int | None] = ContextVar("who", default=None)


class DeadlockedError(Exception):
    """Two units wait for each other; a store runs one of them again."""


@cache
def empty_database() -> bytes:
    connection = apsw.Connection(":memory:")
    migrate(connection, load_schema())
    return connection.serialize("main")


class Interleaver:
    """A store in memory on which actions can be interleaved."""

    sole_writer = False

    def __init__(self, *, row_locks: bool = False) -> None:
        self.bus = MemoryBus()
        self.connection = apsw.Connection(":memory:")
        self.connection.deserialize("main", empty_database())
        for pragma in COMMON_PRAGMAS:
            self.connection.execute(pragma)
        self.tx = SqliteTx(self.connection, publishes=True)
        self._row_locks = row_locks
        self._locked: dict[tuple[str, int], Holding] = {}
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._blocked: dict[int, tuple[Holding, asyncio.Future[None]]] = {}

    async def write(self, unit: Unit[T], **how: bool) -> T:
        for _ in range(MOST_RERUNS):
            try:
                return await self._run(unit)
            except DeadlockedError:
                continue
        raise AssertionError("a unit is deadlocked again and again")

    async def _run(self, unit: Unit[T]) -> T:
        holding = Holding(self)
        try:
            result = await unit(holding)
        except BaseException:
            holding.undo()
            raise
        finally:
            self.unlock(holding)
        for subject, event in holding.events:
            self.bus.emit(subject, event)
        return result

    async def look_up(self, sql: str, key: str) -> Row | None:
        return await self.read(lambda tx: tx.fetch_one(sql, (key,)))

    async def read(self, query: Unit[T], *, long: bool = False) -> T:
        await self.turn()
        return drive(query, self.tx)

    def rows(self, sql: str, *params: SqlValue) -> list[Row]:
        return self.connection.execute(sql, params).fetchall()

    async def turn(self) -> None:
        """Wait for one's turn; where nothing is interleaved it comes at once."""
        who = WHO.get()
        if who is not None:
            self._waiting[who] = asyncio.get_running_loop().create_future()
            await self._waiting[who]

    def conflict(self, holding: Holding, rows: set[tuple[str, int]]) -> Holding | None:
        """Another unit that holds one of these rows."""
        owners = (self._locked.get(row) for row in rows)
        return next((each for each in owners if each not in (None, holding)), None)

    def lock(self, holding: Holding, rows: set[tuple[str, int]]) -> None:
        if self._row_locks and WHO.get() is not None:
            self._locked.update(dict.fromkeys(rows, holding))

    def unlock(self, holding: Holding) -> None:
        self._locked = {row: each for row, each in self._locked.items() if each is not holding}
        for who, (other, woken) in list(self._blocked.items()):
            if other is holding:
                del self._blocked[who]
                woken.set_result(None)

    async def wait_for(self, other: Holding) -> None:
        who = WHO.get()
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._blocked[who] = (other, woken)
        await woken

    async def together(self, seed: int, *actions: Callable[[], Awaitable[Any]]) -> list[Any]:
        """Run actions, whose statements take turns by the seed; what each answered or raised."""
        choose = random.Random(seed)
        tasks = [asyncio.ensure_future(_as(who, act)) for who, act in enumerate(actions)]
        while live := sum(not task.done() for task in tasks):
            if len(self._waiting) + len(self._blocked) < live:
                await asyncio.sleep(0)
            elif self._waiting:
                self._waiting.pop(choose.choice(sorted(self._waiting))).set_result(None)
            else:
                _, woken = self._blocked.pop(choose.choice(sorted(self._blocked)))
                woken.set_exception(DeadlockedError())
            await asyncio.sleep(0)
        return await asyncio.gather(*tasks, return_exceptions=True)


async def _as(who: int, act: Callable[[], Awaitable[T]]) -> T:
    WHO.set(who)
    return await act()


class Holding:
    """`core.ports.Tx` of one unit: what it did, so that it can be undone, and the rows it holds."""

    def __init__(self, store: Interleaver) -> None:
        self.events: list[tuple[str, Any]] = []
        self._store = store
        self._changes: list[bytes] = []

    async def _step(self, run: Callable[..., Coroutine[Any, Any, T]], *said: Any) -> T:
        store, connection = self._store, self._store.connection
        while True:
            await store.turn()
            rows: set[tuple[str, int]] = set()
            connection.set_update_hook(lambda _, __, table, row, rows=rows: rows.add((table, row)))
            connection.execute("SAVEPOINT step")
            session = apsw.Session(connection, "main")
            session.attach()
            try:
                result = await run(*said)
            except BaseException:
                connection.execute("ROLLBACK TO step")
                raise
            else:
                if (other := store.conflict(self, rows)) is None:
                    store.lock(self, rows)
                    self._changes.append(session.changeset())
                    return result
                connection.execute("ROLLBACK TO step")
            finally:
                session.close()
                connection.set_update_hook(None)
                connection.execute("RELEASE step")
            await store.wait_for(other)

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """What is one statement: `execute`, `fetch`, `fetch_one`, `next_sequence`."""
        return partial(self._step, getattr(self._store.tx, name))

    async def insert(self, *tables: NewRows, after: SqlStatement | None = None) -> bool:
        if after is not None and not await self.execute(*after):
            return False
        return await self._step(self._store.tx.insert, *tables)

    async def together(self, *statements: SqlStatement) -> list[list[Row]]:
        return [await self.fetch(*statement) for statement in statements]

    async def fetch_numbered(self, name: str, *statement: Any) -> Row | None:
        row = await self.fetch_one(*statement)
        return None if row is None else (*row, await self.next_sequence(name))

    def publish(self, subject: str, event: Any = None) -> None:
        self.events.append((subject, event))

    def undo(self) -> None:
        omit, connection = apsw.SQLITE_CHANGESET_OMIT, self._store.connection
        for changes in reversed(self._changes):
            inverted = apsw.Changeset.invert(changes)
            apsw.Changeset.apply(inverted, connection, conflict=lambda *_: omit)


async def broken_orders(
    store: Interleaver,
    actions: Callable[[], Sequence[Callable[[], Awaitable[Any]]]],
    holds: Callable[[list[Any]], Awaitable[bool] | bool],
) -> list[int]:
    """The seeds after whose orders something does not hold; each begins with the same database."""
    broken = []
    for seed in range(ORDERS):
        store.connection.execute("SAVEPOINT before")
        told = await store.together(seed, *actions())
        kept = holds(told)
        if not (kept if isinstance(kept, bool) else await kept):
            broken.append(seed)
        store.connection.execute("ROLLBACK TO before; RELEASE before")
    return broken
