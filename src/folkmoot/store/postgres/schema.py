"""Migrations on PostgreSQL: the same files as on SQLite, applied under a lock.

Nodes that start at the same time wait for each other, and a migration only adds, so that nodes of
the release before go on working beside those of this one.
"""

from __future__ import annotations

import time
from typing import Any

import asyncpg

from folkmoot.core import errors as e
from folkmoot.store.postgres.backends import CREATE_BACKEND_HOMES
from folkmoot.store.postgres.dialect import limit_idle, spelled_schema
from folkmoot.store.postgres.rates import CREATE_RATES
from folkmoot.store.postgres.sessions import CREATE_COUNTS, CREATE_HOMES
from folkmoot.store.schema import CREATE_RECORD, Migration

READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on'"
OLDEST_VERSION = 150_000
"""The first version of PostgreSQL that is known to work, as the server writes it."""
SEQUENCES = frozenset({"message_seq", "room_id"})
"""Counters that are sequences here, since every sender would wait for one row."""
CREATE_VISITS = """CREATE TABLE IF NOT EXISTS room_visits (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    account_id TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential_id TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (room_id, account_id)
)"""
OF_NODES = {
    "rate_counts": CREATE_RATES,
    "session_homes": CREATE_HOMES,
    "session_counts": CREATE_COUNTS,
    "backend_homes": CREATE_BACKEND_HOMES,
    "room_visits": CREATE_VISITS,
}
"""Tables that only nodes need, and how they are made."""
LOCK = 0x666F6C6B
"""The number of the lock that whoever migrates holds."""


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


async def migrate(connection: Any, known: list[Migration], where: str) -> None:
    """Bring the database to the newest schema, or raise what is wrong with it."""
    async with connection.transaction():
        version = await check_schema(connection, known, where)
    while version < len(known):
        async with connection.transaction():
            await connection.execute(f"{limit_idle()}; SELECT pg_advisory_xact_lock({LOCK})")
            version = await check_schema(connection, known, where)
            if version == 0:
                for statement in create_sequences():
                    await connection.execute(statement)
            if version < len(known):
                await apply(connection, known[version])
                version += 1
    async with connection.transaction():
        for table, create in OF_NODES.items():
            if not await connection.fetchval("SELECT to_regclass($1)::text", table):
                await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
                await connection.execute(create)


def create_sequences() -> list[str]:
    """The statements that give a new database its sequences."""
    return [f"CREATE SEQUENCE {sequence_of(name)}" for name in sorted(SEQUENCES)]


def sequence_of(counter: str) -> str:
    """The name of the sequence behind a counter."""
    return f"{counter}_numbers"


async def check_schema(connection: Any, known: list[Migration], where: str) -> int:
    """The version the database is at, if this program may use it."""
    tables = await connection.fetchval(
        "SELECT array_agg(tablename::text) FROM pg_tables WHERE schemaname = current_schema()"
    )
    if "schema_migrations" not in (tables or ()):
        if tables:
            raise e.DatabaseCorrupt(
                f"{where}: is not a Folkmoot database; it has other tables. Use an empty one."
            )
        return 0
    applied = await connection.fetch(
        "SELECT version, sha256 FROM schema_migrations ORDER BY version"
    )
    if len(applied) > len(known):
        raise e.DatabaseNewer(
            f"{where}: was written by a newer Folkmoot (schema {len(applied)}; this one knows "
            f"{len(known)}). Use that version, or a backup from before."
        )
    for number, digest in applied:
        migration = known[number - 1]
        if migration.sha256 != digest:
            raise e.MigrationEdited(
                f"{where}: was created with a different {migration.file} than this program's; an "
                "applied migration must not be edited."
            )
    return len(applied)


async def apply(connection: Any, migration: Migration) -> None:
    """Run a migration's statements and record it, in the transaction that is open."""
    for statement in migration.statements():
        try:
            await connection.execute(spelled_schema(statement))
        except asyncpg.PostgresError as error:
            first = statement.splitlines()[0]
            raise e.MigrationFailed(f"{migration.file} failed at '{first}': {error}.") from error
    if migration.version == 1:
        await connection.execute(spelled_schema(CREATE_RECORD))
    await connection.execute(
        "INSERT INTO schema_migrations (version, name, sha256, applied_at) VALUES ($1, $2, $3, $4)",
        migration.version,
        migration.name,
        migration.sha256,
        int(time.time()),
    )
