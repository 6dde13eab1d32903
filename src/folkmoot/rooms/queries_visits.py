"""The SQL of visits: who is in rooms through tools, for the next owner of each room.

Only a database of several nodes has the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from folkmoot.accounts.queries import by_id as account_by_id
from folkmoot.core.ports import Tx
from folkmoot.rooms.access import visitor_of
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import RoomId, Visitor


class StoredVisit(Struct, frozen=True):
    """A visit, and when its visitor was last active."""

    visitor: Visitor
    role: Role
    seen_at: float


async def put(tx: Tx, room_id: RoomId, visitor: Visitor, seen_at: float) -> None:
    """Store a visit, unless the room or the account is gone."""
    principal = visitor.principal
    await tx.execute(
        "INSERT INTO room_visits (room_id, account_id, credential_id, scope, seen_at) "
        "SELECT r.id, u.id, ?, ?, ? FROM rooms r CROSS JOIN users u WHERE r.id = ? AND u.id = ? "
        "ON CONFLICT (room_id, account_id) DO UPDATE SET credential_id = excluded.credential_id, "
        "scope = excluded.scope, seen_at = excluded.seen_at",
        (visitor.credential_id, principal.scope, seen_at, room_id, principal.account_id),
    )


async def put_seen(tx: Tx, room_id: RoomId, seen: Mapping[str, float]) -> None:
    """Store when visitors were last active; whose visit has ended has none again by this."""
    for account_id, at in sorted(seen.items()):
        await tx.execute(
            "UPDATE room_visits SET seen_at = ? "
            "WHERE room_id = ? AND account_id = ? AND seen_at < ?",
            (at, room_id, account_id, at),
        )


async def remove(tx: Tx, room_id: RoomId, account_id: str, until: float = math.inf) -> None:
    """Remove a visit, if its visitor was not active later than that."""
    await tx.execute(
        "DELETE FROM room_visits WHERE room_id = ? AND account_id = ? AND seen_at <= ?",
        (room_id, account_id, until),
    )


async def remove_idle(tx: Tx, since: float) -> None:
    """Remove the visits of those who were not active since then."""
    await tx.execute("DELETE FROM room_visits WHERE seen_at < ?", (since,))


async def of_room(
    tx: Tx, room_id: RoomId, since: float, now: int, most: int
) -> Sequence[StoredVisit]:
    """The visits of those who were active since then and may still be here, the latest first."""
    rows = await tx.fetch(
        "SELECT v.account_id, v.credential_id, v.scope, v.seen_at, m.role FROM room_visits v "
        "JOIN room_members m ON m.room_id = v.room_id AND m.account_id = v.account_id "
        "LEFT JOIN credentials c ON c.id = v.credential_id "
        "WHERE v.room_id = ? AND v.seen_at >= ? AND m.state <> 'banned' "
        "AND (v.credential_id = '' OR (c.account_id = v.account_id "
        "AND (c.expires_at IS NULL OR c.expires_at > ?))) ORDER BY v.seen_at DESC LIMIT ?",
        (room_id, since, now, most),
    )
    found: list[StoredVisit] = []
    for account_id, credential_id, scope, seen_at, role in rows:
        account = await account_by_id(tx, account_id)
        if account is not None and account.suspended_at is None:
            visitor = visitor_of(account, credential_id, scope)
            found.append(StoredVisit(visitor, Role(role), seen_at))
    return found
