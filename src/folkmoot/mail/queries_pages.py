"""The SQL of reading: pages of messages, lists of threads, the digest.

Each statement enters by an index at the place asked for and reads as many rows as are asked for, so
the cost of a page does not depend on what is stored. `CROSS JOIN` keeps SQLite to the order in
which the tables are written. A box of more than 8 KiB does not come with its row: it is read once
its page is known to have room for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from folkmoot.core.ports import Row, Tx
from folkmoot.mail.limits import MAX_DIGEST_SENDERS
from folkmoot.mail.model import Mode, Priority, State
from folkmoot.rows import many, one

LAST_SECOND = 2**62
"""Later than any message."""


class Start(NamedTuple):
    """Where a page begins: with the newest message before this place that is older than this."""

    seq: int
    second: int = LAST_SECOND


class CopyRow(NamedTuple):
    """A message, one reader's copy of it, and the other side's present account."""

    seq: int
    thread_id: str
    incoming: int
    unread: int
    id: str
    reply_to: str | None
    priority: Priority
    mode: Mode
    ciphertext: str | None
    nonce: str
    sender_key: str
    recipient_key: str
    created_at: int
    other_handle: str | None
    last_read_at: int


class ThreadRow(NamedTuple):
    """A thread of a member, with the member's last copy, if any."""

    id: str
    subject: str
    created_at: int
    updated_at: int
    state: State
    last_read_at: int
    unread: int
    last_seq: int
    last_at: int
    hidden_seq: int
    other_handle: str | None
    other_name: str | None
    incoming: int | None
    mode: Mode | None
    ciphertext: str | None
    nonce: str | None
    sender_key: str | None
    recipient_key: str | None

    @property
    def seq(self) -> int:
        """The member's last copy."""
        return self.last_seq


_copy: Callable[[Row], CopyRow] = partial(tuple.__new__, CopyRow)
_thread: Callable[[Row], ThreadRow] = partial(tuple.__new__, ThreadRow)
"""As their constructors do, which unpack a row and put it together again."""

COPIES = (
    "SELECT c.seq, c.thread_id, c.incoming, c.unread, x.id, x.reply_to, x.priority, x.mode, "
    "CASE WHEN octet_length(x.ciphertext) <= 8192 THEN x.ciphertext END, "
    "x.nonce, x.sender_key, x.recipient_key, x.created_at, u.handle, m.last_read_at "
    "FROM copies c CROSS JOIN messages x CROSS JOIN members m "
    "LEFT JOIN users u ON u.id = m.other_id "
    "WHERE x.seq = c.seq AND m.thread_id = c.thread_id AND m.user_id = c.user_id "
    "AND c.user_id = ? AND {} AND c.seq < ? AND c.created_at < ? ORDER BY c.seq DESC LIMIT ?"
)
INCOMING = COPIES.format("c.incoming = 1")
OF_THREAD = COPIES.format("c.thread_id = ?")
UNREAD = COPIES.format("c.unread = 1")
UNREAD_OF_THREAD = COPIES.format("c.thread_id = ? AND c.unread = 1")

THREADS = (
    "SELECT t.id, t.subject, t.created_at, t.updated_at, m.state, m.last_read_at, m.unread, "
    "m.last_seq, m.last_at, m.hidden_seq, u.handle, u.display_name, c.incoming, x.mode, "
    "CASE WHEN octet_length(x.ciphertext) <= 8192 THEN x.ciphertext END, "
    "x.nonce, x.sender_key, x.recipient_key "
    "FROM members m CROSS JOIN threads t LEFT JOIN users u ON u.id = m.other_id "
    "LEFT JOIN copies c ON c.user_id = m.user_id AND c.seq = m.last_seq "
    "LEFT JOIN messages x ON x.seq = c.seq "
    "WHERE t.id = m.thread_id AND m.user_id = ? AND m.last_seq > 0 "
)
ALL_THREADS = THREADS + "AND m.last_seq < ? ORDER BY m.last_seq DESC LIMIT ?"
THREADS_IN_STATE = THREADS + "AND m.state = ? AND m.last_seq < ? ORDER BY m.last_seq DESC LIMIT ?"
ONE_THREAD = THREADS + "AND m.thread_id = ?"


async def copies_before(
    tx: Tx, user_id: str, thread_id: str | None, start: Start, limit: int, *, unread: bool = False
) -> list[CopyRow]:
    """Copies from a place back, newest first: incoming ones, or a thread's of both sides.

    Of the unread ones no more may be asked for than there are, or all others are looked at too.
    """
    if thread_id is None:
        sql = UNREAD if unread else INCOMING
        rows = await tx.fetch(sql, (user_id, *start, limit))
    else:
        sql = UNREAD_OF_THREAD if unread else OF_THREAD
        rows = await tx.fetch(sql, (user_id, thread_id, *start, limit))
    return list(map(_copy, rows))


async def threads_before(
    tx: Tx, user_id: str, state: State | None, seq: int, limit: int
) -> list[ThreadRow]:
    """Someone's threads whose last message came before a place, newest first.

    Those of one state are picked out of all that person's threads; messages do not matter.
    """
    if state is None:
        rows = await tx.fetch(ALL_THREADS, (user_id, seq, limit))
    else:
        rows = await tx.fetch(THREADS_IN_STATE, (user_id, state, seq, limit))
    return list(map(_thread, rows))


async def one_thread(tx: Tx, user_id: str, thread_id: str) -> ThreadRow | None:
    return await one(tx, ThreadRow, ONE_THREAD, (user_id, thread_id))


async def box_within(tx: Tx, seq: int, most: int) -> str | None:
    """The box of a message unless it has more bytes than this; then it is not even read."""
    return await one(
        tx,
        str,
        "SELECT ciphertext FROM messages "
        "WHERE seq = ? AND CAST(octet_length(ciphertext) AS BIGINT) <= ?",
        (seq, most),
    )


class Unread(NamedTuple):
    """How much is unread, in how many threads, and how much of it in threads that are not muted."""

    total: int
    threads: int
    loud: int


async def count_unread(tx: Tx, user_id: str) -> Unread:
    """What is unread, from kept counts: the cost grows with the threads that hold any of it."""
    row = await tx.fetch_one(
        "SELECT COALESCE(SUM(unread), 0), COUNT(*), "
        "COALESCE(SUM(CASE WHEN state = 'muted' THEN 0 ELSE unread END), 0) "
        "FROM members WHERE user_id = ? AND unread > 0",
        (user_id,),
    )
    return Unread(*map(int, row or (0, 0, 0)))


async def count_urgent(tx: Tx, user_id: str) -> int:
    """How many unread messages are urgent; the index holds nothing else."""
    sql = "SELECT COUNT(*) FROM copies WHERE user_id = ? AND unread = 1 AND urgent = 1"
    return await one(tx, int, sql, (user_id,)) or 0


SENDERS = (
    "FROM members m CROSS JOIN users u WHERE u.id = m.other_id AND m.user_id = ? AND m.unread > 0"
)


async def recent_senders(tx: Tx, user_id: str) -> list[str]:
    """The handles of those whose messages are unread, the last active first."""
    sql = f"SELECT u.handle {SENDERS} ORDER BY m.last_seq DESC LIMIT ?"
    return await many(tx, str, sql, (user_id, MAX_DIGEST_SENDERS))


async def count_senders(tx: Tx, user_id: str) -> int:
    """The number of senders of unread mail, as `recent_senders` lists them."""
    return await one(tx, int, f"SELECT COUNT(*) {SENDERS}", (user_id,)) or 0
