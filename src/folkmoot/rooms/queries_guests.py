"""The SQL of guests. A guest is a row from its invitation until it is put out or its time is over.

An invitation or a credential is looked up by its hash, so how long that takes tells nothing of it.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import Final

import msgspec

from folkmoot.core.capability import Source
from folkmoot.core.ports import Row, Tx
from folkmoot.rooms.machine import GUEST
from folkmoot.rooms.machine.members import skeleton
from folkmoot.rooms.model import Guest, RoomId

PREFIX: Final = GUEST
"""What the id of a guest begins with; that of an account never does."""

GUEST_ROW: Final = "id, room_id, name, invited_by, capabilities, invite_id"

_promised = msgspec.json.Decoder(tuple[Source, ...]).decode


def is_guest(account_id: str) -> bool:
    """Whether an account id is that of a guest."""
    return account_id.startswith(PREFIX)


async def insert(
    tx: Tx,
    guest: Guest,
    likeness: str,
    *,
    invitation_hash: str,
    now: int,
    expires_at: int,
) -> bool:
    """Store someone who was invited, unless the room has a guest with such a name."""
    inserted = await tx.execute(
        "INSERT INTO room_guests (id, room_id, name, likeness, invited_by, invitation_hash, "
        "created_at, expires_at, capabilities, invite_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (room_id, likeness) DO NOTHING",
        (
            guest.id,
            guest.room_id,
            guest.name,
            likeness,
            guest.invited_by,
            invitation_hash,
            now,
            expires_at,
            msgspec.json.encode(guest.capabilities).decode(),
            guest.invite_id,
        ),
    )
    return inserted == 1


async def exchange(
    tx: Tx, room_id: RoomId, invitation_hash: str, now: int, read_seq: int = 0
) -> Guest | None:
    """Use up the invitation of a guest; nothing where it is void, or for elsewhere.

    What was said up to `read_seq` is not new to the guest. Of two who try at the same time the
    second finds no invitation.
    """
    rows = await tx.fetch(
        "UPDATE room_guests SET invitation_hash = NULL, expires_at = NULL, read_seq = ? "  # noqa: S608
        "WHERE invitation_hash = ? AND room_id = ? AND expires_at > ? "
        f"RETURNING {GUEST_ROW}",
        (read_seq, invitation_hash, room_id, now),
    )
    return _guest(rows[0]) if rows else None


async def by_credential(tx: Tx, credential_hash: str) -> tuple[Guest, str] | None:
    """The guest whose credential has this hash, and the credential's id."""
    row = await tx.fetch_one(
        "SELECT g.id, g.room_id, g.name, g.invited_by, g.capabilities, g.invite_id, c.id, c.hash "
        "FROM credentials c JOIN room_guests g ON g.id = c.guest_id WHERE c.hash = ?",
        (credential_hash,),
    )
    if row is None or not compare_digest(row[-1], credential_hash):
        return None
    return _guest(row), row[-2]


def _guest(row: Row) -> Guest:
    id_, room_id, name, invited_by, promised, invite_id = row[:6]
    return Guest(id_, room_id, name, invited_by, _promised(promised), invite_id)


async def room_of(tx: Tx, guest_id: str) -> dict[RoomId, str]:
    """The one room of a guest, and its name; none if the guest is gone."""
    row = await tx.fetch_one(
        "SELECT r.id, r.name FROM room_guests g JOIN rooms r ON r.id = g.room_id WHERE g.id = ?",
        (guest_id,),
    )
    return {} if row is None else {int(row[0]): str(row[1])}


async def named(tx: Tx, room_id: RoomId, name: str) -> str | None:
    """The id of a room's guest with this name, also of one who has not come."""
    row = await tx.fetch_one(
        "SELECT id FROM room_guests WHERE room_id = ? AND likeness = ? AND name = ?",
        (room_id, skeleton(name), name),
    )
    return None if row is None else str(row[0])


async def count_in(tx: Tx, room_id: RoomId, most: int) -> int:
    """How many guests a room has, counted up to so many."""
    row = await tx.fetch_one(
        "SELECT COUNT(*) FROM (SELECT 1 FROM room_guests WHERE room_id = ? LIMIT ?) AS counted",
        (room_id, most),
    )
    return 0 if row is None else int(row[0])


async def count_by(tx: Tx, account_id: str, most: int) -> int:
    """How many guests an account has invited, counted up to so many."""
    row = await tx.fetch_one(
        "SELECT COUNT(*) FROM (SELECT 1 FROM room_guests WHERE invited_by = ? LIMIT ?) AS counted",
        (account_id, most),
    )
    return 0 if row is None else int(row[0])


async def remove(tx: Tx, guest_id: str) -> bool:
    """Forget a guest, with invitation and credential; whether there was one."""
    return await tx.execute("DELETE FROM room_guests WHERE id = ?", (guest_id,)) == 1


async def remove_waiting(tx: Tx, room_id: RoomId, likeness: str, by: str, now: int) -> None:
    """Remove an invited guest who has not come, if invited by `by` or expired."""
    await tx.execute(
        "DELETE FROM room_guests WHERE room_id = ? AND likeness = ? "
        "AND expires_at IS NOT NULL AND (invited_by = ? OR expires_at <= ?)",
        (room_id, likeness, by, now),
    )


async def remove_invitations_by(tx: Tx, inviter: str) -> int:
    """Remove the guests someone invited who have not come."""
    return await tx.execute(
        "DELETE FROM room_guests WHERE invited_by = ? AND expires_at IS NOT NULL", (inviter,)
    )


async def waiting_in(
    tx: Tx, room_id: RoomId, by: str | None, now: int, most: int
) -> list[tuple[str, str | None, int]]:
    """The guests of a room who have not come, of one inviter or all.

    With each the inviter's handle, and until when the invitation can be used.
    """
    rows = await tx.fetch(
        "SELECT g.name, u.handle, g.expires_at FROM room_guests g "  # noqa: S608
        "LEFT JOIN users u ON u.id = g.invited_by WHERE g.room_id = ? AND g.expires_at > ? "
        f"{'' if by is None else 'AND g.invited_by = ? '}ORDER BY g.name LIMIT ?",
        (room_id, now, *(() if by is None else (by,)), most),
    )
    return [(str(row[0]), row[1], int(row[2])) for row in rows]


async def remove_invitation(tx: Tx, room_id: RoomId, name: str, by: str | None) -> bool:
    """Forget a guest who has not come, invited by one account or anyone; whether there was one."""
    removed = await tx.execute(
        "DELETE FROM room_guests WHERE room_id = ? AND likeness = ? AND name = ? "  # noqa: S608
        f"AND expires_at IS NOT NULL{'' if by is None else ' AND invited_by = ?'}",
        (room_id, skeleton(name), name, *(() if by is None else (by,))),
    )
    return removed == 1


async def any_expired(tx: Tx, now: int) -> bool:
    """Whether there are some who did not come in time."""
    row = await tx.fetch_one(
        "SELECT 1 FROM room_guests WHERE expires_at IS NOT NULL AND expires_at <= ? LIMIT 1", (now,)
    )
    return row is not None


async def remove_expired(tx: Tx, now: int, most: int) -> int:
    """Forget some of those who did not come in time; how many it were."""
    return await tx.execute(
        "DELETE FROM room_guests WHERE id IN (SELECT id FROM room_guests "
        "WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?)",
        (now, most),
    )


async def is_handle(tx: Tx, name: str, now: int) -> bool:
    """Whether a name is the handle of an account, leads to one, or is kept for one."""
    row = await tx.fetch_one(
        "SELECT 1 FROM handles WHERE handle = ? AND (kind = 'live' OR until > ?)", (name, now)
    )
    return row is not None
