"""The dialect: how SQLite is opened, spoken to and understood when it fails."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from time import monotonic, sleep
from typing import Literal, TypeAlias, TypeVar
from urllib.parse import quote

import apsw

from folkmoot.core.errors import (
    ConstraintViolated,
    DatabaseCorrupt,
    DatabaseLocked,
    DatabaseUnwritable,
    DiskFailed,
    DiskFull,
    StatementFailed,
    StoreError,
    UnitSuspended,
)
from folkmoot.core.ports import Row, SqlValue, Unit

T = TypeVar("T")

Synchronous: TypeAlias = Literal["full", "normal"]

BUSY_TIMEOUT_MS = 5_000
"""How long another program may hold the database before we give up."""
BUSY_PAUSE = 0.01

SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside a database that is open."""

COMMON_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA temp_store = MEMORY",
    # Through mmap a failing disk would be a signal that ends the process, not an error.
    "PRAGMA mmap_size = 0",
    "PRAGMA cache_size = -16384",
)

FAILURES: tuple[tuple[type[apsw.Error], type[StoreError], str], ...] = (
    (apsw.ConstraintError, ConstraintViolated, "A rule of the database was broken"),
    (apsw.FullError, DiskFull, "The disk is full, so the database cannot grow"),
    (apsw.BusyError, DatabaseLocked, "Another program holds the database"),
    (apsw.LockedError, DatabaseLocked, "The database is in use"),
    (apsw.NotADBError, DatabaseCorrupt, "The file is not a database"),
    (apsw.CorruptError, DatabaseCorrupt, "The database is damaged"),
    (apsw.ReadOnlyError, DatabaseUnwritable, "The database may only be read"),
    (apsw.CantOpenError, DatabaseUnwritable, "The database cannot be opened"),
    (apsw.PermissionsError, DatabaseUnwritable, "The database may not be opened"),
    (apsw.IOError, DiskFailed, "The disk failed"),
    (apsw.Error, StatementFailed, "A statement could not be run"),
)

TRANSACTION_WORDS = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"})


def translate(error: apsw.Error, path: Path | None = None) -> StoreError:
    """The error of ours that says what SQLite's means; SQLite's own words go behind it."""
    kind, sentence = next((k, s) for source, k, s in FAILURES if isinstance(error, source))
    where = f"{path}: " if path else ""
    return kind(f"{where}{sentence}: {str(error) or type(error).__name__}.")


def make_private(path: Path) -> None:
    """Make the file with mode 0600 if there is none; SQLite gives its side files the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise DatabaseUnwritable(f"{path}: cannot be opened: {error.strerror}.") from error


def connect(
    path: Path,
    *,
    read_only: bool = False,
    at_rest: bool = False,
    synchronous: Synchronous = "full",
    vfs: str | None = None,
) -> apsw.Connection:
    """Open a database in write-ahead mode, or raise an error that names the file.

    One that is `at_rest` is nobody's at the moment, and is read without making side files.
    """
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    name = str(path)
    if at_rest:
        flags |= apsw.SQLITE_OPEN_URI
        name = f"file:{quote(name)}?immutable=1"
    connection: apsw.Connection | None = None
    try:
        connection = apsw.Connection(name, flags=flags, vfs=vfs)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
        for pragma in COMMON_PRAGMAS:
            run(connection, pragma)
        if not read_only:
            keep_log_ahead(connection)
            run(connection, f"PRAGMA synchronous = {synchronous.upper()}")
        run(connection, "SELECT count(*) FROM sqlite_schema")
    except apsw.Error as error:
        if connection is not None:
            connection.close(force=True)
        raise translate(error, path) from error
    return connection


def keep_log_ahead(connection: apsw.Connection) -> None:
    """Switch to the write-ahead log; SQLite does not wait for others who do the same, so we do."""
    deadline = monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            run(connection, "PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if monotonic() > deadline:
                raise
            sleep(BUSY_PAUSE)
        else:
            return


def run(connection: apsw.Connection, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
    """Run one statement to its end; SQLite's own errors pass."""
    return connection.execute(sql, params).fetchall()


def drive(unit: Unit[T], tx: SqliteTx) -> T:
    """Run a unit to its end without a loop: everything it may await is done when it is asked."""
    steps = unit(tx).__await__()
    try:
        next(steps)
    except StopIteration as end:
        value: T = end.value
        return value
    steps.close()
    raise UnitSuspended("A unit of the store may await nothing but its transaction.")


class SqliteTx:
    """`core.ports.Tx` on an open transaction of one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Run one statement and answer how many rows it changed."""
        check_statement(sql)
        connection = self._connection
        before = connection.total_changes()
        try:
            connection.execute(sql, params).fetchall()
        except apsw.Error as error:
            raise translate(error) from error
        # SQLite keeps the count of an earlier statement when this one changed nothing.
        return connection.changes() if connection.total_changes() != before else 0

    async def fetch(self, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
        """Run one statement and answer all its rows."""
        check_statement(sql)
        try:
            return self._connection.execute(sql, params).fetchall()
        except apsw.Error as error:
            raise translate(error) from error

    async def fetch_one(self, sql: str, params: Sequence[SqlValue] = ()) -> Row | None:
        """Run one statement and answer its first row, if there is one."""
        check_statement(sql)
        try:
            cursor = self._connection.execute(sql, params)
            row: Row | None = cursor.fetchone()
            # A statement left in the middle would hold its view of the database.
            cursor.close(force=True)
        except apsw.Error as error:
            raise translate(error) from error
        return row


@lru_cache(maxsize=2048)
def check_statement(sql: str) -> None:
    """Refuse a statement that would end the transaction its unit shares with others."""
    word = sql.split(None, 1)[0].rstrip(";").upper() if sql.strip() else ""
    if word in TRANSACTION_WORDS:
        raise StatementFailed(f"A unit of the store may not say {word}.")
