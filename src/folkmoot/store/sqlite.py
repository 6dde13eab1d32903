"""The dialect: how SQLite is opened, spoken to and understood when it fails."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Literal, TypeAlias
from urllib.parse import quote

import apsw

from folkmoot.core import errors as e
from folkmoot.core.ports import Row, SqlValue

Synchronous: TypeAlias = Literal["full", "normal"]

BUSY_TIMEOUT_MS = 5_000
"""How long another program may hold the database before we give up."""
BUSY_PAUSE = 0.01
WAL_LIMIT_BYTES = 64 * 1024 * 1024
CACHE_BYTES = 4 * 1024 * 1024
"""Pages that one connection keeps; the system keeps them too, for all connections together."""

SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside a database that is open."""
JOURNAL = "-journal"
"""What it keeps beside one without a write-ahead log."""
PRIVATE = 0o600

STATEMENTS_KEPT = 256
STEPS_BETWEEN_LOOKS = 10_000
"""How many of its steps SQLite takes before it asks whether to stop."""
NO_WORDS = frozenset({"", "not an error"})
"""What SQLite says of an error of which our sentence says more."""

COMMON_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA temp_store = MEMORY",
    # Through mmap a failing disk would be a signal that ends the process, not an error.
    "PRAGMA mmap_size = 0",
    f"PRAGMA cache_size = -{CACHE_BYTES // 1024}",
)

FAILURES: tuple[tuple[type[apsw.Error], type[e.StoreError], str], ...] = (
    (apsw.ConstraintError, e.ConstraintViolated, "A rule of the database was broken"),
    (apsw.FullError, e.DiskFull, "The disk is full, so the database cannot grow"),
    (apsw.BusyError, e.DatabaseLocked, "Another program holds the database"),
    (apsw.LockedError, e.DatabaseLocked, "The database is in use"),
    (apsw.NotADBError, e.DatabaseCorrupt, "The file is not a database"),
    (apsw.CorruptError, e.DatabaseCorrupt, "The database is damaged"),
    (apsw.ReadOnlyError, e.DatabaseUnwritable, "The database may only be read"),
    (apsw.CantOpenError, e.DatabaseUnwritable, "The database cannot be opened"),
    (apsw.PermissionsError, e.DatabaseUnwritable, "The database may not be opened"),
    (apsw.IOError, e.DiskFailed, "The disk failed"),
    (apsw.Error, e.StatementFailed, "A statement could not be run"),
)


def translate(error: apsw.Error, path: Path | None = None) -> e.StoreError:
    """The error of ours that says what SQLite's means; SQLite's own words go behind it."""
    kind, sentence = next((k, s) for source, k, s in FAILURES if isinstance(error, source))
    where = f"{path}: " if path else ""
    words = str(error)
    return kind(f"{where}{sentence}." if words in NO_WORDS else f"{where}{sentence}: {words}.")


def engine_version() -> str:
    """The version of SQLite, and of its package."""
    return f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


def make_private(path: Path) -> None:
    """Give the file mode 0600, and make it if there is none; SQLite's side files get the same."""
    try:
        open_private(path, os.O_CREAT)
        for side in SIDE_FILES:
            with suppress(FileNotFoundError):
                open_private(path.with_name(path.name + side))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise e.DatabaseUnwritable(
                f"{error.filename}: is a symbolic link; the database must be a file of its own."
            ) from error
        raise e.DatabaseUnwritable(f"{path}: cannot be opened: {error.strerror}.") from error


def open_private(path: Path, flags: int = 0) -> None:
    """Check that a file can be written, and make it private."""
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
        connection = apsw.Connection(name, flags=flags, vfs=vfs, statementcachesize=STATEMENTS_KEPT)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
        # Otherwise a statement with `LIMIT ?` is prepared anew for every value.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        for pragma in COMMON_PRAGMAS:
            run(connection, pragma)
        if not read_only:
            keep_log_ahead(connection)
            run(connection, f"PRAGMA synchronous = {synchronous.upper()}")
            run(connection, f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
            # What is deleted is overwritten. FAST would leave what was in pages that become free.
            run(connection, "PRAGMA secure_delete = ON")
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


def stop_when(
    connection: apsw.Connection, asked: Callable[[], bool], steps: int = STEPS_BETWEEN_LOOKS
) -> None:
    """Interrupt whatever the connection does once the answer is yes, asked every so many steps."""
    connection.set_progress_handler(asked, steps)


def never_wait(connection: apsw.Connection) -> None:
    """Give up at once where somebody else holds the database."""
    connection.set_busy_timeout(0)


def refuse_longer(connection: apsw.Connection, size: int) -> None:
    """Have every value of more than so many bytes be an error, read or given."""
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, size)


def copy_log(connection: apsw.Connection, *, restart_within_ms: int | None = None) -> bool:
    """Copy the write-ahead log into the database, as far as readers let us.

    With a time to wait for them, to its end, so that it begins anew; or answer that they did not.
    """
    restart = restart_within_ms is not None
    mode = apsw.SQLITE_CHECKPOINT_RESTART if restart else apsw.SQLITE_CHECKPOINT_PASSIVE
    connection.set_busy_timeout(restart_within_ms or 0)
    try:
        connection.wal_checkpoint(mode=mode)
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return True


def empty_log(connection: apsw.Connection, wait_ms: int) -> bool:
    """Copy the whole write-ahead log into the database and cut it to nothing.

    Answers no if readers still needed it after the time to wait for them.
    """
    connection.set_busy_timeout(wait_ms)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return True


def run(connection: apsw.Connection, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
    """Run a statement, or several, to the end; SQLite's own errors pass."""
    return connection.execute(sql, params).fetchall()
