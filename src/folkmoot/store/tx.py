"""A unit's transaction on SQLite."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import apsw
import msgspec

from folkmoot.bus import check_subject
from folkmoot.core import errors as e
from folkmoot.core.ports import Bus, NewRows, Row, SqlStatement, SqlValue, Unit
from folkmoot.store.sqlite import translate

T = TypeVar("T")

LOG = logging.getLogger(__name__)

BEGIN = "BEGIN"
BEGIN_WRITING = "BEGIN IMMEDIATE"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVE = "SAVEPOINT unit"
KEEP = "RELEASE unit"
UNDO = ("ROLLBACK TO unit", KEEP)

SELECT = "SELECT "
NEXT = "UPDATE counters SET value = value + ? WHERE name = ? RETURNING value"

ROWS_AT_ONCE = (64, 8, 1)
"""A statement gives the interpreter away however much it does, so one should do much."""


class Published(NamedTuple):
    """An event of a unit, encoded while the unit runs."""

    subject: str
    data: msgspec.Raw
    change: int = 0
    """Its number in the log of changes, where there is one."""


def encoded(subject: str, event: Any) -> Published:
    """An event as it is published; an invalid one fails its unit."""
    check_subject(subject)
    try:
        return Published(subject, msgspec.Raw(msgspec.json.encode(event)))
    except (TypeError, ValueError, RecursionError) as error:
        raise e.EventUnencodable(f"The event on {subject} cannot be written as JSON.") from error


def emit(bus: Bus, event: Published) -> None:
    """Publish a committed event; a failing bus is only logged."""
    try:
        bus.emit(event.subject, event.data, change=event.change)
    except e.BusClosed:
        LOG.debug("an event was not published: the bus is closed")
    except e.BusError as error:
        LOG.error(  # noqa: TRY400 - there is nothing to trace
            "an event was not published", extra={"error": error.message}
        )


def drive(unit: Unit[T], tx: SqliteTx) -> T:
    """Run a unit to its end without a loop: everything it may await is done when it is asked."""
    tx.running = True
    try:
        steps = unit(tx).__await__()
        try:
            next(steps)
        except StopIteration as end:
            value: T = end.value
            return value
        steps.close()
    finally:
        tx.running = False
    raise e.UnitSuspended("A unit of the store may await nothing but its transaction.")


@lru_cache(maxsize=256)
def insertion(table: str, columns: tuple[str, ...], conflict: str, rows: int) -> str:
    """The statement that inserts so many rows."""
    row = f"({', '.join('?' * len(columns))})"
    values = ", ".join([row] * rows)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values} {conflict}"  # noqa: S608


class SqliteTx:
    """`core.ports.Tx` on an open transaction of one connection."""

    def __init__(self, connection: apsw.Connection, *, publishes: bool = False) -> None:
        self.running = False
        """Whether a unit runs, and not what begins or ends its transaction."""
        self.too_big = False
        """Whether a value was longer than the connection lets one be."""
        self.wrote = False
        """Whether the unit that runs may have changed something."""
        self.events: list[Published] = []
        self._publishes = publishes
        self._connection = connection

    def _failure(self, error: apsw.Error) -> e.StoreError:
        self.too_big = self.too_big or isinstance(error, apsw.TooBigError)
        return translate(error)

    async def execute(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Run one statement and answer how many rows it changed."""
        self.wrote = True
        connection = self._connection
        before = connection.total_changes()
        try:
            connection.execute(sql, params).fetchall()
        except apsw.Error as error:
            raise self._failure(error) from error
        # SQLite keeps the count of an earlier statement when this one changed nothing.
        return connection.changes() if connection.total_changes() != before else 0

    async def fetch(self, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
        """Run one statement and answer all its rows."""
        if not sql.startswith(SELECT):
            self.wrote = True
        try:
            return self._connection.execute(sql, params).fetchall()
        except apsw.Error as error:
            raise self._failure(error) from error

    async def fetch_one(self, sql: str, params: Sequence[SqlValue] = ()) -> Row | None:
        """Run one statement and answer its first row, if there is one."""
        if not sql.startswith(SELECT):
            self.wrote = True
        try:
            cursor = self._connection.execute(sql, params)
            row: Row | None = cursor.fetchone()
            # A statement left in the middle would hold its view of the database.
            cursor.close(force=True)
        except apsw.Error as error:
            raise self._failure(error) from error
        return row

    async def insert(self, *tables: NewRows, after: SqlStatement | None = None) -> bool:
        """Insert rows into different tables, many with one statement."""
        if after is not None and not await self.execute(*after):
            return False
        for one in tables:
            at, values = 0, one.values
            for rows in ROWS_AT_ONCE:
                while len(values) - at >= rows:
                    sql = insertion(one.table, one.columns, one.conflict, rows)
                    await self.execute(sql, tuple(chain.from_iterable(values[at : at + rows])))
                    at += rows
        return any(one.values for one in tables)

    async def together(self, *statements: SqlStatement) -> list[list[Row]]:
        """Run statements one after the other; the rows that each of them RETURNs."""
        return [await self.fetch(*statement) for statement in statements]

    async def fetch_numbered(
        self, name: str, sql: str, params: Sequence[SqlValue] = ()
    ) -> Row | None:
        """Run a statement that changes one row, and number that row."""
        row = await self.fetch_one(sql, params)
        return None if row is None else (*row, await self.next_sequence(name))

    async def next_sequence(self, name: str, count: int = 1) -> int:
        """The next number of a sequence, or the last of so many: a counter, as one alone writes."""
        row = await self.fetch_one(NEXT, (count, name))
        if row is None:
            raise e.StatementFailed(f"There is no sequence {name}.")
        return int(row[0])

    def publish(self, subject: str, event: Any = None) -> None:
        """Publish an event once this unit commits; an invalid one fails the unit."""
        if not self._publishes:
            raise e.StatementFailed("A query publishes nothing.")
        self.events.append(encoded(subject, event))
