"""Rows as the objects that they stand for. Everything here runs within a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from folkmoot.core.ports import SqlValue, Tx

T = TypeVar("T")


async def one(
    tx: Tx, make: Callable[..., T], sql: str, params: Sequence[SqlValue] = ()
) -> T | None:
    """What is made of the columns of a statement's first row, if there is one."""
    row = await tx.fetch_one(sql, params)
    return None if row is None else make(*row)


async def many(
    tx: Tx, make: Callable[..., T], sql: str, params: Sequence[SqlValue] = ()
) -> list[T]:
    """What is made of the columns of each row."""
    return [make(*row) for row in await tx.fetch(sql, params)]


async def insert(tx: Tx, table: str, values: Mapping[str, Any], conflict: str = "") -> bool:
    """Insert a row by the names of its columns, and answer whether it was.

    `conflict` begins with ON CONFLICT and says what of a row that exists.
    """
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    sql = f"INSERT INTO {table} ({columns}) VALUES ({marks}) {conflict}"  # noqa: S608
    return await tx.execute(sql, tuple(values.values())) == 1
