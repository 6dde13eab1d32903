"""Looking at a database without changing it: what it is, and whether it is whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
from msgspec import Struct

from folkmoot.core.errors import DatabaseCorrupt
from folkmoot.store.schema import load_migrations, schema_version
from folkmoot.store.sqlite import connect, run, translate

MAX_FAULTS = 20
INTEGRITY_CHECK = f"PRAGMA integrity_check({MAX_FAULTS})"
KEY_ID = "SELECT value FROM meta WHERE key = 'master_key_id'"


class DatabaseInfo(Struct, frozen=True):
    """What can be told of a database file; sizes are in bytes."""

    path: str
    size: int
    wal_size: int
    schema: int
    newest_schema: int
    sqlite: str
    master_key_id: str | None


def write_ahead_log(path: Path) -> Path:
    """The side file that is there as long as someone has the database open, or died with it."""
    return path.with_name(path.name + "-wal")


def look_into(path: Path, vfs: str | None) -> apsw.Connection:
    """Open a database to read it, and leave nothing beside one that nobody has open."""
    at_rest = vfs is None and not write_ahead_log(path).exists()
    return connect(path, read_only=True, at_rest=at_rest, vfs=vfs)


def inspect_database(path: Path, *, vfs: str | None = None) -> DatabaseInfo:
    """What can be told of a database file; raises what is wrong when it cannot be read."""
    with closing(look_into(path, vfs)) as connection:
        try:
            schema = schema_version(connection)
            key = run(connection, KEY_ID) if schema else []
        except apsw.Error as error:
            raise translate(error, path) from error
    wal = write_ahead_log(path)
    return DatabaseInfo(
        path=str(path),
        size=path.stat().st_size,
        wal_size=wal.stat().st_size if wal.exists() else 0,
        schema=schema,
        newest_schema=len(load_migrations()),
        sqlite=apsw.sqlite_lib_version(),
        master_key_id=key[0][0] if key else None,
    )


def find_faults(path: Path, *, vfs: str | None = None) -> list[str]:
    """Read the whole database and answer what is wrong with it: nothing, if it is whole."""
    try:
        with closing(look_into(path, vfs)) as connection:
            found = [str(row[0]) for row in run(connection, INTEGRITY_CHECK)]
            broken = run(connection, "PRAGMA foreign_key_check")
    except DatabaseCorrupt as error:
        return [error.message]
    except apsw.Error as error:
        return [translate(error, path).message]
    faults = [] if found == ["ok"] else found
    faults += [
        f"row {row} of {table} refers to nothing in {parent}" for table, row, parent, _ in broken
    ]
    return faults[:MAX_FAULTS]
