"""The schema on PostgreSQL: that of SQLite, and the tables of nodes, made under a lock.

Nodes that start at the same time wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import asyncpg

from folkmoot.core import errors as e
from folkmoot.store import schema
from folkmoot.store.postgres.dialect import limit_idle, spelled_schema
from folkmoot.store.schema import RECORDED, count_applied, digest_of, tell_migrated

READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on'"
OLDEST_VERSION = 150_000
"""The first version of PostgreSQL that is known to work, as the server writes it."""
SEQUENCES = frozenset({"message_seq", "room_id"})
"""Counters that are sequences here, since every sender would wait for one row."""
LOCK = 0x666F6C6B


async def check_server(connection: Any, where: str) -> None:
    """Raise unless the server is supported."""
    async with connection.transaction():
        version = int(await connection.fetchval("SHOW server_version_num"))
        read_only = await connection.fetchval(READ_ONLY)
        encoding = await connection.fetchval("SHOW server_encoding")
    if version < OLDEST_VERSION:
        raise e.DatabaseTooOld(
            f"{where}: runs PostgreSQL {version // 10_000}; {OLDEST_VERSION // 10_000} or later is "
            "needed."
        )
    if read_only:
        raise e.DatabaseUnwritable(f"{where}: the server accepts no writes.")
    if encoding != "UTF8":
        raise e.DatabaseTooOld(
            f"{where}: keeps texts as {encoding}; create the database with ENCODING 'UTF8'."
        )


def load_schema() -> list[str]:
    """The texts that make a database, in order."""
    first, *steps = schema.load_schema()
    own = (files("folkmoot.store") / "postgres" / "schema.sql").read_text(encoding="utf-8")
    return [f"{first}\n{own}", *steps]


async def migrate(connection: Any, texts: Sequence[str], where: str) -> None:
    """Make the schema, or bring it to the newest, or raise what is wrong with the database."""
    async with connection.transaction():
        if await check_schema(connection, texts, where) == len(texts):
            return
    async with connection.transaction():
        await connection.execute(f"{limit_idle()}; SELECT pg_advisory_xact_lock({LOCK})")
        applied = await check_schema(connection, texts, where)
        for version, text in enumerate(texts[applied:], applied + 1):
            try:
                await connection.execute(spelled_schema(text))
            except asyncpg.PostgresError as error:
                raise e.MigrationFailed(f"Step {version} of the schema failed: {error}.") from error
            record = "INSERT INTO schema_migrations (version, sha256) VALUES ($1, $2)"
            await connection.execute(record, version, digest_of(text))
    tell_migrated(applied, len(texts))


def sequence_of(counter: str) -> str:
    """The name of the sequence behind a counter."""
    return f"{counter}_numbers"


async def check_schema(connection: Any, texts: Sequence[str], where: str) -> int:
    """How many of the texts the database has, if this program may use it."""
    tables = await connection.fetchval(
        "SELECT array_agg(tablename::text) FROM pg_tables WHERE schemaname = current_schema()"
    )
    if "schema_migrations" not in (tables or ()):
        if tables:
            raise e.DatabaseCorrupt(
                f"{where}: is not a Folkmoot database; it has other tables. Use an empty one."
            )
        return 0
    recorded = [row[0] for row in await connection.fetch(RECORDED)]
    return count_applied(recorded, texts, where, "an empty database")
