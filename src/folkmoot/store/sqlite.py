"""The dialect: how SQLite is opened, spoken to and understood when it fails."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
WAL_LIMIT_BYTES = 64 * 1024 * 1024

SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside a database that is open."""
JOURNAL = "-journal"
"""What it keeps beside one without a write-ahead log."""
PRIVATE = 0o600

BEGIN = "BEGIN"
BEGIN_WRITING = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVE = "SAVEPOINT unit"
KEEP = "RELEASE unit"
UNDO = ("ROLLBACK TO unit", "RELEASE unit")

STEPS_BETWEEN_LOOKS = 10_000
"""How many of its steps SQLite takes before it asks whether to stop."""
NO_WORDS = frozenset({"", "not an error", "not authorized"})
"""What SQLite says of an error of which our sentence says more."""

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
    (apsw.AuthError, StatementFailed, "A unit of the store may not begin or end transactions"),
    (apsw.Error, StatementFailed, "A statement could not be run"),
)

TRANSACTION_ACTIONS = frozenset({apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT})


def translate(error: apsw.Error, path: Path | None = None) -> StoreError:
    """The error of ours that says what SQLite's means; SQLite's own words go behind it."""
    kind, sentence = next((k, s) for source, k, s in FAILURES if isinstance(error, source))
    where = f"{path}: " if path else ""
    words = str(error)
    return kind(f"{where}{sentence}." if words in NO_WORDS else f"{where}{sentence}: {words}.")


def make_private(path: Path) -> None:
    """Give the file mode 0600, and make it if there is none; SQLite's side files get the same."""
    try:
        open_private(path, os.O_CREAT)
        for side in SIDE_FILES:
            with suppress(FileNotFoundError):
                open_private(path.with_name(path.name + side))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise DatabaseUnwritable(
                f"{error.filename}: is a symbolic link; the database must be a file of its own."
            ) from error
        raise DatabaseUnwritable(f"{path}: cannot be opened: {error.strerror}.") from error


def open_private(path: Path, flags: int = 0) -> None:
    """See that a file can be written, and close it to others."""
    flags |= os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, PRIVATE)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != PRIVATE:
            os.fchmod(descriptor, PRIVATE)
    finally:
        os.close(descriptor)


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
            run(connection, f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
        take_view(connection)
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


def keep_one_file(connection: apsw.Connection) -> None:
    """Give up the write-ahead log, so that the database is one file again."""
    run(connection, "PRAGMA journal_mode = DELETE")


def take_view(connection: apsw.Connection) -> None:
    """Really read: in a transaction, everything after this sees what this has seen."""
    run(connection, "SELECT count(*) FROM sqlite_schema")


def has_table(connection: apsw.Connection, name: str) -> bool:
    """Whether the database has a table of this name."""
    return bool(
        run(connection, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,))
    )


def is_empty(connection: apsw.Connection) -> bool:
    """Whether the database has no tables at all."""
    return not run(connection, "SELECT 1 FROM sqlite_schema LIMIT 1")


def faults(connection: apsw.Connection, limit: int) -> list[str]:
    """What is wrong with the database: nothing, if it is whole."""
    found = [str(row[0]) for row in run(connection, f"PRAGMA integrity_check({limit})")]
    broken = run(connection, "PRAGMA foreign_key_check")
    whole = found == ["ok"]
    references = [f"row {row} of {name} refers to nothing in {to}" for name, row, to, _ in broken]
    return ([] if whole else found) + references


def stop_when(connection: apsw.Connection, asked: Callable[[], bool]) -> None:
    """Interrupt whatever the connection does once the answer is yes."""
    connection.set_progress_handler(asked, STEPS_BETWEEN_LOOKS)


def run(connection: apsw.Connection, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
    """Run one statement of our own to its end; SQLite's own errors pass.

    It is never kept for later: a unit that says the same must be asked about it.
    """
    return connection.execute(sql, params, can_cache=False).fetchall()


def drive(unit: Unit[T], tx: SqliteTx) -> T:
    """Run a unit to its end without a loop: everything it may await is done when it is asked."""
    with tx.guarded():
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
        self._guarding = False
        connection.authorizer = self._authorize

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """While a unit runs, nothing may end the transaction that it shares with others."""
        self._guarding = True
        try:
            yield
        finally:
            self._guarding = False

    def _authorize(self, action: int, *_details: str | None) -> int:
        refused = self._guarding and action in TRANSACTION_ACTIONS
        return apsw.SQLITE_DENY if refused else apsw.SQLITE_OK

    async def execute(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Run one statement and answer how many rows it changed."""
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
        try:
            return self._connection.execute(sql, params).fetchall()
        except apsw.Error as error:
            raise translate(error) from error

    async def fetch_one(self, sql: str, params: Sequence[SqlValue] = ()) -> Row | None:
        """Run one statement and answer its first row, if there is one."""
        try:
            cursor = self._connection.execute(sql, params)
            row: Row | None = cursor.fetchone()
            # A statement left in the middle would hold its view of the database.
            cursor.close(force=True)
        except apsw.Error as error:
            raise translate(error) from error
        return row
