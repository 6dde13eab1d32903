"""The SQL of sending and of read state. Every statement finds its rows by an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from folkmoot.core import errors as e
from folkmoot.core.ports import SqlStatement, SqlValue, Tx
from folkmoot.mail.limits import MAX_KEYS_FORGOTTEN
from folkmoot.mail.model import Mode, Priority, State
from folkmoot.quotas import ADD_MAIL
from folkmoot.rows import many, one

T = TypeVar("T")

PLACES = "message_seq"
"""The sequence of the places of messages."""
LIST_SIZES = (1, 4, 16, 64, 128)
"""Lists in statements are filled up to one of these, so that few statements have to be prepared."""


class ThreadMember(NamedTuple):
    """One side of a thread. A `last_seq` of 0 marks one who deleted it and has not been written to.

    `unread` is kept, never counted; nothing up to `hidden_seq` is the member's any more.
    """

    thread_id: str
    other_id: str
    state: State
    unread: int
    last_seq: int
    hidden_seq: int


class StoredMessage(NamedTuple):
    """A message's row."""

    seq: int
    id: str
    thread_id: str
    from_id: str
    to_id: str
    reply_to: str | None
    priority: Priority
    mode: Mode
    ciphertext: str
    nonce: str
    sender_key: str
    recipient_key: str
    created_at: int


async def touch_thread(tx: Tx, pair: str, now: int, latest: int) -> tuple[str, int, int] | None:
    """The thread of two people and the time of its next message: not before the one before it.

    A clock that was set back stands still, unless the last message is later than `latest`. Whoever
    else writes to the thread waits until this unit ends, so its places are in the order of commits.
    """
    row = await tx.fetch_numbered(
        PLACES,
        "UPDATE threads SET updated_at = "
        "CASE WHEN updated_at > ? AND updated_at <= ? THEN updated_at ELSE ? END "
        "WHERE pair = ? RETURNING id, updated_at",
        (now, latest, now, pair),
    )
    return None if row is None else (str(row[0]), int(row[1]), int(row[2]))


async def hold_thread(tx: Tx, thread_id: str) -> None:
    """Let nobody else write to a thread, nor remove of it, until this unit ends."""
    await tx.execute("UPDATE threads SET updated_at = updated_at WHERE id = ?", (thread_id,))


async def insert_thread(
    tx: Tx, thread_id: str, pair: str, subject: str, created_by: str, now: int
) -> bool:
    """Store a thread, unless the two have one."""
    inserted = await tx.execute(
        "INSERT INTO threads (id, pair, subject, created_by, created_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (pair) DO NOTHING",
        (thread_id, pair, subject, created_by, now, now),
    )
    return inserted == 1


async def insert_members(tx: Tx, thread_id: str, one: str, other: str, now: int) -> None:
    """Make two people the members of their thread; both active, neither has read anything."""
    await tx.execute(
        "INSERT INTO members (thread_id, user_id, other_id, state, last_read_at, unread, last_seq, "
        "last_at, hidden_seq) VALUES (?, ?, ?, 'active', 0, 0, 0, ?, 0), "
        "(?, ?, ?, 'active', 0, 0, 0, ?, 0)",
        (thread_id, one, other, now, thread_id, other, one, now),
    )


INSERT_MESSAGE = (
    "INSERT INTO messages (seq, id, thread_id, from_id, to_id, reply_to, priority, mode, "
    "ciphertext, nonce, sender_key, recipient_key, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_COPIES = (
    "INSERT INTO copies (user_id, seq, created_at, thread_id, urgent, incoming, unread) "
    "VALUES (?, ?, ?, ?, ?, 0, 0), (?, ?, ?, ?, ?, 1, 1)"
)
UPDATE_MEMBERS = (
    "UPDATE members SET last_seq = ?, last_at = ?, "
    "unread = unread + CASE WHEN user_id = ? THEN 1 ELSE 0 END, "
    "state = CASE WHEN state = 'archived' THEN 'active' ELSE state END "
    "WHERE thread_id = ? RETURNING user_id, state"
)


async def insert_message(tx: Tx, message: StoredMessage, size: int) -> tuple[dict[str, State], int]:
    """Store a message of a size and both sides' copies, the recipient's unread.

    A new message returns an archived thread to active, and a deleted one to whoever deleted it. The
    answer is each member's state, and the bytes of all that the sender sent.
    """
    seq, thread_id, at = message.seq, message.thread_id, message.created_at
    copy = (seq, at, thread_id, int(message.priority == "urgent"))
    _, _, members, shares = await tx.together(
        SqlStatement(INSERT_MESSAGE, message),
        SqlStatement(INSERT_COPIES, (message.from_id, *copy, message.to_id, *copy)),
        SqlStatement(UPDATE_MEMBERS, (seq, at, message.to_id, thread_id)),
        SqlStatement(ADD_MAIL, (message.from_id, size)),
    )
    return dict(members), int(shares[0][0])


async def find_sent_key(tx: Tx, user_id: str, key_hash: str, since: int) -> str | None:
    """What was answered, sealed, when someone sent a message under this key after a second."""
    sql = "SELECT answer FROM sent_keys WHERE user_id = ? AND key_hash = ? AND created_at > ?"
    return await one(tx, str, sql, (user_id, key_hash, since))


async def put_sent_key(
    tx: Tx, user_id: str, key_hash: str, answer: str, now: int, since: int
) -> bool:
    """Keep what was answered under a key, unless something was after a second."""
    kept = await tx.execute(
        "INSERT INTO sent_keys (user_id, key_hash, answer, created_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (user_id, key_hash) "
        "DO UPDATE SET answer = excluded.answer, created_at = excluded.created_at "
        "WHERE sent_keys.created_at <= ?",
        (user_id, key_hash, answer, now, since),
    )
    return kept == 1


async def forget_sent_keys(tx: Tx, until: int) -> None:
    """Forget some keys of up to a second: more than one message adds, so that none pile up."""
    await tx.execute(
        "DELETE FROM sent_keys WHERE (user_id, key_hash) IN (SELECT user_id, key_hash "
        "FROM sent_keys WHERE created_at <= ? ORDER BY created_at LIMIT ?) AND created_at <= ?",
        (until, MAX_KEYS_FORGOTTEN, until),
    )


async def find_member(tx: Tx, user_id: str, thread_id: str) -> ThreadMember | None:
    """One member's side of a thread, even if deleted."""
    return await one(
        tx,
        ThreadMember,
        "SELECT thread_id, other_id, state, unread, last_seq, hidden_seq FROM members "
        "WHERE thread_id = ? AND user_id = ?",
        (thread_id, user_id),
    )


async def access_member(tx: Tx, user_id: str, thread_id: str) -> ThreadMember:
    """Someone's side of a thread, or the error that says why there is none."""
    member = await find_member(tx, user_id, thread_id)
    if member is None and await tx.fetch_one("SELECT 1 FROM threads WHERE id = ?", (thread_id,)):
        raise e.AccessDenied
    if member is None or not member.last_seq:
        raise e.ThreadNotFound
    return member


async def access_message(tx: Tx, user_id: str, message_id: str) -> tuple[int, ThreadMember]:
    """The place of a message someone has a copy of, and their side of its thread."""
    row = await tx.fetch_one("SELECT seq, thread_id FROM messages WHERE id = ?", (message_id,))
    if row is None:
        raise e.MessageNotFound
    member = await find_member(tx, user_id, row[1])
    if member is None:
        raise e.AccessDenied
    copy = "SELECT 1 FROM copies WHERE user_id = ? AND seq = ?"
    if not await tx.fetch_one(copy, (user_id, row[0])):
        raise e.MessageNotFound
    return row[0], member


async def ids_beginning(tx: Tx, user_id: str, start: str) -> list[str]:
    """At most two messages of a user whose ids begin with this text."""
    return await many(
        tx,
        str,
        "SELECT x.id FROM messages x CROSS JOIN copies c WHERE c.seq = x.seq AND c.user_id = ? "
        "AND x.id >= ? AND x.id < ? LIMIT 2",
        (user_id, start, f"{start}g"),
    )


async def set_state(tx: Tx, user_id: str, thread_id: str, state: State) -> bool:
    """Put a thread that someone has into a state; whether it was in another."""
    changed = await tx.execute(
        "UPDATE members SET state = ? "
        "WHERE thread_id = ? AND user_id = ? AND last_seq > 0 AND state <> ?",
        (state, thread_id, user_id, state),
    )
    return changed == 1


async def mark_copies(tx: Tx, user_id: str, seqs: Sequence[int], now: int) -> int:
    """Mark these copies read, and answer how many were not.

    The cost grows with their number, whatever else is stored.
    """
    params: tuple[SqlValue, ...] = (user_id, *filled(seqs))
    rows = await tx.fetch(
        f"SELECT thread_id, unread FROM copies WHERE {among(seqs)}",  # noqa: S608
        params,
    )
    threads = dict.fromkeys((thread_id for thread_id, _ in rows), 0)
    # Counted by what this very statement has changed: another reader may do the same.
    marked = await tx.fetch(
        f"UPDATE copies SET unread = 0 WHERE {among(seqs)} AND unread = 1 RETURNING thread_id",  # noqa: S608
        params,
    )
    for (thread_id,) in marked:
        threads[thread_id] += 1
    # In one order, so that two who do so never wait for each other.
    for thread_id, count in sorted(threads.items()):
        await _count_read(tx, user_id, thread_id, count, now)
    return len(marked)


async def _count_read(tx: Tx, user_id: str, thread_id: str, count: int, now: int) -> None:
    await tx.execute(
        "UPDATE members SET unread = unread - ?, last_read_at = ? "
        "WHERE thread_id = ? AND user_id = ?",
        (count, now, thread_id, user_id),
    )


async def places_of(tx: Tx, thread_id: str, message_ids: Sequence[str]) -> list[int]:
    """The sequence numbers of those messages that are in a thread."""
    marks = ", ".join("?" * len(filled(message_ids)))
    sql = f"SELECT seq FROM messages WHERE id IN ({marks}) AND thread_id = ?"  # noqa: S608
    return await many(tx, int, sql, (*filled(message_ids), thread_id))


async def mark_thread(tx: Tx, user_id: str, thread_id: str, now: int) -> int:
    """Mark everything in a thread read, and answer how much was not. The cost grows with that."""
    marked = await tx.execute(
        "UPDATE copies SET unread = 0 WHERE user_id = ? AND thread_id = ? AND unread = 1",
        (user_id, thread_id),
    )
    await _count_read(tx, user_id, thread_id, marked, now)
    return marked


def among(seqs: Sequence[int]) -> str:
    """The condition for a user's copies with these sequence numbers."""
    return f"user_id = ? AND seq IN ({', '.join('?' * len(filled(seqs)))})"


def filled(keys: Sequence[T]) -> list[T]:
    """The keys, the last one repeated up to the next prepared list size."""
    size = next((size for size in LIST_SIZES if size >= len(keys)), len(keys))
    return [*keys, *[keys[-1]] * (size - len(keys))]
