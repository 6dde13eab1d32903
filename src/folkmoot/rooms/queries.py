"""The SQL of rooms, their snapshots and their backends. Every statement uses an index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from folkmoot.core.capability import Source
from folkmoot.core.events import ROOMS, subject
from folkmoot.core.ports import Row, Tx
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import Membership, RoomId, RoomPolicy, RoomRecord

if TYPE_CHECKING:
    from folkmoot.core.ports import Tx


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
    """A room in someone's list, with their membership."""

    room: RoomRecord
    membership: Membership | None


class StoredSnapshot(NamedTuple):
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
    """Publish that a room changed; `by` is the hub that knows already."""
    tx.publish(subject(ROOMS, str(room_id)), {"by": by, "gone": gone})


async def lock_room(tx: Tx, room_id: RoomId) -> None:
    """Lock a room's row until the commit, so that counts stay true."""
    await tx.execute("UPDATE rooms SET created_at = created_at WHERE id = ?", (room_id,))


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


async def snapshot_of(tx: Tx, room_id: RoomId) -> StoredSnapshot:
    """The last snapshot of a room."""
    row = await tx.fetch_one("SELECT data, seq FROM room_snapshots WHERE room_id = ?", (room_id,))
    return StoredSnapshot(None, 0) if row is None else StoredSnapshot(*row)


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


async def backends_of_room(tx: Tx, room_id: RoomId) -> tuple[str, ...]:
    """The namespaces of a room's backends, in the order of the alphabet."""
    return (await backends_by_room(tx, (room_id,)))[room_id]


async def backends_by_room(tx: Tx, room_ids: Sequence[RoomId]) -> dict[RoomId, tuple[str, ...]]:
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


async def put_backends(tx: Tx, room_id: RoomId, namespaces: Iterable[str]) -> None:
    """Let a room have exactly these backends; of those it had, nothing else changes."""
    wanted, had = set(namespaces), set(await backends_of_room(tx, room_id))
    for namespace in sorted(had - wanted):
        await tx.execute(
            "DELETE FROM room_backends WHERE room_id = ? AND namespace = ?", (room_id, namespace)
        )
    for namespace in sorted(wanted - had):
        await tx.execute(
            "INSERT INTO room_backends (room_id, namespace) VALUES (?, ?) "
            "ON CONFLICT (room_id, namespace) DO NOTHING",
            (room_id, namespace),
        )


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


async def rooms_overview(tx: Tx, after: str, limit: int) -> dict[RoomId, RoomRow]:
    """Some rooms by id, in the order of their names.

    The cost grows with the rooms and those who wrote in them.
    """
    rows = await tx.fetch(
        "SELECT r.id, r.name, (SELECT u.handle FROM room_members m CROSS JOIN users u "
        "WHERE m.room_id = r.id AND m.role = 'owner' AND u.id = m.account_id "
        "ORDER BY u.handle LIMIT 1), r.access, r.durable, "
        "(SELECT COUNT(*) FROM room_members m WHERE m.room_id = r.id AND m.state = 'member'), "
        "COALESCE((SELECT SUM(s.messages) FROM room_shares s WHERE s.room_id = r.id), 0), "
        "COALESCE((SELECT SUM(s.bytes) FROM room_shares s WHERE s.room_id = r.id), 0), "
        "r.created_at, (SELECT x.at FROM room_messages x WHERE x.room_id = r.id "
        "ORDER BY x.seq DESC LIMIT 1) FROM rooms r WHERE r.name > ? ORDER BY r.name LIMIT ?",
        (after, limit),
    )
    return {
        room_id: RoomRow(name, owner, access, bool(durable), *counts)
        for room_id, name, owner, access, durable, *counts in rows
    }
