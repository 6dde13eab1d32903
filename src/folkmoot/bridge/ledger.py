"""The ledger: a small database of correspondents' pinned keys and of the letters already seen.

Several bridges of one device may use it at once.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from folkmoot.bridge.limits import LEDGER_BUSY_SECONDS, MAX_LETTERS, MAX_PINS
from folkmoot.core import errors as e

FORMAT: Final = 2

Row: TypeAlias = tuple[Any, ...]

_SCHEMA: Final = """
CREATE TABLE pins (
  owner TEXT NOT NULL, handle TEXT NOT NULL, key TEXT NOT NULL, since INTEGER NOT NULL,
  until INTEGER, letters INTEGER NOT NULL DEFAULT 0, verified INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (owner, handle, key)
);
CREATE UNIQUE INDEX present_pin ON pins (owner, handle) WHERE until IS NULL;
CREATE TABLE renames (
  owner TEXT NOT NULL, was TEXT NOT NULL, handle TEXT NOT NULL,
  PRIMARY KEY (owner, was, handle)
);
CREATE TABLE letters (
  place INTEGER PRIMARY KEY, owner TEXT NOT NULL, digest TEXT, message_id TEXT, thread_id TEXT,
  peer TEXT NOT NULL, outgoing INTEGER NOT NULL, peer_key TEXT NOT NULL DEFAULT '',
  sent INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX letter_by_id ON letters (owner, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX letter_by_digest ON letters (owner, digest) WHERE digest IS NOT NULL;
CREATE INDEX letter_by_thread ON letters (owner, thread_id) WHERE digest IS NOT NULL;
CREATE TABLE own_names (owner TEXT NOT NULL, handle TEXT NOT NULL, PRIMARY KEY (owner, handle));
CREATE TABLE published (owner TEXT PRIMARY KEY);
"""


class LedgerFile:
    """Every change is one transaction, on the disk when it is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_new = not path.exists()
        self._lock = threading.RLock()
        with self._telling():
            make_private(path)
            self._db = sqlite3.connect(
                path, timeout=LEDGER_BUSY_SECONDS, isolation_level=None, check_same_thread=False
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
            if found not in {0, FORMAT}:
                raise e.BridgeStateUnusable(
                    f"{self.path}: was written by another version of Folkmoot. Use that version, "
                    "or move the file away: then the keys of others are pinned anew."
                )
            if found == 0:
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
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
            raise e.BridgeStateUnusable(f"{self.path}: {str(error).lower()}.") from None

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
    if stat.S_IMODE(mode) & 0o077:
        raise e.BridgeStateUnusable(f"{path}: other users can read it. Run: chmod 600 {path}")


FILE_NAME: Final = "bridge.db"
SLACK: Final = 500


class PinnedKey(msgspec.Struct, frozen=True):
    """A correspondent's key; none of them once its absence was accepted."""

    handle: str
    key: str
    since: int
    until: int | None = None
    letters: bool = False
    """Whether its owner is known to read letters, which no hub can take back."""
    verified: bool = False
    """Whether the two people have compared it."""


class SeenLetter(msgspec.Struct, frozen=True):
    """What is remembered of a letter."""

    digest: str | None
    message_id: str | None
    thread_id: str | None
    peer: str
    outgoing: bool
    peer_key: str


_PINS: Final = "SELECT handle, key, since, until, letters, verified FROM pins "
_SEEN: Final = "SELECT digest, message_id, thread_id, peer, outgoing, peer_key FROM letters "


class Ledger(LedgerFile):
    """The memory of one device. `owner` is always the public key of its account."""

    def __init__(self, path: Path, *, most_letters: int = MAX_LETTERS) -> None:
        super().__init__(path)
        self._most = most_letters
        self._unpruned = SLACK

    def pins(self, owner: str) -> list[PinnedKey]:
        """Every key that correspondents have or had, by handle, the latest first."""
        rows = self.rows(
            f"{_PINS}WHERE owner = ? ORDER BY handle, until IS NOT NULL, since DESC", owner
        )
        return [_pin(row) for row in rows]

    def pins_of(self, owner: str, handle: str) -> list[PinnedKey]:
        """The keys of one correspondent, the present one first."""
        rows = self.rows(
            f"{_PINS}WHERE owner = ? AND handle = ? ORDER BY until IS NOT NULL, since DESC",
            owner,
            handle,
        )
        return [_pin(row) for row in rows]

    def pin_of(self, owner: str, handle: str) -> PinnedKey | None:
        """The key a correspondent is trusted with now."""
        pins = self.pins_of(owner, handle)
        return pins[0] if pins and pins[0].until is None else None

    def trust(self, owner: str, handle: str, key: str, now: float) -> PinnedKey:
        """Pin a key unless one is pinned already; returns the pinned key."""
        with self.changing() as db:
            known = self.pin_of(owner, handle)
            if known is not None and known.key:
                return known
            count = db.execute("SELECT count(*) FROM pins WHERE owner = ?", (owner,)).fetchone()
            if count[0] >= MAX_PINS:
                raise e.BridgeStateUnusable(
                    f"{self.path}: holds {MAX_PINS:,} keys already; forget some of them."
                )
            return self.accept(owner, handle, key, now)

    def accept(self, owner: str, handle: str, key: str, now: float) -> PinnedKey:
        """Trust a key from now on in place of whatever was trusted; an empty one is none."""
        with self.changing() as db:
            db.execute(
                "UPDATE pins SET until = ? WHERE owner = ? AND handle = ? AND until IS NULL",
                (int(now), owner, handle),
            )
            db.execute(
                "INSERT INTO pins (owner, handle, key, since, verified) VALUES (?, ?, ?, ?, 0) "
                "ON CONFLICT (owner, handle, key) DO UPDATE SET until = NULL",
                (owner, handle, key, int(now)),
            )
        return PinnedKey(handle, key, int(now))

    def note_letters(self, owner: str, handle: str, key: str) -> None:
        """The owner of a pinned key reads letters."""
        self._note(owner, handle, key, "letters")

    def note_verified(self, owner: str, handle: str, key: str) -> None:
        """Two people have compared a pinned key."""
        self._note(owner, handle, key, "verified")

    def _note(self, owner: str, handle: str, key: str, column: str) -> None:
        with self.changing() as db:
            db.execute(
                f"UPDATE pins SET {column} = 1 "  # noqa: S608
                f"WHERE owner = ? AND handle = ? AND key = ? AND {column} = 0",
                (owner, handle, key),
            )

    def recall(self, owner: str, pin: PinnedKey) -> bool:
        """Take over a pin of another device; False if another is trusted here."""
        with self.changing() as db:
            known = self.pin_of(owner, pin.handle)
            if known is not None and known.key != pin.key and pin.until is None:
                return False
            db.execute(
                "INSERT INTO pins (owner, handle, key, since, until, letters, verified) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, handle, key) DO UPDATE SET "
                "letters = max(letters, excluded.letters), "
                "verified = max(verified, excluded.verified)",
                (owner, *msgspec.structs.astuple(pin)),
            )
        return True

    def forget(self, owner: str, handle: str) -> int:
        """Forget every key of a correspondent; how many there were."""
        with self.changing() as db:
            gone = db.execute("DELETE FROM pins WHERE owner = ? AND handle = ?", (owner, handle))
            return gone.rowcount

    def rename(self, owner: str, was: str, handle: str) -> None:
        """Note that a correspondent, still with the same key, is called otherwise now."""
        with self.changing() as db:
            db.execute("INSERT OR IGNORE INTO renames VALUES (?, ?, ?)", (owner, was, handle))

    def renamed(self, owner: str, was: str, handle: str) -> bool:
        """Whether a correspondent was seen to change from one handle to another."""
        rows = self.rows(
            "SELECT 1 FROM renames WHERE owner = ? AND was = ? AND handle = ?", owner, was, handle
        )
        return bool(rows)

    def note_sent(self, owner: str, digest: str, peer: str, peer_key: str) -> None:
        """Record a letter before it is sent, so that it is recognised when it comes back."""
        with self.changing() as db:
            db.execute(
                "INSERT INTO letters (owner, digest, peer, outgoing, peer_key, sent) "
                "VALUES (?, ?, ?, 1, ?, 1)",
                (owner, digest, peer, peer_key),
            )
            self._prune(db, owner)

    def note_place(
        self, owner: str, digest: str, message_id: str | None, thread_id: str | None
    ) -> None:
        """Remember which message a sent letter became."""
        with self.changing() as db:
            db.execute(
                "UPDATE OR IGNORE letters SET message_id = ?, thread_id = ? "
                "WHERE owner = ? AND digest = ? AND outgoing = 1 AND message_id IS NULL",
                (message_id, thread_id, owner, digest),
            )

    def note_seen(self, owner: str, seen: SeenLetter) -> None:
        """Remember a message that was shown, and its box if that was opened and found right."""
        with self.changing() as db:
            db.execute(
                "INSERT INTO letters (owner, digest, message_id, thread_id, peer, outgoing, "
                "peer_key) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (owner, message_id) WHERE message_id IS NOT NULL DO UPDATE SET "
                "digest = coalesce(excluded.digest, digest)",
                (owner, *msgspec.structs.astuple(seen)),
            )
            self._prune(db, owner)

    def by_digest(self, owner: str, digest: str) -> SeenLetter | None:
        """The record of a box by its digest."""
        return _seen(
            self.rows(
                f"{_SEEN}WHERE owner = ? AND digest = ? ORDER BY place LIMIT 1", owner, digest
            )
        )

    def was_sent(self, owner: str, digest: str) -> bool:
        """Whether a box left from here, which is more than that a hub says so."""
        sql = "SELECT 1 FROM letters WHERE owner = ? AND digest = ? AND sent = 1"
        return bool(self.rows(sql, owner, digest))

    def by_id(self, owner: str, message_id: str) -> SeenLetter | None:
        """What is remembered of a message."""
        return _seen(self.rows(f"{_SEEN}WHERE owner = ? AND message_id = ?", owner, message_id))

    def beginning(self, owner: str, start: str) -> list[SeenLetter]:
        """At most two records of messages whose id begins with this text."""
        rows = self.rows(
            f"{_SEEN}WHERE owner = ? AND message_id >= ? AND message_id < ? LIMIT 2",
            owner,
            start,
            f"{start}g",
        )
        return [SeenLetter(*row) for row in rows]

    def peers_in(self, owner: str, thread_id: str) -> set[str]:
        """With whom letters were opened in a thread."""
        rows = self.rows(
            "SELECT DISTINCT peer FROM letters WHERE owner = ? AND thread_id = ? "
            "AND digest IS NOT NULL LIMIT 10",
            owner,
            thread_id,
        )
        return {str(row[0]) for row in rows}

    def own_names(self, owner: str) -> set[str]:
        """The handles the account has had."""
        return {
            str(row[0]) for row in self.rows("SELECT handle FROM own_names WHERE owner = ?", owner)
        }

    def add_name(self, owner: str, handle: str) -> None:
        """Know the account by a handle."""
        with self.changing() as db:
            db.execute("INSERT OR IGNORE INTO own_names VALUES (?, ?)", (owner, handle))

    def was_published(self, owner: str) -> bool:
        """Whether the hub was seen to name this key as the account's."""
        return bool(self.rows("SELECT 1 FROM published WHERE owner = ?", owner))

    def note_published(self, owner: str) -> None:
        """Record that the hub names this key as the account's."""
        with self.changing() as db:
            db.execute("INSERT OR IGNORE INTO published VALUES (?)", (owner,))

    def hand_on(self, old: str, new: str) -> None:
        """Copy the records of an account's old key to its new one."""
        with self.changing() as db:
            for table in ("pins", "renames", "letters", "own_names"):
                db.execute(f"UPDATE OR IGNORE {table} SET owner = ? WHERE owner = ?", (new, old))  # noqa: S608

    def _prune(self, db: sqlite3.Connection, owner: str) -> None:
        """Forget the oldest letters beyond the bound, every so many new ones."""
        self._unpruned += 1
        if self._unpruned < SLACK:
            return
        self._unpruned = 0
        db.execute(
            "DELETE FROM letters WHERE owner = ? AND place <= (SELECT place FROM letters "
            "WHERE owner = ? ORDER BY place DESC LIMIT 1 OFFSET ?)",
            (owner, owner, self._most),
        )


def _pin(row: Row) -> PinnedKey:
    handle, key, since, until, letters, verified = row
    return PinnedKey(handle, key, since, until, bool(letters), bool(verified))


def _seen(rows: list[Row]) -> SeenLetter | None:
    return SeenLetter(*rows[0]) if rows else None
