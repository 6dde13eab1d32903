"""The file of the ledger: a small database that several bridges may use at once."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from folkmoot.bridge.files import OTHERS
from folkmoot.core.errors import BridgeStateUnusable

BUSY_SECONDS: Final = 10.0
"""How long one bridge waits for another's transaction."""
FORMAT: Final = 2

Row: TypeAlias = tuple[Any, ...]

_SCHEMA: Final = """
CREATE TABLE pins (
  owner TEXT NOT NULL, handle TEXT NOT NULL, key TEXT NOT NULL, since INTEGER NOT NULL,
  until INTEGER, PRIMARY KEY (owner, handle, key)
);
CREATE UNIQUE INDEX present_pin ON pins (owner, handle) WHERE until IS NULL;
CREATE TABLE renames (
  owner TEXT NOT NULL, was TEXT NOT NULL, handle TEXT NOT NULL,
  PRIMARY KEY (owner, was, handle)
);
CREATE TABLE letters (
  place INTEGER PRIMARY KEY, owner TEXT NOT NULL, digest TEXT, message_id TEXT, thread_id TEXT,
  peer TEXT NOT NULL, outgoing INTEGER NOT NULL, peer_key TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX letter_by_id ON letters (owner, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX letter_by_digest ON letters (owner, digest) WHERE digest IS NOT NULL;
CREATE INDEX letter_by_thread ON letters (owner, thread_id) WHERE digest IS NOT NULL;
CREATE TABLE own_names (owner TEXT NOT NULL, handle TEXT NOT NULL, PRIMARY KEY (owner, handle));
CREATE TABLE published (owner TEXT PRIMARY KEY);
"""
_CHANGES: Final = {
    2: """
ALTER TABLE pins ADD COLUMN letters INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pins ADD COLUMN verified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE letters ADD COLUMN sent INTEGER NOT NULL DEFAULT 0
"""
}
"""What each later format changes."""


class Database:
    """Every change is one transaction, on the disk when it is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_new = not path.exists()
        self._lock = threading.RLock()
        with self._telling():
            make_private(path)
            self._db = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
        with self._telling():
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA secure_delete = ON")
        with self.changing() as db:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > FORMAT:
                raise BridgeStateUnusable(f"{self.path}: was written by a newer Folkmoot.")
            for number in range(found + 1, FORMAT + 1):
                for statement in _CHANGES.get(number, _SCHEMA).split(";"):
                    db.execute(statement)
            if found < FORMAT:
                db.execute(f"PRAGMA user_version = {FORMAT}")

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone among all bridges."""
        with self._lock, self._telling():
            if self._db.in_transaction:
                yield self._db
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise BridgeStateUnusable(f"{self.path}: {str(error).lower()}.") from None

    def rows(self, sql: str, *values: object) -> list[Row]:
        """The rows of a question."""
        with self._lock, self._telling():
            return self._db.execute(sql, values).fetchall()


def state_folder() -> Path:
    """The user's folder for what programs remember."""
    base = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(base) if Path(base).is_absolute() else Path("~/.local/state").expanduser()
    return folder / "folkmoot"


def make_private(path: Path) -> None:
    """Make a file for its owner alone; one that others can change is refused."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        mode = os.fstat(descriptor).st_mode
    finally:
        os.close(descriptor)
    if stat.S_IMODE(mode) & OTHERS:
        raise BridgeStateUnusable(f"{path}: other users can read it. Run: chmod 600 {path}")
