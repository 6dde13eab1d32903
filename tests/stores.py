"""The store that tests of services run on: SQLite, or PostgreSQL where the run asks for it."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from folkmoot.core.ports import Tx
from folkmoot.store import SqliteStore
from tests import postgres

CHOSEN = "TEST_STORE"
# How many nodes a hub has in tests that use one from outside.
NODES = int(os.environ.get("TEST_NODES", "1"))
ON_POSTGRES = NODES > 1 or os.environ.get(CHOSEN) == "postgres"


async def open_store(path: Path, **options: Any) -> Any:
    """A store of its own for a file, or for the schema that stands for it."""
    if not ON_POSTGRES:
        return await SqliteStore.open(path, **options)
    from folkmoot.store.postgres import HubNode, PostgresStore

    kept = {name: value for name, value in options.items() if name in {"bus", "queue"}}
    url = await postgres.schema_of(path)
    node = HubNode(secrets.token_hex(8), secrets.token_hex(8), shared=True)
    return await PostgresStore.open(url, connections=4, node=node, **kept)


TABLES = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema()"
REFUSE = """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''full'' USING ERRCODE = ''53100''; END';
    CREATE TRIGGER refused BEFORE INSERT ON {} EXECUTE FUNCTION refuse()"""


@asynccontextmanager
async def held_writes(store: Any) -> AsyncIterator[None]:
    """Let whoever writes wait meanwhile; whoever reads need not."""
    if ON_POSTGRES:
        async with store._pool.acquire() as connection, connection.transaction():
            found = [row[0] for row in await connection.fetch(TABLES)]
            # The server would end a session that asks nothing for a while.
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            # Reading a room takes it, and a lease is renewed whatever else is written.
            tables = ", ".join(each for each in found if each not in {"nodes", "room_owners"})
            await connection.execute(f"LOCK TABLE {tables} IN EXCLUSIVE MODE")
            yield
        return
    over = threading.Event()

    async def keep_busy(_: Tx) -> None:
        over.wait()

    busy = asyncio.ensure_future(store.write(keep_busy))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        over.set()
    await busy


class OneHeld:
    """A store whose first unit waits, also if its caller leaves, and that later ones overtake."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.begun = 0
        self.go_on = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, unit: Any, **how: Any) -> Any:
        self.begun += 1
        return await asyncio.shield(asyncio.ensure_future(self._write(self.begun, unit, how)))

    async def _write(self, number: int, unit: Any, how: dict[str, Any]) -> Any:
        if number == 1:
            await self.go_on.wait()
        return await self._store.write(unit, **how)


@asynccontextmanager
async def full_disk(store: Any, disk: Any, table: str) -> AsyncIterator[None]:
    """Have the disk full meanwhile; on PostgreSQL it says so for the rows of a table."""
    if not ON_POSTGRES:
        disk.full = True
        yield
        disk.full = False
        return
    async with store._pool.acquire() as connection:
        await connection.execute(REFUSE.format(table))
    yield
    async with store._pool.acquire() as connection:
        await connection.execute("DROP FUNCTION refuse CASCADE")


async def is_in_tables(store: Any, text: str) -> bool:
    """Whether PostgreSQL has a text in any table, as text or in bytes."""
    async with store._pool.acquire() as connection:
        for (table,) in await connection.fetch(TABLES):
            rows = await connection.fetch(f"SELECT t::text FROM {table} t")
            if any(text in row[0] or text.encode().hex() in row[0] for row in rows):
                return True
    return False
