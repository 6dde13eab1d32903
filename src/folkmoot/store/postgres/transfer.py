"""Copies a hub's database from its file to a PostgreSQL server: every row, with the same ids.

Both ends have the same schema, so the tables are the same. All is copied in one transaction
and compared before it is committed: a copy is whole, or nothing of it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import asyncpg
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.settings.types import without_password
from folkmoot.store import schema
from folkmoot.store.inspection import look_into
from folkmoot.store.postgres.dialect import CONNECT_SECONDS, POSTGRES, connecting, translate_error
from folkmoot.store.postgres.schema import (
    SEQUENCES,
    check_schema,
    check_server,
    load_schema,
    migrate,
    sequence_of,
)
from folkmoot.store.sqlite import run

AT_ONCE = 1_000
KEPT_APART = frozenset({"schema_migrations", "health"})
"""Tables that each database has for itself."""

FAMILY = "credentials"
"""The table whose rows refer to one another."""

Progress = Callable[[int, int], None]


class Transferred(Struct, frozen=True):
    """What was copied."""

    tables: int
    rows: int


async def copy_to_server(source: Path, url: str, progress: Progress) -> Transferred:
    """Copy a database that nobody has open to an empty one at a server."""
    where, texts = without_password(url), load_schema()
    try:
        with connecting(where, "the address"):
            connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS, statement_cache_size=0)
    except POSTGRES as error:
        raise translate_error(error, where) from error
    try:
        with closing(look_into(source, None)) as file:
            newest = schema.load_schema()
            if schema.check_schema(file, newest) != len(newest):
                raise e.TransferFailed(
                    f"{source}: has an older schema. Start the hub once and stop it: it migrates."
                )
            await check_server(connection, where)
            async with connection.transaction():
                if await check_schema(connection, texts, where):
                    await require_empty(connection, where)
            await migrate(connection, texts, where)
            async with connection.transaction():
                return await copy_rows(file, connection, progress)
    except POSTGRES as error:
        raise translate_error(error, where) from error
    finally:
        await connection.close()


async def require_empty(connection: Any, where: str) -> None:
    """Refuse a database in which a hub has been."""
    if await connection.fetchval("SELECT count(*) FROM meta"):
        raise e.DatabaseUnwritable(
            f"{where}: has the data of a hub already. Use an empty database."
        )


async def copy_rows(file: apsw.Connection, connection: Any, progress: Progress) -> Transferred:
    """Copy every table, referenced tables first."""
    tables = in_order(file)
    total = sum(run(file, f"SELECT COUNT(*) FROM {name}")[0][0] for name in tables)  # noqa: S608
    done = 0
    for name in tables:
        columns = [row[1] for row in run(file, f"PRAGMA table_info({name})")]
        await connection.execute(f"DELETE FROM {name}")  # noqa: S608 - what the schema put there
        here = TableDigest()
        query = f"SELECT {', '.join(columns)} FROM {name}"  # noqa: S608 - our own names
        source = file.execute(parents_first(query) if name == FAMILY else query)
        while rows := list(islice(source, AT_ONCE)):
            await send(connection, name, columns, rows)
            here.add(rows)
            done += len(rows)
            progress(done, total)
        there = TableDigest()
        async for record in connection.cursor(query):
            there.add([tuple(record)])
        if here != there:
            raise e.TransferFailed(f"The table {name} differs from the original. Nothing was kept.")
    for name in SEQUENCES:
        value = run(file, "SELECT value FROM counters WHERE name = ?", (name,))[0][0]
        used = value > 0
        await connection.execute(
            "SELECT setval($1, $2, $3)", sequence_of(name), max(1, value), used
        )
    return Transferred(len(tables), total)


async def send(connection: Any, name: str, columns: list[str], rows: list[Any]) -> None:
    """Add some rows to a table."""
    try:
        await connection.copy_records_to_table(name, records=rows, columns=columns)
    except asyncpg.CharacterNotInRepertoireError as error:
        raise e.TransferFailed(
            f"A text in the table {name} contains the character NUL, which PostgreSQL cannot store."
        ) from error


def parents_first(query: str) -> str:
    """The rows of the self-referencing table, each after its parent."""
    return (
        f"WITH RECURSIVE d (id, depth) AS (SELECT id, 0 FROM {FAMILY} WHERE parent_id IS NULL "  # noqa: S608
        f"UNION ALL SELECT c.id, d.depth + 1 FROM {FAMILY} c JOIN d ON c.parent_id = d.id) "
        f"{query} NATURAL JOIN d ORDER BY depth"
    )


def in_order(file: apsw.Connection) -> list[str]:
    """The tables, each after those it references."""
    found = run(file, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    names = [
        row[0] for row in found if row[0] not in KEPT_APART and not row[0].startswith("sqlite_")
    ]
    refers = {
        name: {row[2] for row in run(file, f"PRAGMA foreign_key_list({name})")} - {name}
        for name in names
    }
    ordered: list[str] = []

    def put(name: str) -> None:
        if name not in ordered:
            for other in sorted(refers[name]):
                put(other)
            ordered.append(name)

    for name in names:
        put(name)
    return ordered


class TableDigest:
    """Tells two sets of rows apart, whatever their order."""

    def __init__(self) -> None:
        self._sum = 0
        self._count = 0

    def add(self, rows: Any) -> None:
        """Take rows in."""
        for row in rows:
            self._sum ^= int.from_bytes(sha256(repr(tuple(row)).encode()).digest())
            self._count += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableDigest) and (self._sum, self._count) == (
            other._sum,
            other._count,
        )

    __hash__ = None  # type: ignore[assignment]
