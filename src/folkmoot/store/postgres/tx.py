"""A unit's transaction on PostgreSQL, and how its statements are spelled there.

Parameters are `$1` instead of `?`. A text cannot contain NUL here: where one would be stored it is
refused, and where it is looked up nothing is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from folkmoot.core import errors as e
from folkmoot.core.ports import NewRows, Row, SqlStatement, SqlValue
from folkmoot.store.postgres.dialect import LOST, POSTGRES, RAN_AGAIN, translate_error
from folkmoot.store.postgres.schema import SEQUENCES, sequence_of
from folkmoot.store.tx import NEXT, Published, encoded

BRACKET_OR_WHERE = re.compile(r"[()]|\bWHERE\b")
ROWS_CHANGED = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
RETURNING = re.compile(r"\bRETURNING\b")
NO_NUL = "A text may not contain the character NUL."
NEVER_STORED = "\uffff"
"""Stands for NUL in what is looked up: no text has it, so nothing is found."""


class SecondStatement(Exception):
    """A query that was run without a view asks a second time."""


class SpelledStatement(NamedTuple):
    """A statement in PostgreSQL's placeholders."""

    text: str
    verb: str
    stored: int
    """So many of its first values are stored; those behind them are looked up."""
    parameters: int


@lru_cache(maxsize=1024)
def spelled(sql: str, first: int = 0) -> SpelledStatement:
    """A statement with `$1`, `$2` … for its `?`; no text in it has one.

    So many parameters before them are those of other statements.
    """
    start, *parts = sql.split("?")
    text = start + "".join(f"${first + n}{part}" for n, part in enumerate(parts, 1))
    verb = sql.split(maxsplit=1)[0].upper()
    stored = 0 if verb in {"SELECT", "DELETE"} else len(parts)
    if verb == "UPDATE":
        stored = sql[: where_of(sql)].count("?")
    return SpelledStatement(text, verb, stored, len(parts))


def where_of(sql: str) -> int:
    """Where the condition of a statement begins that is in no bracket, or the statement ends."""
    depth = 0
    for found in BRACKET_OR_WHERE.finditer(sql):
        depth += (found[0] == "(") - (found[0] == ")")
        if found[0] == "WHERE" and not depth:
            return found.start()
    return len(sql)


def storable(statement: SpelledStatement, params: Sequence[SqlValue]) -> Sequence[SqlValue]:
    """The values of a statement without NUL, which is refused where it would be stored."""
    with_nul = [
        place for place, each in enumerate(params) if isinstance(each, str) and "\x00" in each
    ]
    if not with_nul:
        return params
    if with_nul[0] < statement.stored:
        raise e.TextUnstorable(NO_NUL)
    return [
        each.replace("\x00", NEVER_STORED) if isinstance(each, str) else each for each in params
    ]


def changed_rows(status: str) -> int:
    """The number of changed rows from the server's status, such as `UPDATE 3`."""
    verb, _, rest = status.partition(" ")
    return int(rest.split()[-1]) if verb in ROWS_CHANGED else 0


TYPES_OF = """SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped"""

ColumnTypes: TypeAlias = dict[str, dict[str, str]]
"""The types of columns, by table, as far as anyone asked."""


def insertion(types: ColumnTypes, tables: Sequence[NewRows], after: SqlStatement | None) -> str:
    """One statement that inserts rows into several tables, each column of them as an array.

    With an UPDATE before, its rows are joined to those that are inserted: none without it.
    """
    number, parts, joined = 0, [], ""
    if after is not None:
        number, joined = len(after.params), ", changed"
    for one in tables:
        arrays = []
        for column in one.columns:
            number += 1
            arrays.append(f"${number}::{types[one.table][column]}[]")
        names = ", ".join(one.columns)
        parts.append(
            f"INSERT INTO {one.table} ({names}) SELECT u.* FROM unnest({', '.join(arrays)}) AS u"  # noqa: S608
            f"{joined} {one.conflict}"
        )
    *before, last = parts
    named = [f"part{place} AS ({part})" for place, part in enumerate(before)]
    if after is not None:
        named.insert(0, f"changed AS ({spelled(after.sql).text} RETURNING 1)")
    return f"WITH {', '.join(named)} {last}" if named else last


@lru_cache(maxsize=256)
def joined(*texts: str) -> tuple[str, tuple[SpelledStatement, ...], tuple[int, ...]]:
    """Several statements as one, what each is, and the places of those that return rows."""
    first, parts = 0, []
    for text in texts:
        parts.append(spelled(text, first))
        first += parts[-1].parameters
    returning = tuple(place for place, text in enumerate(texts) if RETURNING.search(text))
    named = ", ".join(f"part{place} AS ({part.text})" for place, part in enumerate(parts))
    rows = ", ".join(f"ARRAY(SELECT part{place} FROM part{place})" for place in returning)  # noqa: S608
    return f"WITH {named} SELECT {rows or '1'}", tuple(parts), returning


def column_values(column: Sequence[SqlValue]) -> Sequence[SqlValue]:
    """The values of a column, which may not contain NUL."""
    if any(isinstance(value, str) and "\x00" in value for value in column):
        raise e.TextUnstorable(NO_NUL)
    return column


class PostgresTx:
    """`core.ports.Tx` on a connection.

    A query that is `single` may ask once, and a unit that is may do one thing.
    """

    def __init__(
        self,
        connection: Any,
        types: ColumnTypes | None = None,
        *,
        publishes: bool = False,
        single: bool = False,
    ) -> None:
        self.events: list[Published] = []
        self.failure: e.StoreError | None = None
        """What failed: after it the server refuses every statement of the transaction."""
        self.changes = False
        self._publishes = publishes
        self._connection = connection
        self._types = {} if types is None else types
        self._single = single
        self._asked = False

    def require_whole(self) -> None:
        """Raise if a statement failed, whatever the unit made of it: nothing of it is stored."""
        if self.failure is not None:
            raise self.failure

    async def execute(self, sql: str, params: Sequence[SqlValue] = ()) -> int:
        """Run one statement and answer how many rows it changed."""
        self.changes = True
        status: str = await self._run(self._connection.execute, sql, params)
        return changed_rows(status)

    async def fetch(self, sql: str, params: Sequence[SqlValue] = ()) -> list[Row]:
        """Run one statement and answer all its rows."""
        return [tuple(row) for row in await self._run(self._connection.fetch, sql, params)]

    async def fetch_one(self, sql: str, params: Sequence[SqlValue] = ()) -> Row | None:
        """Run one statement and answer its first row, if there is one."""
        row = await self._run(self._connection.fetchrow, sql, params)
        return None if row is None else tuple(row)

    async def insert(self, *tables: NewRows, after: SqlStatement | None = None) -> bool:
        """Insert rows into different tables with one statement; whether any were."""
        filled = [one for one in tables if one.values]
        if not filled:
            return False
        self._count_statement(is_query=False)
        self.changes = True
        for one in filled:
            if one.table not in self._types:
                rows = await self._guarded(self._connection.fetch, TYPES_OF, (one.table,))
                self._types[one.table] = {row[0]: row[1] for row in rows}
        arrays = [
            column_values(column) for one in filled for column in zip(*one.values, strict=True)
        ]
        params = arrays if after is None else [*after.params, *arrays]
        text = insertion(self._types, filled, after)
        status: str = await self._guarded(self._connection.execute, text, params)
        return changed_rows(status) > 0

    async def together(self, *statements: SqlStatement) -> list[list[Row]]:
        """Run statements on different tables as one; the rows that each of them RETURNs."""
        text, parts, returning = joined(*(sql for sql, _ in statements))
        self._count_statement(is_query=False)
        self.changes = True
        values = [
            value
            for part, (_, params) in zip(parts, statements, strict=True)
            for value in storable(part, params)
        ]
        answer = await self._guarded(self._connection.fetchrow, text, values)
        found: list[list[Row]] = [[] for _ in statements]
        for place, rows in zip(returning, answer, strict=False):
            found[place] = [tuple(row) for row in rows]
        return found

    async def fetch_numbered(
        self, name: str, sql: str, params: Sequence[SqlValue] = ()
    ) -> Row | None:
        """Run a statement that changes one row, and number that row with it."""
        self.changes = True
        return await self.fetch_one(f"{sql}, nextval('{sequence_of(name)}')", params)

    async def next_sequence(self, name: str, count: int = 1) -> int:
        """The next number of a sequence, or the last of so many."""
        if name in SEQUENCES and count == 1:
            row = await self.fetch_one(f"SELECT nextval('{sequence_of(name)}')")
        else:
            row = await self.fetch_one(NEXT, (count, name))
        if row is None:
            raise e.StatementFailed(f"There is no sequence {name}.")
        return int(row[0])

    async def _run(self, method: Any, sql: str, params: Sequence[SqlValue]) -> Any:
        statement = spelled(sql)
        self._count_statement(is_query=statement.verb == "SELECT")
        return await self._guarded(method, statement.text, storable(statement, params))

    def _count_statement(self, *, is_query: bool) -> None:
        if self._single and (self._asked or not (is_query or self._publishes)):
            raise SecondStatement
        self._asked = True

    async def _guarded(self, method: Any, text: str, params: Sequence[Any]) -> Any:
        try:
            return await method(text, *params)
        except (*RAN_AGAIN, *LOST):
            raise
        except POSTGRES as error:
            self.failure = translate_error(error)
            raise self.failure from error

    def publish(self, subject: str, event: Any = None) -> None:
        """Publish an event once this unit commits; an invalid one fails the unit."""
        if not self._publishes:
            raise e.StatementFailed("A query publishes nothing.")
        if self._single:
            # The log of changes is a second statement, which could be lost.
            raise e.StatementFailed("A unit of one statement publishes nothing.")
        self.events.append(encoded(subject, event))
