"""The SQL of shares: how much each author has stored in each room. It is kept, never counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from folkmoot.core.ports import Row, Tx
from folkmoot.quotas import ROOM_AUTHOR, ROOM_SIZE
from folkmoot.rooms.model import RoomId
from folkmoot.rooms.shares import Share

WINDOW: Final = 2_000


async def add(tx: Tx, room_id: RoomId, shares: Mapping[str, Share]) -> None:
    """Note what was stored with these messages."""
    for author, (messages, size) in shares.items():
        await tx.execute(
            "INSERT INTO room_shares (room_id, author, messages, bytes) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (room_id, author) DO UPDATE SET "
            "messages = room_shares.messages + excluded.messages, "
            "bytes = room_shares.bytes + excluded.bytes",
            (room_id, author, messages, size),
        )


async def subtract(tx: Tx, room_id: RoomId, removed: list[Row]) -> Share:
    """Note what was removed, given as author and size of each message; all of it together."""
    shares: dict[str, Share] = {}
    for author, size in removed:
        shares[author] = shares.get(author, Share()).plus(size)
    for author, (messages, size) in shares.items():
        await tx.execute(
            "UPDATE room_shares SET messages = messages - ?, bytes = bytes - ? "
            "WHERE room_id = ? AND author = ?",
            (messages, size, room_id, author),
        )
        await tx.execute(
            "DELETE FROM room_shares WHERE room_id = ? AND author = ? AND messages <= 0",
            (room_id, author),
        )
    return Share(len(removed), sum(size for _, size in removed))


async def of_room(tx: Tx, room_id: RoomId) -> dict[str, Share]:
    """The shares of a room's history, by author."""
    rows = await tx.fetch(
        "SELECT author, messages, bytes FROM room_shares WHERE room_id = ?", (room_id,)
    )
    return {author: Share(messages, size) for author, messages, size in rows}


async def total_of_room(tx: Tx, room_id: RoomId) -> Share:
    """What a room's history has in all."""
    row = await tx.fetch_one(
        "SELECT COALESCE(SUM(messages), 0), COALESCE(SUM(bytes), 0) FROM room_shares "
        "WHERE room_id = ?",
        (room_id,),
    )
    return Share() if row is None else Share(*row)


async def window(tx: Tx, room_id: RoomId, after: int) -> list[Row]:
    """Some messages after a `seq`: the `seq` of each, its author, and what it counts for."""
    return await tx.fetch(
        f"SELECT seq, {ROOM_AUTHOR}, {ROOM_SIZE} FROM room_messages "  # noqa: S608
        "WHERE room_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (room_id, after, WINDOW),
    )
