"""The SQL of pinned definitions. Everything here runs within a unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from folkmoot.core.ports import SqlValue, Tx

ROWS_AT_ONCE: Final = (64, 8, 1)
"""A statement gives the interpreter away however much it does, so one should do much."""

_UNLESS_PINNED: Final = " ON CONFLICT (namespace, name) DO NOTHING"
_PIN: Final = "INSERT INTO pins (namespace, name, hash, definition, pinned_at) VALUES "
_PINS: Final = tuple(
    (rows, _PIN + ", ".join(["(?, ?, ?, ?, ?)"] * rows) + _UNLESS_PINNED) for rows in ROWS_AT_ONCE
)


_HOLD: Final = (
    "INSERT INTO pins (namespace, name, hash, definition, pinned_at, changed_hash, "
    "changed_definition, changed_at) VALUES "
)
_HOLDS: Final = tuple(
    (rows, _HOLD + ", ".join(["(?, ?, '', '{}', ?, ?, ?, ?)"] * rows) + _UNLESS_PINNED)
    for rows in ROWS_AT_ONCE
)


class Definite(NamedTuple):
    """A definition to be pinned, or one that differs from the pinned one."""

    name: str
    hash: str
    definition: str


class Changed(NamedTuple):
    """A pin whose tool has changed."""

    namespace: str
    name: str
    hash: str
    definition: str
    changed_hash: str
    changed_definition: str
    changed_at: int


async def hashes(
    tx: Tx, namespace: str | None = None
) -> list[tuple[str, str, str, int, str | None, int]]:
    """Every pin, or those of one backend.

    Namespace, name, hash and length, and those of the change there is, if any.
    """
    only, params = ("", ()) if namespace is None else (" WHERE namespace = ?", (namespace,))
    rows = await tx.fetch(
        "SELECT namespace, name, hash, LENGTH(definition), changed_hash, "  # noqa: S608
        f"COALESCE(LENGTH(changed_definition), 0) FROM pins{only}",
        params,
    )
    return [(row[0], row[1], row[2], row[3], row[4], row[5]) for row in rows]


async def pin(tx: Tx, namespace: str, definite: Sequence[Definite], now: int) -> int:
    """Pin definitions that are not pinned, many with one statement; how many it were."""
    at = made = 0
    for rows, sql in _PINS:
        while len(definite) - at >= rows:
            batch = definite[at : at + rows]
            values: Iterable[Sequence[SqlValue]] = ((namespace, *each, now) for each in batch)
            made += await tx.execute(sql, list(chain.from_iterable(values)))
            at += rows
    return made


async def pin_again(
    tx: Tx, namespace: str, definite: Iterable[tuple[Definite, str]], now: int
) -> int:
    """Pin what tools have become, if their pins still have the hash each was judged by."""
    return sum(
        [
            await tx.execute(
                "UPDATE pins SET hash = ?, definition = ?, pinned_at = ?, changed_hash = NULL, "
                "changed_definition = NULL, changed_at = NULL "
                "WHERE namespace = ? AND name = ? AND hash = ?",
                (each.hash, each.definition, now, namespace, each.name, judged),
            )
            for each, judged in definite
        ]
    )


async def hold(tx: Tx, namespace: str, definite: Sequence[Definite], now: int) -> int:
    """Keep new definitions that are not accepted: what they were before is nothing."""
    at = made = 0
    for rows, sql in _HOLDS:
        while len(definite) - at >= rows:
            values: list[SqlValue] = []
            for each in definite[at : at + rows]:
                values += (namespace, each.name, now, each.hash, each.definition, now)
            made += await tx.execute(sql, values)
            at += rows
    return made


async def note_changes(
    tx: Tx, namespace: str, definite: Iterable[tuple[Definite, str]], now: int
) -> int:
    """Keep what tools have become, if their pins still have the hash each was judged by."""
    return sum(
        [
            await tx.execute(
                "UPDATE pins SET changed_hash = ?, changed_definition = ?, changed_at = ? "
                "WHERE namespace = ? AND name = ? AND hash = ?",
                (each.hash, each.definition, now, namespace, each.name, judged),
            )
            for each, judged in definite
        ]
    )


async def forget_changes(tx: Tx, namespace: str, names: Iterable[tuple[str, str]]) -> int:
    """These are again what was pinned, if their pins still have the hash each was judged by."""
    return sum(
        [
            await tx.execute(
                "UPDATE pins SET changed_hash = NULL, changed_definition = NULL, "
                "changed_at = NULL WHERE namespace = ? AND name = ? AND hash = ?",
                (namespace, name, judged),
            )
            for name, judged in names
        ]
    )


async def changed(tx: Tx, namespace: str = "") -> list[Changed]:
    """The pins whose tools have changed or are new, of one namespace or of all."""
    rows = await tx.fetch(
        "SELECT namespace, name, hash, definition, changed_hash, changed_definition, changed_at "
        "FROM pins WHERE changed_hash IS NOT NULL AND (namespace = ? OR ? = '') "
        "ORDER BY namespace, name",
        (namespace, namespace),
    )
    return [Changed(*row) for row in rows]


async def accept(tx: Tx, namespace: str, name: str, changed_hash: str, now: int) -> bool:
    """Pin what a tool has become, if it is still that; whether it was."""
    accepted = await tx.execute(
        "UPDATE pins SET hash = changed_hash, definition = changed_definition, pinned_at = ?, "
        "changed_hash = NULL, changed_definition = NULL, changed_at = NULL "
        "WHERE namespace = ? AND name = ? AND changed_hash = ?",
        (now, namespace, name, changed_hash),
    )
    return accepted == 1


async def forget(tx: Tx, namespace: str) -> int:
    """Remove the pins of a namespace; how many there were."""
    return await tx.execute("DELETE FROM pins WHERE namespace = ?", (namespace,))
