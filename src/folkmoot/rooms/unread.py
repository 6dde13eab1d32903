"""What members and guests have not read: how far they read a room, what is new, mentions.

How far someone read is in their own row, and written when they say so. Whether something is new is
known from where each author spoke last; how much, is counted among the last messages alone. A
mention is found once, as its message is stored: `MAX_MENTIONED` names of a message at most, with
two statements however many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from folkmoot.core.events import UNREAD, subject
from folkmoot.core.ports import Row, Tx
from folkmoot.rooms.limits import (
    COUNTED_MESSAGES,
    MAX_COUNTED,
    MAX_MENTIONED,
    MAX_MENTIONING,
    MAX_ROOMS_COUNTED,
)
from folkmoot.rooms.machine import Append
from folkmoot.rooms.model import RoomId, Visitor
from folkmoot.rooms.queries import chunks, marks
from folkmoot.rooms.queries_messages import CHAT, TALK

MAX_NAME: Final = 64
NAME: Final = re.compile(rf"(?<![\w@])@([A-Za-z][A-Za-z0-9_-]{{1,{MAX_NAME - 1}}})")

_TALK: Final = " OR ".join(
    f"x.kind LIKE '{kind}%'{' AND x.about IS NULL' if kind in CHAT else ''}" for kind in TALK
)
"""Chat that is about a message edits it: nothing new to read."""
_SPOKEN: Final = """EXISTS (SELECT 1 FROM room_shares s WHERE s.room_id = {0}.room_id
    AND s.talk_seq > {0}.read_seq AND s.author <> {0}.{1})"""
_NEW: Final = """{0}.read_seq, CASE WHEN {5} THEN (SELECT COUNT(*) FROM (SELECT 1 FROM (
    SELECT z.kind, z.account, z.about FROM room_messages z
    WHERE z.room_id = {0}.room_id AND z.seq > {0}.read_seq ORDER BY z.seq DESC LIMIT {2}
    ) AS x WHERE x.account <> {0}.{1} AND ({3}) LIMIT {4}) AS counted) ELSE -1 END,
    (SELECT COUNT(*) FROM room_mentions y
    WHERE y.room_id = {0}.room_id AND y.reader = {0}.{1} AND y.seq > {0}.read_seq)"""


def _new(table: str, key: str) -> str:
    spoken = _SPOKEN.format(table, key)
    return _NEW.format(table, key, COUNTED_MESSAGES, _TALK, MAX_COUNTED, spoken)


_MEMBER: Final = _new("m", "account_id")
_GUEST: Final = _new("g", "id")
_MENTION: Final = """INSERT INTO room_mentions (room_id, reader, seq)
    SELECT {0}.room_id, {0}.{1}, ? FROM {2}
    AND {0}.room_id = ? AND {0}.{1} <> ? AND {0}.read_seq < ? AND (SELECT COUNT(*)
    FROM room_mentions y WHERE y.room_id = {0}.room_id AND y.reader = {0}.{1}) < {3}
    RETURNING reader"""
_OF_MEMBERS: Final = _MENTION.format(
    "m",
    "account_id",
    "users u CROSS JOIN room_members m WHERE u.handle IN ({0}) AND m.account_id = u.id "
    "AND m.state = 'member'",
    MAX_COUNTED,
)
_OF_GUESTS: Final = _MENTION.format(
    "g", "id", "room_guests g WHERE g.name IN ({0}) AND g.expires_at IS NULL", MAX_COUNTED
)


class New(NamedTuple):
    """What is new for someone in a room: how far they read, and how much came since."""

    read_seq: int = 0
    unread: int = 0
    mentions: int = 0


class NewIn(NamedTuple):
    """The same with the room's name, and whether they were invited and have not come."""

    room: str
    is_invited: bool
    new: New


class Mention(NamedTuple):
    """A message that mentions someone, and whom, by name."""

    seq: int
    author: str
    names: list[str]


class _Said(Struct, gc=False):
    payload: Any = None
    to: Any = None


_said = msgspec.json.Decoder(_Said).decode


def mentions_in(appends: Iterable[Append]) -> list[Mention]:
    """Those of some messages that mention someone."""
    found = []
    for one in appends:
        data = one.data
        if one.kind.startswith(CHAT) and (b"@" in data or b'"mentions"' in data or b'"to"' in data):
            names = mentioned(data)
            if names:
                found.append(Mention(one.seq, one.account or "", names))
    return found


def mentioned(message: bytes) -> list[str]:
    """The first names in a chat message: whom it is to, whom it lists, and whom its text names."""
    said = _said(message)
    body = said.payload.get("params", said.payload)
    listed = [*(said.to or ())[:MAX_MENTIONED], *body.get("mentions", ())[:MAX_MENTIONED]]
    written = islice(NAME.finditer(body["text"][:MAX_MENTIONING]), 4 * MAX_MENTIONED)
    names = [*(name for name in listed if len(name) <= MAX_NAME), *(name[1] for name in written)]
    return list(dict.fromkeys(name.lower() for name in names))[:MAX_MENTIONED]


async def put_mentions(tx: Tx, room_id: RoomId, room: str, mentions: Sequence[Mention]) -> None:
    """Store who is mentioned: members and guests who have not read so far."""
    for seq, author, names in mentions:
        (some,) = chunks(names)
        for sql in (_OF_MEMBERS, _OF_GUESTS):
            rows = await tx.fetch(sql.format(marks(some)), (seq, *some, room_id, author, seq))
            for (reader,) in rows:
                publish_unread(tx, reader, room, "mention")


def publish_unread(tx: Tx, reader: str, room: str, change: str) -> None:
    """Have someone told that another number of messages of a room is new to them."""
    tx.publish(subject(UNREAD, reader), {"room": room, "change": change})


async def mark(tx: Tx, room_id: RoomId, room: str, reader: Visitor, seq: int) -> None:
    """Store that someone has read up to a message, unless they have read further."""
    id_ = reader.principal.account_id
    sql = (
        "UPDATE room_members SET read_seq = ? WHERE room_id = ? AND account_id = ? AND read_seq < ?"
    )
    if reader.account is None:
        sql = "UPDATE room_guests SET read_seq = ? WHERE room_id = ? AND id = ? AND read_seq < ?"
    if await tx.execute(sql, (seq, room_id, id_, seq)):
        await tx.execute(
            "DELETE FROM room_mentions WHERE room_id = ? AND reader = ? AND seq <= ?",
            (room_id, id_, seq),
        )
        publish_unread(tx, id_, room, "read")


async def new_in(tx: Tx, reader: Visitor, room_ids: Sequence[RoomId]) -> dict[RoomId, New]:
    """What is new in those of some rooms that someone is in."""
    if reader.account is None:
        rows = await tx.fetch(
            f"SELECT g.room_id, {_GUEST} FROM room_guests g WHERE g.id = ?",  # noqa: S608
            (reader.principal.account_id,),
        )
        return _by_room(rows)
    found: dict[RoomId, New] = {}
    for some in chunks(room_ids):
        rows = await tx.fetch(
            f"SELECT m.room_id, {_MEMBER} FROM room_members m WHERE m.account_id = ? "  # noqa: S608
            f"AND m.state = 'member' AND m.room_id IN ({marks(some)})",
            (reader.principal.account_id, *some),
        )
        found |= _by_room(rows)
    return found


def _by_room(rows: Iterable[Row]) -> dict[RoomId, New]:
    return {room_id: _read_new(*new) for room_id, *new in rows}


def _read_new(read_seq: int, counted: int, mentions: int) -> New:
    """Where something is new, at least one message is; -1 is for a room in which nothing is."""
    return New(read_seq, 0 if counted < 0 else max(1, counted), mentions)


async def new_anywhere(tx: Tx, account_id: str) -> list[NewIn]:
    """The rooms in which something is new to an account, and those it is invited to."""
    rows = await tx.fetch(
        f"SELECT r.name, m.state, {_MEMBER} FROM room_members m CROSS JOIN rooms r "  # noqa: S608
        "WHERE m.account_id = ? AND r.id = m.room_id AND (m.state = 'invited' OR "
        f"(m.state = 'member' AND {_SPOKEN.format('m', 'account_id')})) "
        "ORDER BY m.room_id DESC LIMIT ?",
        (account_id, MAX_ROOMS_COUNTED),
    )
    return [
        NewIn(name, state == "invited", New() if state == "invited" else _read_new(*new))
        for name, state, *new in rows
    ]
