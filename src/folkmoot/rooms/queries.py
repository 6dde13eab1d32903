"""The SQL of rooms and their members. Every statement finds its rows by an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from folkmoot.core.capability import Source
from folkmoot.core.events import MEMBERS, ROOMS, subject
from folkmoot.core.ports import Row, Tx
from folkmoot.rooms import queries_guests
from folkmoot.rooms.machine import Known, Role
from folkmoot.rooms.model import Membership, MemberState, RoomId, RoomPolicy, RoomRecord

T = TypeVar("T")

LIST_SIZES: Final = (1, 8, 64, 256)
"""Lists in statements are filled up to one of these, so that few statements have to be prepared."""

ROOM: Final = (
    "r.id, r.name, r.epoch, r.access, r.durable, r.capabilities, r.grants, r.policy, r.first_seq, "
    "r.oldest_seq, r.created_by, r.created_at, r.updated_at, r.version, "
    "(SELECT MAX(x.seq) FROM room_messages x WHERE x.room_id = r.id), "
    "(SELECT string_agg(o.account_id, ' ') FROM room_members o "
    "WHERE o.room_id = r.id AND o.role = 'owner')"
)

_encode = msgspec.json.Encoder().encode
_capabilities = msgspec.json.Decoder(tuple[Source, ...] | None).decode
_grants = msgspec.json.Decoder(dict[str, tuple[Source, ...]]).decode
_policy = msgspec.json.Decoder(RoomPolicy).decode


class Seen(NamedTuple):
    """A room in someone's list, and what they are to it."""

    room: RoomRecord
    membership: Membership | None


class Snapshot(NamedTuple):
    """What a room was at one of its messages: nothing, at 0, where none was taken."""

    data: bytes | None
    seq: int


async def insert_room(tx: Tx, room: RoomRecord) -> RoomRecord | None:
    """Store a new room, whose `id` is given here; nothing where another has its name."""
    room = msgspec.structs.replace(room, id=await tx.next_sequence("room_id"))
    inserted = await tx.execute(
        "INSERT INTO rooms (id, name, epoch, access, durable, capabilities, grants, policy, "
        "first_seq, created_by, created_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
        (
            room.id,
            room.name,
            room.epoch,
            room.access,
            int(room.durable),
            _text(room.capabilities),
            _text(room.grants),
            _text(room.policy),
            room.first_seq,
            room.created_by,
            room.created_at,
            room.updated_at,
        ),
    )
    return room if inserted else None


async def room_by_name(tx: Tx, name: str) -> RoomRecord | None:
    """The room with this name."""
    row = await tx.fetch_one(f"SELECT {ROOM} FROM rooms r WHERE r.name = ?", (name,))  # noqa: S608
    return None if row is None else _record(row)


async def room_by_id(tx: Tx, room_id: RoomId) -> RoomRecord | None:
    """The room with this number."""
    row = await tx.fetch_one(f"SELECT {ROOM} FROM rooms r WHERE r.id = ?", (room_id,))  # noqa: S608
    return None if row is None else _record(row)


async def rooms_after(tx: Tx, room_id: RoomId, limit: int) -> list[RoomRecord]:
    """Some rooms in the order of their numbers, for whoever looks after all of them."""
    rows = await tx.fetch(
        f"SELECT {ROOM} FROM rooms r WHERE r.id > ? ORDER BY r.id LIMIT ?",  # noqa: S608
        (room_id, limit),
    )
    return [_record(row) for row in rows]


async def rooms_seen_by(tx: Tx, account_id: str, after_name: str, limit: int) -> list[Seen]:
    """The rooms someone may know of, by name: those that are listed, and private ones of theirs.

    The cost grows with the limit and with the rooms they are in, not with the rooms of others.
    """
    listed = await tx.fetch(
        f"SELECT {ROOM}, m.role, m.state FROM rooms r "  # noqa: S608
        "LEFT JOIN room_members m ON m.room_id = r.id AND m.account_id = ? "
        "WHERE r.access <> 'private' AND r.name > ? ORDER BY r.name LIMIT ?",
        (account_id, after_name, limit),
    )
    private = await tx.fetch(
        f"SELECT {ROOM}, m.role, m.state FROM room_members m CROSS JOIN rooms r "  # noqa: S608
        "WHERE r.id = m.room_id AND m.account_id = ? AND m.state <> 'banned' "
        "AND r.access = 'private' AND r.name > ? ORDER BY r.name LIMIT ?",
        (account_id, after_name, limit),
    )
    rows = sorted((*listed, *private), key=lambda row: str(row[1]))[:limit]
    return [_seen(row, account_id) for row in rows]


async def count_owned(tx: Tx, account_id: str) -> int:
    """How many rooms an account owns."""
    row = await tx.fetch_one(
        "SELECT COUNT(*) FROM room_members WHERE account_id = ? AND role = 'owner'", (account_id,)
    )
    return 0 if row is None else int(row[0])


async def update_room(tx: Tx, room: RoomRecord) -> bool:
    """Store what can change of a room: access, epoch, rights, policy and whom it counts for.

    Not if another change of the room was stored since its record was read.
    """
    changed = await tx.execute(
        "UPDATE rooms SET access = ?, epoch = ?, capabilities = ?, grants = ?, policy = ?, "
        "created_by = ?, updated_at = ?, version = version + 1 WHERE id = ? AND version = ?",
        (
            room.access,
            room.epoch,
            _text(room.capabilities),
            _text(room.grants),
            _text(room.policy),
            room.created_by,
            room.updated_at,
            room.id,
            room.version,
        ),
    )
    return changed == 1


def publish_change(tx: Tx, room_id: RoomId, by: str = "", *, gone: bool = False) -> None:
    """Have every hub told that a room is not what it was; `by` is the one that knows already."""
    tx.publish(subject(ROOMS, str(room_id)), {"by": by, "gone": gone})


async def delete_if_deserted(tx: Tx, room_id: RoomId) -> bool:
    """Remove a room that has no member, nobody who was invited, and no guest."""
    removed = await tx.execute(
        "DELETE FROM rooms WHERE id = ? AND access <> 'open' "
        "AND NOT EXISTS (SELECT 1 FROM room_members m "
        "WHERE m.room_id = rooms.id AND m.state <> 'banned') "
        "AND NOT EXISTS (SELECT 1 FROM room_guests g WHERE g.room_id = rooms.id)",
        (room_id,),
    )
    if removed:
        publish_change(tx, room_id, gone=True)
    return removed == 1


async def delete_room(tx: Tx, room_id: RoomId) -> None:
    """Remove a room with all that belongs to it. The cost grows with what was said in it."""
    await tx.execute("DELETE FROM rooms WHERE id = ?", (room_id,))
    publish_change(tx, room_id, gone=True)


async def save_snapshot(
    tx: Tx,
    room_id: RoomId,
    snapshot: bytes,
    seq: int,
    first_seq: int,
    oldest_seq: int | None = None,
) -> None:
    """Store what a room was at a message, and at which its history begins.

    `oldest_seq` is there where some messages before that are kept.
    """
    await tx.execute(
        "INSERT INTO room_snapshots (room_id, seq, data) VALUES (?, ?, ?) "
        "ON CONFLICT (room_id) DO UPDATE SET seq = excluded.seq, data = excluded.data",
        (room_id, seq, snapshot),
    )
    await tx.execute(
        "UPDATE rooms SET first_seq = ?, oldest_seq = ? "
        "WHERE id = ? AND (first_seq <> ? OR COALESCE(oldest_seq, 0) <> ?)",
        (first_seq, oldest_seq, room_id, first_seq, oldest_seq or 0),
    )


async def snapshot_of(tx: Tx, room_id: RoomId) -> Snapshot:
    """The last snapshot of a room."""
    row = await tx.fetch_one("SELECT data, seq FROM room_snapshots WHERE room_id = ?", (room_id,))
    return Snapshot(None, 0) if row is None else Snapshot(*row)


async def membership(tx: Tx, room_id: RoomId, account_id: str) -> Membership | None:
    """What an account is to a room."""
    row = await tx.fetch_one(
        "SELECT role, state FROM room_members WHERE room_id = ? AND account_id = ?",
        (room_id, account_id),
    )
    return None if row is None else Membership(room_id, account_id, Role(row[0]), row[1])


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


async def put_membership(tx: Tx, member: Membership) -> None:
    """Let an account be this to a room, whatever it was before."""
    await tx.execute(
        "INSERT INTO room_members (room_id, account_id, role, state) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (room_id, account_id) "
        "DO UPDATE SET role = excluded.role, state = excluded.state",
        (member.room_id, member.account_id, member.role.value, member.state),
    )
    await publish_membership(tx, member.room_id, member.account_id, member.state)


async def join(tx: Tx, room_id: RoomId, account_id: str) -> bool:
    """Let an account be a member of a room, unless it was put out or is gone.

    What else it is to the room, it stays.
    """
    joined = await tx.execute(
        "INSERT INTO room_members (room_id, account_id, role, state) "
        "SELECT r.id, u.id, 'member', 'member' FROM rooms r CROSS JOIN users u "
        "WHERE r.id = ? AND u.id = ? "
        "ON CONFLICT (room_id, account_id) DO UPDATE SET state = 'member' "
        "WHERE room_members.state <> 'banned'",
        (room_id, account_id),
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
        await publish_membership(tx, room_id, account_id, None)
    return removed == 1


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
    await queries_guests.remove_invitations_by(tx, account_id)
    return sorted(row[0] for row in rows)


def _record(row: Row) -> RoomRecord:
    (
        id_,
        name,
        epoch,
        access,
        durable,
        capabilities,
        grants,
        policy,
        first,
        oldest,
        by,
        at,
        to,
        version,
        last,
        owners,
    ) = row
    return RoomRecord(
        id=id_,
        name=name,
        epoch=epoch,
        access=access,
        durable=bool(durable),
        capabilities=None if capabilities is None else _capabilities(capabilities),
        grants=_grants(grants),
        policy=_policy(policy),
        first_seq=first,
        oldest_seq=oldest,
        created_by=by,
        created_at=at,
        updated_at=to,
        version=version,
        # Where nothing is kept any more, the next message is the first.
        last_seq=first - 1 if last is None else last,
        owners=tuple((owners or "").split()),
    )


def _seen(row: Row, account_id: str) -> Seen:
    room = _record(row[:-2])
    role, state = row[-2:]
    return Seen(room, None if role is None else Membership(room.id, account_id, Role(role), state))


def _text(value: object) -> str | None:
    return None if value is None else _encode(value).decode()


def chunks(values: Sequence[T]) -> list[list[T]]:
    """The values, so many at a time, the last one repeated until they are one of the list sizes."""
    most = LIST_SIZES[-1]
    parts = [list(values[start : start + most]) for start in range(0, len(values), most)]
    if parts:
        size = next(size for size in LIST_SIZES if size >= len(parts[-1]))
        parts[-1] += [parts[-1][-1]] * (size - len(parts[-1]))
    return parts


def marks(values: Sequence[object]) -> str:
    """The question marks of a list in a statement."""
    return ", ".join("?" * len(values))
