"""Inspects a database without changing it: its identity and its integrity."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import Event
from typing import TypeVar

import apsw
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.ports import Unit
from folkmoot.store.schema import check_schema, load_schema
from folkmoot.store.sqlite import connect, faults, run, stop_when, translate
from folkmoot.store.tx import SqliteTx, drive

T = TypeVar("T")

MAX_FAULTS = 20
KEY_IDS = "SELECT value FROM meta WHERE key = 'master_key_id'"
AWAITED_IDS = "SELECT value FROM meta WHERE key = 'master_key_awaited'"
OPENERS = (
    "SELECT substr(key, 10) FROM meta WHERE key > 'data_key.' AND key < 'data_key/' ORDER BY 1"
)


class DatabaseInfo(Struct, frozen=True):
    """What can be told of a database file; sizes are in bytes."""

    path: str
    size: int
    wal_size: int
    schema: int
    newest_schema: int
    engine: str
    master_key_id: str | None
    awaited_key_id: str | None
    """The id of the master key that the next start may bring, if the key is being changed."""
    opened_by: tuple[str, ...]
    """The ids of the master keys that open it: more than one while the key is being changed."""


def write_ahead_log(path: Path) -> Path:
    """The side file that exists while a process has the database open, or died with it."""
    return path.with_name(path.name + "-wal")


def look_into(path: Path, vfs: str | None) -> apsw.Connection:
    """Open a database for reading, leaving no side files behind."""
    return connect(path, read_only=True, at_rest=is_at_rest(path, vfs), vfs=vfs)


def is_at_rest(path: Path, vfs: str | None) -> bool:
    """Whether nobody has the database open, nor died with it open."""
    return vfs is None and not write_ahead_log(path).exists()


def inspect_database(path: Path, *, vfs: str | None = None) -> DatabaseInfo:
    """What can be told of a database file; raises what is wrong when it cannot be read."""
    texts = load_schema()
    with closing(look_into(path, vfs)) as connection:
        try:
            schema = check_schema(connection, texts)
            key, awaited, openers = (
                [str(row[0]) for row in run(connection, sql)] if schema else []
                for sql in (KEY_IDS, AWAITED_IDS, OPENERS)
            )
        except apsw.Error as error:
            raise translate(error, path) from error
    wal = write_ahead_log(path)
    return DatabaseInfo(
        path=str(path),
        size=path.stat().st_size,
        wal_size=wal.stat().st_size if wal.exists() else 0,
        schema=schema,
        newest_schema=len(texts),
        engine=f"SQLite {apsw.sqlite_lib_version()}",
        master_key_id=key[0] if key else None,
        awaited_key_id=awaited[0] if awaited else None,
        opened_by=tuple(openers),
    )


def look_up(path: Path, query: Unit[T]) -> T:
    """What a query answers on a database that another process may have open, or nobody."""
    try:
        with closing(look_into(path, None)) as connection:
            return drive(query, SqliteTx(connection))
    except apsw.Error as error:
        raise translate(error, path) from error


def find_faults(path: Path, *, vfs: str | None = None, stop: Event | None = None) -> list[str]:
    """Read the whole database and answer what is wrong with it: nothing, if it is whole.

    It takes as long as the database is large; setting `stop` ends it with `StoreClosed`.
    """
    stop = stop or Event()
    try:
        with closing(look_into(path, vfs)) as connection:
            stop_when(connection, stop.is_set)
            return faults(connection, MAX_FAULTS)[:MAX_FAULTS]
    except apsw.InterruptError as error:
        raise e.StoreClosed("The check of the database was stopped.") from error
    except e.DatabaseCorrupt as error:
        return [error.message]
    except apsw.Error as error:
        return [translate(error, path).message]
