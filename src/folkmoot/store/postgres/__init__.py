"""`core.ports.Store` on a PostgreSQL server: the same units, which others may race with.

The *dialect* is what PostgreSQL says differently: addresses, types and errors. A *statement* is
written for SQLite and spelled for PostgreSQL by the transaction (`tx`) that runs it. The *schema*
is that of SQLite and the tables of nodes. A *node* is a hub that uses a database, by a
*lease*, and a *timeline* says which of its servers answers. `transfer` copies a database from its
file to a server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from folkmoot.core.ports import Unit
from folkmoot.settings.types import without_password
from folkmoot.store.inspection import AWAITED_IDS, KEY_IDS, OPENERS, DatabaseInfo
from folkmoot.store.postgres.dialect import (
    CONNECT_SECONDS,
    POSTGRES,
    connecting,
    translate_error,
    use_our_types,
)
from folkmoot.store.postgres.nodes import HubNode, list_nodes
from folkmoot.store.postgres.schema import check_schema, check_server, load_schema
from folkmoot.store.postgres.store import PostgresStore
from folkmoot.store.postgres.transfer import Transferred, copy_to_server
from folkmoot.store.postgres.tx import PostgresTx

T = TypeVar("T")


async def inspect_server(url: str) -> DatabaseInfo:
    """What can be told of a database at a server; raises what is wrong when it cannot be read."""
    async with looking_at(url) as connection:
        await check_server(connection, without_password(url))
        schema = await check_schema(connection, load_schema(), without_password(url))
        key, awaited, openers = [
            [str(row[0]) for row in await connection.fetch(sql)] if schema else []
            for sql in (KEY_IDS, AWAITED_IDS, OPENERS)
        ]
        size = await connection.fetchval("SELECT pg_database_size(current_database())")
        version = await connection.fetchval("SHOW server_version")
    return DatabaseInfo(
        path=without_password(url),
        size=size,
        wal_size=0,
        schema=schema,
        newest_schema=len(load_schema()),
        engine=f"PostgreSQL {version}",
        master_key_id=key[0] if key else None,
        awaited_key_id=awaited[0] if awaited else None,
        opened_by=tuple(openers),
    )


@asynccontextmanager
async def looking_at(url: str) -> AsyncIterator[Any]:
    """A connection of its own, on which nothing is changed."""
    try:
        with connecting(without_password(url)):
            connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS, statement_cache_size=0)
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                await use_our_types(connection)
                yield connection
        finally:
            await connection.close()
    except POSTGRES as error:
        raise translate_error(error, without_password(url)) from error


async def ask_server(url: str, query: Unit[T]) -> T:
    """The answer of a query that changes nothing."""
    async with looking_at(url) as connection:
        return await query(PostgresTx(connection))
