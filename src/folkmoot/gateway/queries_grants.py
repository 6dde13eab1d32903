"""The SQL of what people were granted, and of the handles that lead to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from folkmoot.core.events import GRANTS, subject
from folkmoot.core.ports import Tx

AT_ONCE: Final = 500
"""Handles that are asked for in one statement."""


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
    """What one account was granted, and when."""
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
    """Remove some grants of an account, and answer those that there were."""
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
    """How many grants each of those has who was granted something, by their handles."""
    rows = await tx.fetch(
        "SELECT u.handle, COUNT(*) FROM hub_grants g JOIN users u ON u.id = g.account_id "
        "GROUP BY u.handle"
    )
    return dict(rows)


async def owners_of(tx: Tx, handles: Iterable[str], now: int) -> dict[str, str]:
    """The present handles of those to whom these handles lead; those of nobody are left out."""
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
    while some := list(islice(left, AT_ONCE)):
        yield some


def marks(values: list[str]) -> str:
    """A question mark for each value."""
    return ", ".join("?" * len(values))


async def publish_grants(tx: Tx, account_id: str) -> None:
    """Have everyone told what an account is granted now."""
    tx.publish(subject(GRANTS, account_id), await grants_of(tx, account_id))
