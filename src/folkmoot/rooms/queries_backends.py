"""The SQL of the backends that take part in rooms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from folkmoot.core.ports import Tx
from folkmoot.rooms.model import RoomId
from folkmoot.rooms.queries import chunks, marks


async def of_room(tx: Tx, room_id: RoomId) -> tuple[str, ...]:
    """The namespaces of a room's backends, in the order of the alphabet."""
    return (await by_room(tx, (room_id,)))[room_id]


async def by_room(tx: Tx, room_ids: Sequence[RoomId]) -> dict[RoomId, tuple[str, ...]]:
    """The backends of several rooms, each in the order of the alphabet."""
    found: dict[RoomId, tuple[str, ...]] = dict.fromkeys(room_ids, ())
    for some in chunks(room_ids):
        rows = await tx.fetch(
            "SELECT room_id, namespace FROM room_backends "  # noqa: S608
            f"WHERE room_id IN ({marks(some)}) ORDER BY namespace",
            some,
        )
        for room_id, namespace in rows:
            found[room_id] = (*found[room_id], namespace)
    return found


async def put(tx: Tx, room_id: RoomId, namespaces: Iterable[str], by: str, now: int) -> None:
    """Let a room have exactly these backends; of those it had, nothing else changes."""
    wanted, had = set(namespaces), set(await of_room(tx, room_id))
    for namespace in sorted(had - wanted):
        await tx.execute(
            "DELETE FROM room_backends WHERE room_id = ? AND namespace = ?", (room_id, namespace)
        )
    for namespace in sorted(wanted - had):
        await tx.execute(
            "INSERT INTO room_backends (room_id, namespace, added_by, added_at) "
            "VALUES (?, ?, ?, ?) ON CONFLICT (room_id, namespace) DO NOTHING",
            (room_id, namespace, by, now),
        )


async def forget_account(tx: Tx, room_id: RoomId, account_id: str) -> None:
    """Keep no longer that someone brought a room its backends; they stay."""
    await tx.execute(
        "UPDATE room_backends SET added_by = NULL WHERE room_id = ? AND added_by = ?",
        (room_id, account_id),
    )
