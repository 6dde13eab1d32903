"""What a database knows of itself: its id, its epoch, and the id of its master key.

A restored backup is the same database in a new *epoch*: whoever resumes from a place in the old
one must learn that what came after it may be gone.
"""

from __future__ import annotations

from typing import NamedTuple

from folkmoot.core.ports import DatabaseIdentity, Tx, Unit

DATABASE_ID = "database_id"
EPOCH = "epoch"
CREATED_AT = "created_at"
MASTER_KEY_ID = "master_key_id"
TIMELINE = "timeline"
"""Which of a PostgreSQL cluster's timelines it was on: each fail-over begins another."""
COPIED_AT = "copied_at"
"""Set in a backup alone: whoever finds it at start has been restored."""


async def get(tx: Tx, key: str) -> str | None:
    """The value of a key."""
    row = await tx.fetch_one("SELECT value FROM meta WHERE key = ?", (key,))
    return None if row is None else str(row[0])


async def put(tx: Tx, key: str, value: str) -> None:
    """Set the value of a key."""
    await tx.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


async def remove(tx: Tx, key: str) -> None:
    """Let a key have no value."""
    await tx.execute("DELETE FROM meta WHERE key = ?", (key,))


async def put_once(tx: Tx, key: str, value: str) -> str:
    """Set the value of a key that has none, and answer the one it has."""
    await tx.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", (key, value)
    )
    return await get(tx, key) or value


def settle_identity(database_id: str, epoch: str, now: int) -> Unit[DatabaseIdentity]:
    """Give a new database its identity, and a restored one its new epoch."""

    async def unit(tx: Tx) -> DatabaseIdentity:
        await put_once(tx, DATABASE_ID, database_id)
        await put_once(tx, EPOCH, epoch)
        await put_once(tx, CREATED_AT, str(now))
        if await tx.execute("DELETE FROM meta WHERE key = ?", (COPIED_AT,)):
            await put(tx, EPOCH, epoch)
        return await read_identity(tx)

    return unit


async def read_identity(tx: Tx) -> DatabaseIdentity:
    values: dict[str, str] = dict(await tx.fetch("SELECT key, value FROM meta"))
    return DatabaseIdentity(
        database_id=values[DATABASE_ID],
        epoch=values[EPOCH],
        created_at=int(values[CREATED_AT]),
        master_key_id=values.get(MASTER_KEY_ID),
    )


class Probe(NamedTuple):
    """The readiness check's mark: which opening of the database made it, and its number in it."""

    opening: str
    number: int

    def seen(self, found: str | None) -> bool:
        """Whether this mark, or a later one, was found."""
        opening, _, number = (found or "").partition(" ")
        return opening == self.opening and number.isdigit() and int(number) >= self.number


def write_probe(probe: Probe) -> Unit[int]:
    """Write the readiness check's mark."""

    async def unit(tx: Tx) -> int:
        return await tx.execute(
            "UPDATE health SET probe = ? WHERE id = 1", (f"{probe.opening} {probe.number}",)
        )

    return unit


async def read_probe(tx: Tx) -> str | None:
    """The mark that was written last."""
    row = await tx.fetch_one("SELECT probe FROM health WHERE id = 1")
    return None if row is None else str(row[0])
