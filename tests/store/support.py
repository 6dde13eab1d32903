"""What the tests of the store share: a store, a table, and a writer to hold still."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from folkmoot.core.ports import Row, SqlValue, Tx, Unit
from folkmoot.store import SqliteStore

SECONDS = 300

OpenStore: TypeAlias = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(folder / "folkmoot.db", **options)
    try:
        yield store
    finally:
        await store.close()


def statement(sql: str, *params: SqlValue) -> Unit[int]:
    """A unit of one statement."""
    return lambda tx: tx.execute(sql, params)


def rows(sql: str, *params: SqlValue) -> Unit[list[Row]]:
    """A query of one statement."""
    return lambda tx: tx.fetch(sql, params)


def row(sql: str, *params: SqlValue) -> Unit[Row | None]:
    """The first row of a query."""
    return lambda tx: tx.fetch_one(sql, params)


make_table = statement(
    "CREATE TABLE IF NOT EXISTS notes (id BIGINT NOT NULL PRIMARY KEY, body TEXT NOT NULL)"
)


async def all_notes(tx: Tx) -> list[int]:
    return [row[0] for row in await tx.fetch("SELECT id FROM notes ORDER BY id")]


def insert(number: int, body: str = "x") -> Unit[int]:
    return statement("INSERT INTO notes (id, body) VALUES (?, ?)", number, body)


class Gate:
    """Where a thread of the store stays until it is let go, so that others gather behind it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._entered = asyncio.Event()
        self._leave = threading.Event()

    async def unit(self, tx: Tx) -> None:
        self.wait()

    def wait(self) -> None:
        self._loop.call_soon_threadsafe(self._entered.set)
        if not self._leave.wait(SECONDS):
            raise TimeoutError

    async def wait_in_loop(self) -> None:
        """Stay, where units run in the loop."""
        self._entered.set()
        async with asyncio.timeout(SECONDS):
            while not self._leave.is_set():  # noqa: ASYNC110 - others wait for it in threads
                await asyncio.sleep(0.01)

    async def entered(self) -> None:
        await self._entered.wait()

    def open(self) -> None:
        self._leave.set()


def in_thread(store: SqliteStore) -> Callable[[Unit[Any]], Awaitable[Any]]:
    """Read in a thread, which may be held still; the loop may not."""
    return partial(store.read, long=True)


@asynccontextmanager
async def held(ask: Callable[[Unit[None]], Awaitable[None]]) -> AsyncIterator[Gate]:
    """Hold the writer, or a reader, still until the gate is opened or the block ends."""
    gate = Gate()
    asking = asyncio.ensure_future(ask(gate.unit))
    await gate.entered()
    try:
        yield gate
    finally:
        gate.open()
        await asking
