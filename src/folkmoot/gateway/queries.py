"""The SQL of grants and of pinned definitions. Everything here runs within a unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

from folkmoot.core.events import GRANTS, subject
from folkmoot.core.ports import SqlValue, Tx
from folkmoot.gateway.limits import MAX_HANDLES_IN_QUERY


async def all_grants(tx: Tx) -> dict[str, dict[str, int]]:
    """Everything that was granted: by account, the patterns and when."""
    found: dict[str, dict[str, int]] = {}
    rows = await tx.fetch(
        "SELECT account_id, pattern, granted_at FROM hub_grants "
        "ORDER BY account_id, granted_at, pattern"
    )
    for account_id, pattern, granted_at in rows:
        found.setdefault(account_id, {})[pattern] = granted_at
    return found


async def grants_of(tx: Tx, account_id: str) -> dict[str, int]:
    """The grants of one account, with their times."""
    rows = await tx.fetch(
        "SELECT pattern, granted_at FROM hub_grants WHERE account_id = ? "
        "ORDER BY granted_at, pattern",
        (account_id,),
    )
    return dict(rows)


async def count_grants(tx: Tx) -> int:
    """How many grants there are on the hub."""
    row = await tx.fetch_one("SELECT COUNT(*) FROM hub_grants")
    return 0 if row is None else int(row[0])


async def insert_grant(tx: Tx, account_id: str, pattern: str, now: int) -> bool:
    """Store a grant, and answer whether it is a new one."""
    made = await tx.execute(
        "INSERT INTO hub_grants (account_id, pattern, granted_at) VALUES (?, ?, ?) "
        "ON CONFLICT (account_id, pattern) DO NOTHING",
        (account_id, pattern, now),
    )
    return made == 1


async def delete_grants(tx: Tx, account_id: str, patterns: list[str]) -> list[str]:
    """Remove some grants of an account, and return those that existed."""
    rows = await tx.fetch(
        "DELETE FROM hub_grants WHERE account_id = ? "  # noqa: S608
        f"AND pattern IN ({marks(patterns)}) RETURNING pattern",
        (account_id, *patterns),
    )
    found = {pattern for (pattern,) in rows}
    return [pattern for pattern in patterns if pattern in found]


async def delete_all_grants(tx: Tx, account_id: str) -> list[str]:
    """Remove all grants of an account, and answer them."""
    rows = await tx.fetch(
        "DELETE FROM hub_grants WHERE account_id = ? RETURNING pattern, granted_at", (account_id,)
    )
    return [pattern for pattern, _ in sorted(rows, key=lambda row: (row[1], row[0]))]


async def grant_counts(tx: Tx) -> dict[str, int]:
    """The number of grants by handle, for everyone with any."""
    rows = await tx.fetch(
        "SELECT u.handle, COUNT(*) FROM hub_grants g JOIN users u ON u.id = g.account_id "
        "GROUP BY u.handle"
    )
    return dict(rows)


async def handles_of(tx: Tx, accounts: Iterable[str]) -> dict[str, str]:
    """The handles of accounts; those that are gone are left out."""
    found: dict[str, str] = {}
    for some in batches(accounts):
        query = f"SELECT id, handle FROM users WHERE id IN ({marks(some)})"  # noqa: S608
        found.update(await tx.fetch(query, some))
    return found


async def owners_of(tx: Tx, handles: Iterable[str], now: int) -> dict[str, str]:
    """The present handles behind these handles; unknown ones are left out."""
    found: dict[str, str] = {}
    for some in batches(handles):
        rows = await tx.fetch(
            "SELECT h.handle, u.handle FROM handles h JOIN users u ON u.id = h.user_id "  # noqa: S608
            f"WHERE (h.kind = 'live' OR h.until > ?) AND h.handle IN ({marks(some)})",
            (now, *some),
        )
        found.update(rows)
    return found


async def redirects_from(tx: Tx, handles: Iterable[str], now: int) -> dict[str, dict[str, int]]:
    """Those of the handles that were given up and still lead somewhere: by account, until when."""
    found: dict[str, dict[str, int]] = {}
    for some in batches(handles):
        rows = await tx.fetch(
            "SELECT user_id, handle, until FROM handles WHERE kind = 'redirect' AND until > ? "  # noqa: S608
            f"AND handle IN ({marks(some)})",
            (now, *some),
        )
        for user_id, handle, until in rows:
            found.setdefault(user_id, {})[handle] = until
    return found


def batches(handles: Iterable[str]) -> Iterator[list[str]]:
    """So many at a time as a statement takes."""
    left = iter(sorted(handles))
    while some := list(islice(left, MAX_HANDLES_IN_QUERY)):
        yield some


def marks(values: list[str]) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


async def publish_grants(tx: Tx, account_id: str) -> None:
    """Have everyone told what an account is granted now."""
    tx.publish(subject(GRANTS, account_id), await grants_of(tx, account_id))


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


async def accepted(tx: Tx, namespace: str) -> list[str]:
    """The definitions that were accepted of one backend."""
    sql = "SELECT definition FROM pins WHERE namespace = ? AND hash <> '' ORDER BY name"
    return [str(row[0]) for row in await tx.fetch(sql, (namespace,))]


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


async def store_changes(
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
    """Pin a tool's changed definition if it is still that one; whether it was."""
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
