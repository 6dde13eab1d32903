"""All rooms of a hub as its operator sees them: how large they are and whose, not what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from folkmoot.core.ports import Tx


class RoomRow(Struct, frozen=True):
    """A room in the operator's list."""

    name: str
    owner: str | None
    """The handle of its owner; None where the owner's account is gone."""
    access: str
    durable: bool
    members: int
    messages: int
    bytes: int
    created_at: int
    last_at: float | None
    """When the last stored message came."""


async def rooms_overview(tx: Tx, after: str, limit: int) -> list[RoomRow]:
    """Some rooms by name. The cost grows with the rooms and those who wrote in them."""
    rows = await tx.fetch(
        "SELECT r.name, (SELECT u.handle FROM room_members m CROSS JOIN users u "
        "WHERE m.room_id = r.id AND m.role = 'owner' AND u.id = m.account_id "
        "ORDER BY u.handle LIMIT 1), r.access, r.durable, "
        "(SELECT COUNT(*) FROM room_members m WHERE m.room_id = r.id AND m.state = 'member'), "
        "COALESCE((SELECT SUM(s.messages) FROM room_shares s WHERE s.room_id = r.id), 0), "
        "COALESCE((SELECT SUM(s.bytes) FROM room_shares s WHERE s.room_id = r.id), 0), "
        "r.created_at, (SELECT x.at FROM room_messages x WHERE x.room_id = r.id "
        "ORDER BY x.seq DESC LIMIT 1) FROM rooms r WHERE r.name > ? ORDER BY r.name LIMIT ?",
        (after, limit),
    )
    return [
        RoomRow(name, owner, access, bool(durable), members, messages, size, made, last)
        for name, owner, access, durable, members, messages, size, made, last in rows
    ]
