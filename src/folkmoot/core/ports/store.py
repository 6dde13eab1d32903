"""Durable state: one action as a transaction, and the database that it is done in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from folkmoot.core.ports.bus import Bus
    from folkmoot.core.ports.nodes import BackendHomes, RoomOwners, SessionHomes

__all__ = [
    "Backup",
    "Database",
    "DatabaseIdentity",
    "NewRows",
    "Progress",
    "RateCounts",
    "Row",
    "SqlStatement",
    "SqlValue",
    "Store",
    "StoreStats",
    "Tx",
    "Unit",
]

T = TypeVar("T")

SqlValue: TypeAlias = str | bytes | int | float | None
Row: TypeAlias = tuple[Any, ...]


class NewRows(msgspec.Struct, frozen=True, gc=False):
    """Rows for a table; `conflict` begins with ON CONFLICT and says what of a row that exists."""

    table: str
    columns: tuple[str, ...]
    values: Sequence[Sequence[SqlValue]]
    conflict: str = ""


class SqlStatement(NamedTuple):
    """A statement that may change rows."""

    sql: str
    params: Sequence[SqlValue] = ()


class Tx(Protocol):
    """One transaction. Statements are written with `?`; an engine may spell them differently."""

    async def execute(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Run one statement and answer how many rows it changed."""

    async def fetch(self, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
        """Run one statement and answer all its rows."""

    async def fetch_one(self, sql: str, params: Sequence[SqlValue] = ()) -> Row | None:
        """Run one statement and answer its first row, if there is one."""

    async def insert(self, *tables: NewRows, after: SqlStatement | None = None) -> bool:
        """Insert rows into different tables, with as few statements as the engine can: one.

        Where an UPDATE comes before it (`after`) that changes no row, nothing is inserted; returns
        whether something was.
        """

    async def together(self, *statements: SqlStatement) -> list[list[Row]]:
        """Run statements on different tables at once; the rows that each of them RETURNs.

        None sees what another of them changes.
        """

    async def fetch_numbered(
        self, name: str, sql: str, params: Sequence[SqlValue] = ()
    ) -> Row | None:
        """Run a statement that ends with RETURNING and changes one row, or none.

        The row has the next number of a sequence behind it, which was taken while it was held.
        """

    async def next_sequence(self, name: str, count: int = 1) -> int:
        """The next number of a sequence, or the last of so many; none is ever given twice.

        Numbers of units that were undone may be missing. Those of two units that wait for one
        another, because both change one row before they ask, are in the order of their commits.
        """

    def publish(self, subject: str, event: Any = None) -> None:
        """Have an event published once this unit is committed, before its caller is answered.

        A unit that is undone publishes nothing, and whoever asked for it may have gone.
        """


Unit: TypeAlias = Callable[[Tx], Awaitable[T]]
"""One user-visible action: everything it does with its `Tx` happens, or none of it.

A unit awaits nothing but its `Tx`, since an engine may drive it from a thread without a loop, and
changes nothing else, since it may be run again when its transaction was lost to no fault of its
own. A unit that catches the error of a statement must still end with one.
"""


class Store(Protocol):
    """Durable state. `write` answers after its own commit; `read` sees only what is committed."""

    @property
    def bus(self) -> Bus:
        """Where the events of its units are published."""

    @property
    def sole_writer(self) -> bool:
        """Whether only this process writes, so that its events tell of every change."""

    async def write(self, unit: Unit[T], *, single: bool = False, any_order: bool = False) -> T:
        """Run a unit and answer when it is committed; if it raises, it alone is undone.

        A `single` one does nothing but one call of its `Tx`, which holds whatever others do then,
        and publishes nothing.
        One that holds in `any_order` of its statements and those of others need not be isolated.
        """

    async def read(self, query: Unit[T], *, long: bool = False) -> T:
        """Run a query on one consistent view of what is committed; say `long` if it reads much."""

    async def look_up(self, sql: str, key: str) -> Row | None:
        """The row that a statement finds by a key: its end is `= ?`, its first column the key.

        An engine may look up the keys of several callers at once.
        """


class RateCounts(Protocol):
    """Counts by key in windows of time, for all hubs that share a database."""

    async def take(self, key: str, most: int, seconds: int, *, overdraw: bool = False) -> float:
        """Count one more and answer 0, or answer in how many seconds the window ends.

        With `overdraw` it is counted in any case.
        """

    async def give_back(self, key: str) -> None:
        """Take one back that turned out not to count."""


class DatabaseIdentity(msgspec.Struct, frozen=True):
    """Who a database is; `master_key_id` is empty until it has a vault.

    A restored backup is the same database in a new `epoch`: what came after it may be gone.
    """

    database_id: str
    epoch: str
    created_at: int
    master_key_id: str | None


class Backup(msgspec.Struct, frozen=True):
    """A backup that was made. It never holds the master key, without which it cannot be read."""

    path: str
    size: int
    master_key_id: str | None


Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much of something is done, and how much there is."""


class StoreStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a store has done so far, for metrics; the depths and the log are what they are now.

    `batch_bounds` are the upper bounds of the buckets in `batch_sizes`: how many units the commits
    held. What an engine does not have is 0.
    """

    units: int
    failed_units: int
    commits: int
    failed_commits: int
    commit_seconds: float
    batch_bounds: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    reads: int
    failed_reads: int
    write_queue_depth: int
    read_queue_depth: int
    loop_reads: int = 0
    given_up_reads: int = 0
    checkpoints: int = 0
    failed_checkpoints: int = 0
    wal_pages: int = 0


class Database(Store, Protocol):
    """An opened store: its identity, health, statistics and closing, beside its transactions."""

    @property
    def backend_homes(self) -> BackendHomes | None:
        """Who links which server; nothing where no other process can use the database."""

    @property
    def session_homes(self) -> SessionHomes | None:
        """Who has which session; nothing where no other process can use the database."""

    @property
    def room_owners(self) -> RoomOwners | None:
        """Who owns which room; nothing where no other process can use the database."""

    @property
    def identity(self) -> DatabaseIdentity: ...

    @property
    def rates(self) -> RateCounts | None:
        """Where rate limits are counted that several hubs share; None where one hub counts."""

    async def ready(self) -> None:
        """Raise a `StoreError` unless something can be written and read back."""

    async def sync(self) -> None:
        """Have all that is committed survive a loss of power, whatever the settings say."""

    async def check(self) -> list[str]:
        """Read everything and answer what is wrong with it: nothing, if it is whole."""

    async def backup(
        self, target: str, *, overwrite: bool = False, progress: Progress | None = None
    ) -> Backup:
        """Copy the database into the file of this name while it is in use; cancelling stops it."""

    def stats(self) -> StoreStats:
        """Counters of the store since it was opened."""

    async def close(self) -> None:
        """Refuse what comes now, finish what was accepted, and close; safe to call again."""
