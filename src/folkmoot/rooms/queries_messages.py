"""The SQL of messages, and of shares: how much each author has stored in each room.

Each statement on messages enters by the key of a room and a `seq`, or an id. Shares are kept, never
counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, chain
from typing import Final, NamedTuple

from msgspec.structs import astuple

from folkmoot.core.ports import NewRows, Row, SqlStatement, Tx
from folkmoot.quotas import ROOM_AUTHOR, ROOM_SIZE
from folkmoot.rooms.budget import Share, shares_of
from folkmoot.rooms.limits import PAGE_BYTES, SCAN_MESSAGES
from folkmoot.rooms.machine import REPLAYED, Append, Used
from folkmoot.rooms.model import RoomId
from folkmoot.rooms.queries import chunks, marks

COLUMNS: Final = "seq, id, at, kind, data, account, about"
_MESSAGES: Final = ("room_id", *COLUMNS.split(", "))
_SHARES: Final = ("room_id", "author", "messages", "bytes", "talk_seq")
_MORE: Final = (
    "ON CONFLICT (room_id, author) DO UPDATE SET "
    "messages = room_shares.messages + excluded.messages, "
    "bytes = room_shares.bytes + excluded.bytes, "
    "talk_seq = CASE WHEN excluded.talk_seq > 0 THEN excluded.talk_seq "
    "ELSE room_shares.talk_seq END"
)

_SIZES: Final = (
    "SELECT seq, length(data) FROM room_messages "
    "WHERE room_id = ? AND seq > ? AND seq < ? ORDER BY seq {} LIMIT ?"
)
_FIRST_SIZES: Final = _SIZES.format("ASC")
_LAST_SIZES: Final = _SIZES.format("DESC")
_REPLAYED_KINDS: Final = [(root, f"{root}/") for root in REPLAYED]
"""From the root itself to before what sorts after its dot: a slash does."""
_REPLAYED_SINCE: Final = (
    f"SELECT {COLUMNS} FROM room_messages WHERE room_id = ? AND seq > ? AND ("  # noqa: S608
    + " OR ".join(["(kind >= ? AND kind < ?)"] * len(REPLAYED))
    + ") ORDER BY seq"
)
CHAT: Final = ("chat.message", "mcp.notification.notifications/chat/message")
TALK: Final = (*CHAT, "mcp.proposal")
"""How the kinds begin of what is said and proposed: everything that is unread until it is read."""
_END: Final = 2**62
"""A `seq` that no message reaches."""


def is_edit(one: Append) -> bool:
    """Whether a message is chat that takes the place of an earlier one: of that it is about."""
    return one.about is not None and one.kind.startswith(CHAT)


async def insert(
    tx: Tx, room_id: RoomId, appends: Sequence[Append], after: SqlStatement | None = None
) -> bool:
    """Store messages, and note whose they are; not if an UPDATE before changes nothing."""
    messages = [(room_id, *astuple(one)) for one in appends]
    talk = {
        one.account: one.seq for one in appends if one.kind.startswith(TALK) and not is_edit(one)
    }
    # In one order, so that two who do so never wait for each other.
    shares = [
        (room_id, author, *share, talk.get(author, 0))
        for author, share in sorted(shares_of(appends).items())
    ]
    return await tx.insert(
        NewRows("room_messages", _MESSAGES, messages),
        NewRows("room_shares", _SHARES, shares, _MORE),
        after=after,
    )


async def page(
    tx: Tx,
    room_id: RoomId,
    *,
    after: int | None = None,
    before: int | None = None,
    oldest: int = 0,
    limit: int,
) -> list[Append]:
    """Messages in order: the first ones after a `seq`, or else the last ones before one.

    With both, the first between them; the last ones reach back to `oldest`. A page has at most
    `limit` messages and about a mebibyte, and one message if there is any.
    """
    sizes = await tx.fetch(
        _LAST_SIZES if after is None else _FIRST_SIZES,
        (
            room_id,
            oldest - 1 if after is None else after,
            _END if before is None else before,
            limit,
        ),
    )
    if not sizes:
        return []
    fitting = sum(total <= PAGE_BYTES for total in accumulate(row[1] for row in sizes))
    first, last = sorted((sizes[0][0], sizes[max(fitting, 1) - 1][0]))
    return await _between(tx, room_id, first, last)


async def kinds(
    tx: Tx, room_id: RoomId, *, after: int, before: int, limit: int, last: bool
) -> list[Row]:
    """The seq, kind, size and account of messages between two `seq`s, without their bytes."""
    return await tx.fetch(
        "SELECT seq, kind, length(data), about FROM room_messages "  # noqa: S608
        "WHERE room_id = ? AND seq > ? AND seq < ? "
        f"ORDER BY seq {'DESC' if last else 'ASC'} LIMIT ?",
        (room_id, after, before, limit),
    )


async def pick(tx: Tx, room_id: RoomId, seqs: Sequence[int]) -> dict[int, bytes]:
    """The messages with these `seq`s, in order."""
    found: dict[int, bytes] = {}
    for some in chunks(seqs):
        rows = await tx.fetch(
            "SELECT seq, data FROM room_messages "  # noqa: S608
            f"WHERE room_id = ? AND seq IN ({marks(some)}) ORDER BY seq",
            (room_id, *some),
        )
        found |= {seq: bytes(data) for seq, data in rows}
    return found


async def _between(tx: Tx, room_id: RoomId, first: int, last: int) -> list[Append]:
    rows = await tx.fetch(
        f"SELECT {COLUMNS} FROM room_messages "  # noqa: S608
        "WHERE room_id = ? AND seq >= ? AND seq <= ? ORDER BY seq",
        (room_id, first, last),
    )
    return [Append(*row) for row in rows]


async def replayed_since(tx: Tx, room_id: RoomId, seq: int) -> list[Append]:
    """The messages after a snapshot's that a room is rebuilt from.

    Chat, which is most of what is said, is not among them. How many messages there can be is up to
    whoever takes snapshots.
    """
    rows = await tx.fetch(_REPLAYED_SINCE, (room_id, seq, *chain.from_iterable(_REPLAYED_KINDS)))
    return [Append(*row) for row in rows]


async def used(tx: Tx, room_id: RoomId, ids: Collection[str]) -> dict[str, Used | None]:
    """For which message each id was used last, and by which account."""
    found: dict[str, Used | None] = dict.fromkeys(ids)
    for some in chunks(list(found)):
        rows = await tx.fetch(
            "SELECT id, seq, account, kind, about FROM room_messages "  # noqa: S608
            f"WHERE room_id = ? AND id IN ({marks(some)})",
            (room_id, *some),
        )
        for id_, seq, account, kind, about in rows:
            last = found[id_]
            if last is None or seq > last.seq:
                found[id_] = Used(seq, account, about is None and kind.startswith(CHAT))
    return found


async def rewrite(tx: Tx, room_id: RoomId, author: str, messages: Mapping[int, bytes]) -> int:
    """Store some messages of one author anew; by how much they grew in all."""
    before = await pick(tx, room_id, list(messages))
    for seq in before:
        await tx.execute(
            "UPDATE room_messages SET data = ? WHERE room_id = ? AND seq = ?",
            (messages[seq], room_id, seq),
        )
    grown = sum(len(messages[seq]) - len(data) for seq, data in before.items())
    await tx.execute(
        "UPDATE room_shares SET bytes = bytes + ? WHERE room_id = ? AND author = ?",
        (grown, room_id, author),
    )
    return grown


async def trim(tx: Tx, room_id: RoomId, first_seq: int, most: int) -> Share:
    """Remove the oldest messages before a `seq`, so many at most; what it were."""
    rows = await tx.fetch(
        f"DELETE FROM room_messages WHERE room_id = ? AND seq IN (SELECT seq FROM room_messages "  # noqa: S608
        "WHERE room_id = ? AND seq < ? ORDER BY seq LIMIT ?) RETURNING "
        f"{ROOM_AUTHOR}, {ROOM_SIZE}",
        (room_id, room_id, first_seq, most),
    )
    return await subtract_shares(tx, room_id, rows)


async def remove(tx: Tx, room_id: RoomId, seqs: Sequence[int]) -> Share:
    """Remove some messages, and return their share."""
    removed: list[Row] = []
    for some in chunks(seqs):
        removed += await tx.fetch(
            f"DELETE FROM room_messages WHERE room_id = ? AND seq IN ({marks(some)}) "  # noqa: S608
            f"RETURNING {ROOM_AUTHOR}, {ROOM_SIZE}",
            (room_id, *some),
        )
    return await subtract_shares(tx, room_id, removed)


async def oldest_after(tx: Tx, room_id: RoomId, at: float) -> int | None:
    """The `seq` of the first message that is not older than a time; None where all are.

    It is found by halving, some twenty index reads among a million messages, as if times never ran
    against the order. Where the clock was set back, what it finds may be off by that much.
    """
    # Asked for in one breath, the two would be found by reading all that lies between them.
    row = await tx.fetch_one(
        "SELECT (SELECT MIN(seq) FROM room_messages WHERE room_id = ?), "
        "(SELECT MAX(seq) FROM room_messages WHERE room_id = ?)",
        (room_id, room_id),
    )
    if row is None or row[0] is None:
        return None
    low, high = row[0], row[1] + 1
    end = high
    while low < high:
        middle = (low + high) // 2
        found = await tx.fetch_one(
            "SELECT seq, at FROM room_messages WHERE room_id = ? AND seq >= ? ORDER BY seq LIMIT 1",
            (room_id, middle),
        )
        if found is None or found[1] >= at:
            high = middle
        else:
            low = found[0] + 1
    return None if low == end else low


class AccountMessages(NamedTuple):
    """Some of what an account said, and after which `seq` there may be more; None at the end."""

    messages: list[Append]
    next: int | None


async def said_in(
    tx: Tx, room_id: RoomId, account_id: str, after: int, limit: int
) -> AccountMessages:
    """What an account said in a room after a `seq`.

    No index leads to it, since one more would slow every message that comes in. The room is walked
    instead, a window at a time, so that nobody is kept waiting.
    """
    row = await tx.fetch_one(
        "SELECT MAX(seq) FROM (SELECT seq FROM room_messages WHERE room_id = ? AND seq > ? "
        "ORDER BY seq LIMIT ?) AS window_of_seqs",
        (room_id, after, SCAN_MESSAGES),
    )
    through = None if row is None else row[0]
    if through is None:
        return AccountMessages([], None)
    found = await tx.fetch(
        f"SELECT {COLUMNS} FROM room_messages "  # noqa: S608
        "WHERE room_id = ? AND seq > ? AND seq <= ? AND account = ? ORDER BY seq LIMIT ?",
        (room_id, after, through, account_id, limit),
    )
    messages = [Append(*row) for row in found]
    return AccountMessages(messages, messages[-1].seq if len(messages) == limit else through)


async def subtract_shares(tx: Tx, room_id: RoomId, removed: list[Row]) -> Share:
    """Subtract removed messages from their authors' shares; returns the sum."""
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


async def shares_of_room(tx: Tx, room_id: RoomId) -> dict[str, Share]:
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


async def window_of_sizes(tx: Tx, room_id: RoomId, after: int) -> list[Row]:
    """Some messages after a `seq`: the seq, author and size of each."""
    return await tx.fetch(
        f"SELECT seq, {ROOM_AUTHOR}, {ROOM_SIZE} FROM room_messages "  # noqa: S608
        "WHERE room_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (room_id, after, SCAN_MESSAGES),
    )
