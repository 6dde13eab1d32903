"""The SQL of members: what an account is to a room, who owns rooms, and who was put out."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from folkmoot.core.events import MEMBERS, subject
from folkmoot.core.ports import Tx
from folkmoot.rooms import queries_guests
from folkmoot.rooms.machine import AccountStanding, Known, Role
from folkmoot.rooms.model import Membership, MemberState, RoomId
from folkmoot.rooms.queries import chunks, marks


async def membership(tx: Tx, room_id: RoomId, account_id: str) -> Membership | None:
    """What an account is to a room."""
    row = await tx.fetch_one(
        "SELECT role, state, read_seq FROM room_members WHERE room_id = ? AND account_id = ?",
        (room_id, account_id),
    )
    return None if row is None else Membership(room_id, account_id, Role(row[0]), *row[1:])


async def known_as(tx: Tx, room_id: RoomId, name: str) -> Known | None:
    """Who may come into a room under this name: an account by its handle, or a guest."""
    row = await tx.fetch_one(
        "SELECT m.account_id, m.role FROM users u CROSS JOIN room_members m "
        "WHERE u.handle = ? AND m.room_id = ? AND m.account_id = u.id AND m.state <> 'banned'",
        (name, room_id),
    )
    if row is not None:
        return Known(row[0], Role(row[1]))
    guest = await queries_guests.named(tx, room_id, name)
    return None if guest is None else Known(guest, Role.GUEST)


async def fallen(tx: Tx, accounts: Collection[str]) -> dict[str, AccountStanding]:
    """Which of some accounts are suspended, or there no more."""
    found: dict[str, AccountStanding] = dict.fromkeys(accounts, "deleted")
    for some in chunks(sorted(accounts)):
        rows = await tx.fetch(
            f"SELECT id, suspended_at FROM users WHERE id IN ({marks(some)})",  # noqa: S608
            some,
        )
        for account, suspended_at in rows:
            if suspended_at is None:
                del found[account]
            else:
                found[account] = "suspended"
    return found


async def put_membership(tx: Tx, member: Membership) -> None:
    """Set an account's membership of a room."""
    await tx.execute(
        "INSERT INTO room_members (room_id, account_id, role, state) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (room_id, account_id) "
        "DO UPDATE SET role = excluded.role, state = excluded.state",
        (member.room_id, member.account_id, member.role.value, member.state),
    )
    await publish_membership(tx, member.room_id, member.account_id, member.state)


async def join(tx: Tx, room_id: RoomId, account_id: str, read_seq: int = 0) -> bool:
    """Let an account be a member of a room, unless it was put out or is gone.

    What else it is to the room, it stays. What was said up to `read_seq` is not new to it.
    """
    joined = await tx.execute(
        "INSERT INTO room_members (room_id, account_id, role, state, read_seq) "
        "SELECT r.id, u.id, 'member', 'member', ? FROM rooms r CROSS JOIN users u "
        "WHERE r.id = ? AND u.id = ? "
        "ON CONFLICT (room_id, account_id) DO UPDATE SET state = 'member', "
        "read_seq = excluded.read_seq WHERE room_members.state <> 'banned'",
        (read_seq, room_id, account_id),
    )
    if joined:
        await publish_membership(tx, room_id, account_id, "member")
    return joined == 1


async def invite(tx: Tx, room_id: RoomId, account_id: str, *, banned: bool) -> bool:
    """Let an account come into a room that it is nothing to, or, if asked, was put out of."""
    again = "DO UPDATE SET role = 'member', state = 'invited' WHERE room_members.state = 'banned'"
    invited = await tx.execute(
        "INSERT INTO room_members (room_id, account_id, role, state) "  # noqa: S608
        "SELECT r.id, u.id, 'member', 'invited' FROM rooms r CROSS JOIN users u "
        "WHERE r.id = ? AND u.id = ? "
        f"ON CONFLICT (room_id, account_id) {again if banned else 'DO NOTHING'}",
        (room_id, account_id),
    )
    if invited:
        await publish_membership(tx, room_id, account_id, "invited")
    return invited == 1


async def set_role(tx: Tx, room_id: RoomId, account_id: str, role: Role) -> bool:
    """Let a member of a room be an owner, or an owner a member, unless they were put out."""
    changed = await tx.execute(
        "UPDATE room_members SET role = ? "
        "WHERE room_id = ? AND account_id = ? AND state = 'member'",
        (role.value, room_id, account_id),
    )
    if changed:
        await publish_membership(tx, room_id, account_id, "member")
    return changed == 1


async def leave(tx: Tx, room_id: RoomId, account_id: str) -> bool:
    """Let an account be nothing to a room, unless it is an owner or was put out."""
    removed = await tx.execute(
        "DELETE FROM room_members WHERE room_id = ? AND account_id = ? "
        "AND state <> 'banned' AND role <> 'owner'",
        (room_id, account_id),
    )
    if removed:
        await forget_mentions(tx, room_id, account_id)
        await publish_membership(tx, room_id, account_id, None)
    return removed == 1


async def forget_mentions(tx: Tx, room_id: RoomId, reader: str) -> None:
    """Remove where someone who is in a room no more was mentioned."""
    await tx.execute(
        "DELETE FROM room_mentions WHERE room_id = ? AND reader = ?", (room_id, reader)
    )


async def invited_to(tx: Tx, room_id: RoomId, most: int) -> list[str]:
    """The handles of accounts that were invited into a room and have not come."""
    rows = await tx.fetch(
        "SELECT u.handle FROM room_members m CROSS JOIN users u WHERE m.room_id = ? "
        "AND m.state = 'invited' AND u.id = m.account_id ORDER BY u.handle LIMIT ?",
        (room_id, most),
    )
    return [str(row[0]) for row in rows]


async def remove_invited(tx: Tx, room_id: RoomId, handle: str) -> bool:
    """Take the invitation of an account back that has not come; whether there was one."""
    rows = await tx.fetch(
        "DELETE FROM room_members WHERE room_id = ? AND state = 'invited' AND account_id = "
        "(SELECT id FROM users WHERE handle = ?) RETURNING account_id",
        (room_id, handle),
    )
    for (account_id,) in rows:
        await publish_membership(tx, room_id, account_id, None)
    return bool(rows)


async def publish_membership(
    tx: Tx, room_id: RoomId, account_id: str, state: MemberState | None
) -> None:
    """Have whoever listens for an account, or a guest, told what it is to a room from now on."""
    row = await tx.fetch_one("SELECT name FROM rooms WHERE id = ?", (room_id,))
    if row is not None:
        told = {"room_id": room_id, "room": row[0], "state": state}
        tx.publish(subject(MEMBERS, account_id), told)


async def expel(tx: Tx, room_id: RoomId, account_id: str) -> None:
    """Let someone in no more until they are invited again: a guest is forgotten."""
    await publish_membership(tx, room_id, account_id, "banned")
    await forget_mentions(tx, room_id, account_id)
    if queries_guests.is_guest(account_id):
        await queries_guests.remove(tx, account_id)
        return
    # Whoever deleted their account meanwhile needs no ban.
    await tx.execute(
        "INSERT INTO room_members (room_id, account_id, role, state) "
        "SELECT r.id, u.id, 'member', 'banned' FROM rooms r CROSS JOIN users u "
        "WHERE r.id = ? AND u.id = ? "
        "ON CONFLICT (room_id, account_id) DO UPDATE SET role = 'member', state = 'banned'",
        (room_id, account_id),
    )


async def memberships_of(tx: Tx, account_id: str) -> list[tuple[str, Membership]]:
    """What an account is to which rooms, with their names; ordered by the rooms' numbers."""
    rows = await tx.fetch(
        "SELECT r.name, m.room_id, m.role, m.state FROM room_members m CROSS JOIN rooms r "
        "WHERE r.id = m.room_id AND m.account_id = ? ORDER BY m.room_id",
        (account_id,),
    )
    return [
        (name, Membership(room_id, account_id, Role(role), state))
        for name, room_id, role, state in rows
    ]


async def lock_account(tx: Tx, account_id: str) -> None:
    """Lock an account's row until the commit, so that counts stay true."""
    await tx.execute("UPDATE users SET created_at = created_at WHERE id = ?", (account_id,))


async def count_owned(tx: Tx, account_id: str) -> int:
    """How many rooms an account owns."""
    row = await tx.fetch_one(
        "SELECT COUNT(*) FROM room_members WHERE account_id = ? AND role = 'owner'", (account_id,)
    )
    return 0 if row is None else int(row[0])


async def owners_of(tx: Tx, room_id: RoomId) -> list[str]:
    """The handles of a room's owners."""
    return (await owners_by_room(tx, (room_id,)))[room_id]


async def owners_by_room(tx: Tx, room_ids: Sequence[RoomId]) -> dict[RoomId, list[str]]:
    """The handles of the owners of several rooms, each in the order of the alphabet."""
    owners: dict[RoomId, list[str]] = {room_id: [] for room_id in room_ids}
    for some in chunks(room_ids):
        rows = await tx.fetch(
            "SELECT m.room_id, u.handle FROM room_members m CROSS JOIN users u "  # noqa: S608
            "WHERE u.id = m.account_id AND m.role = 'owner' "
            f"AND m.room_id IN ({marks(some)}) ORDER BY u.handle",
            some,
        )
        for room_id, handle in rows:
            owners[room_id].append(handle)
    return owners


async def handles_of(tx: Tx, ids: Sequence[str]) -> dict[str, str]:
    """The present handles of accounts; those that are gone are left out."""
    handles: dict[str, str] = {}
    for some in chunks(ids):
        sql = f"SELECT id, handle FROM users WHERE id IN ({marks(some)})"  # noqa: S608
        handles.update(dict(await tx.fetch(sql, some)))
    return handles


async def handles_in(tx: Tx, room_id: RoomId) -> list[str]:
    """The present handles of all who are something to a room. The cost grows with their number."""
    rows = await tx.fetch(
        "SELECT u.handle FROM room_members m CROSS JOIN users u "
        "WHERE u.id = m.account_id AND m.room_id = ?",
        (room_id,),
    )
    return [str(row[0]) for row in rows]


async def members_of(tx: Tx, room_id: RoomId, most: int) -> list[tuple[str, str, str]]:
    """The members and guests of a room by name, each with type and role; so many at most."""
    rows = await tx.fetch(
        "SELECT u.handle, u.account_type, m.role FROM room_members m CROSS JOIN users u "
        "WHERE u.id = m.account_id AND m.room_id = ? AND m.state = 'member' "
        "AND u.suspended_at IS NULL UNION ALL SELECT g.name, 'guest', 'guest' FROM room_guests g "
        "WHERE g.room_id = ? AND g.expires_at IS NULL ORDER BY 1 LIMIT ?",
        (room_id, room_id, most),
    )
    return [(str(name), str(type_), str(role)) for name, type_, role in rows]


async def remove_account(tx: Tx, account_id: str) -> list[RoomId]:
    """Remove what an account is to rooms, and the invitations it made; the rooms it was in.

    What it said stays, as history that belongs to its rooms. A room that counted for it counts for
    another of its owners, if there is one.
    """
    await tx.execute(
        "UPDATE rooms SET created_by = (SELECT MIN(o.account_id) FROM room_members o "
        "WHERE o.room_id = rooms.id AND o.role = 'owner' AND o.account_id <> ?) "
        "WHERE created_by = ? AND id IN (SELECT room_id FROM room_members WHERE account_id = ?)",
        (account_id, account_id, account_id),
    )
    rows = await tx.fetch(
        "DELETE FROM room_members WHERE account_id = ? RETURNING room_id", (account_id,)
    )
    for (room_id,) in rows:
        await forget_mentions(tx, room_id, account_id)
    await queries_guests.remove_invitations_by(tx, account_id)
    return sorted(row[0] for row in rows)
