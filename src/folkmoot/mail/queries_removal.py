"""The SQL of forgetting. A message goes when neither side has a copy left."""

from __future__ import annotations

from typing import Final, NamedTuple

from folkmoot.core.ports import Row, SqlValue, Tx
from folkmoot.mail.queries import LIST_SIZES, filled
from folkmoot.quotas import MAIL_SIZE, fitting_mail, keep_mail, subtract_mail
from folkmoot.rows import many, one

LAST_SEQ: Final = (
    "(SELECT MAX(c.seq) FROM copies c "
    "WHERE c.user_id = members.user_id AND c.thread_id = members.thread_id)"
)


class StoredThread(NamedTuple):
    """What is stored of a thread itself."""

    subject: str
    created_by: str
    created_at: int


async def read_thread(tx: Tx, thread_id: str) -> StoredThread | None:
    """What is stored of a thread."""
    sql = "SELECT subject, created_by, created_at FROM threads WHERE id = ?"
    return await one(tx, StoredThread, sql, (thread_id,))


async def set_subject(tx: Tx, thread_id: str, subject: str) -> None:
    """Give a thread another sealed subject."""
    await tx.execute("UPDATE threads SET subject = ? WHERE id = ?", (subject, thread_id))


async def delete_copy(tx: Tx, user_id: str, seq: int, most: int) -> None:
    """Remove someone's copy of a message, and the message if it was the last one.

    `most` is how many bytes an account may keep of what others sent and deleted.
    """
    row = await tx.fetch_one(
        "DELETE FROM copies WHERE user_id = ? AND seq = ? RETURNING thread_id, unread",
        (user_id, seq),
    )
    if row is None:
        return
    thread_id, unread = row
    if unread:
        await tx.execute(
            "UPDATE members SET unread = unread - 1 WHERE thread_id = ? AND user_id = ?",
            (thread_id, user_id),
        )
    await _remove_copies(tx, user_id, [seq], most)


async def delete_copies(tx: Tx, user_id: str, thread_id: str, most_kept: int) -> None:
    """Remove someone's copies in a thread, and the messages of which none is left.

    The cost grows with the length of the thread.
    """
    rows = await tx.fetch(
        "DELETE FROM copies WHERE user_id = ? AND thread_id = ? RETURNING seq", (user_id, thread_id)
    )
    most = LIST_SIZES[-1]
    seqs = sorted(row[0] for row in rows)
    for start in range(0, len(seqs), most):
        await _remove_copies(tx, user_id, seqs[start : start + most], most_kept)


async def _remove_copies(tx: Tx, user_id: str, seqs: list[int], most: int) -> None:
    """Decrement the copies of these messages, and remove those with none left.

    The others that this user sent no longer count for them. Each copy is taken off by whoever
    removed it, once, however many remove copies at this moment.
    """
    places = filled(seqs)
    marks = ", ".join("?" * len(places))
    await tx.execute(
        f"UPDATE messages SET copies_left = copies_left - 1 WHERE seq IN ({marks})",  # noqa: S608
        places,
    )
    await _delete_messages(tx, f"seq IN ({marks}) AND copies_left <= 0", *places)
    left = await tx.fetch(
        f"SELECT seq, to_id, {MAIL_SIZE} FROM messages "  # noqa: S608
        f"WHERE seq IN ({marks}) AND from_id = ? AND kept = 0 ORDER BY seq",
        (*places, user_id),
    )
    if fitting := await fitting_mail(tx, left, most):
        places = filled(fitting)
        marks = ", ".join("?" * len(places))
        # What another removes at this moment is not kept, and counts no longer for anyone.
        kept = await tx.fetch(
            f"UPDATE messages SET kept = 1 WHERE seq IN ({marks}) AND kept = 0 "  # noqa: S608
            f"RETURNING to_id, {MAIL_SIZE}",
            places,
        )
        await keep_mail(tx, user_id, kept)


async def delete_sent(tx: Tx, user_id: str, thread_id: str) -> None:
    """Remove the messages a user sent in a thread, with the other side's copies."""
    await _delete_messages(tx, "thread_id = ? AND from_id = ?", thread_id, user_id)


async def _delete_messages(tx: Tx, condition: str, *params: SqlValue) -> None:
    """Remove messages; they no longer count for anyone."""
    removed = await tx.fetch(
        f"DELETE FROM messages WHERE {condition} "  # noqa: S608
        f"RETURNING from_id, to_id, kept, {MAIL_SIZE}",
        params,
    )
    await subtract_mail(tx, removed)


async def leave_thread(tx: Tx, user_id: str, thread_id: str) -> None:
    """Forget someone's side of a thread but for where their history would begin again."""
    await tx.execute(
        "UPDATE members SET hidden_seq = last_seq, last_seq = 0, unread = 0, last_read_at = 0, "
        "state = 'active' WHERE thread_id = ? AND user_id = ?",
        (thread_id, user_id),
    )


async def hide_until(tx: Tx, user_id: str, thread_id: str, seq: int) -> None:
    """Note that nothing of a thread up to a place is someone's any more."""
    await tx.execute(
        "UPDATE members SET hidden_seq = ? WHERE thread_id = ? AND user_id = ? AND hidden_seq < ?",
        (seq, thread_id, user_id, seq),
    )


async def delete_member(tx: Tx, user_id: str, thread_id: str) -> None:
    """Remove someone's side of a thread altogether."""
    await tx.execute(
        "DELETE FROM members WHERE thread_id = ? AND user_id = ?", (thread_id, user_id)
    )


async def delete_thread_if_empty(tx: Tx, thread_id: str) -> None:
    """Remove a thread without messages and without members who see it."""
    await tx.execute(
        "DELETE FROM threads WHERE id = ? "
        "AND NOT EXISTS (SELECT 1 FROM messages x WHERE x.thread_id = threads.id) "
        "AND NOT EXISTS "
        "(SELECT 1 FROM members m WHERE m.thread_id = threads.id AND m.last_seq > 0)",
        (thread_id,),
    )


async def has_message(tx: Tx, seq: int) -> bool:
    """Whether a message is still stored."""
    return await tx.fetch_one("SELECT 1 FROM messages WHERE seq = ?", (seq,)) is not None


async def update_last_copy(tx: Tx, user_id: str, thread_id: str, first: tuple[int, int]) -> None:
    """Set a member's last copy in a thread; without copies, the thread's start."""
    await tx.execute(
        f"UPDATE members SET last_seq = COALESCE({LAST_SEQ}, ?), "  # noqa: S608
        f"last_at = COALESCE((SELECT x.created_at FROM messages x WHERE x.seq = {LAST_SEQ}), ?) "
        "WHERE thread_id = ? AND user_id = ? AND last_seq > 0",
        (*first, thread_id, user_id),
    )


async def recount_unread(tx: Tx, user_id: str, thread_id: str) -> None:
    """Count anew what is unread in a thread, after much of it went at once."""
    await tx.execute(
        "UPDATE members SET unread = (SELECT COUNT(*) FROM copies c WHERE c.user_id = ? "
        "AND c.thread_id = ? AND c.unread = 1) WHERE thread_id = ? AND user_id = ?",
        (user_id, thread_id, thread_id, user_id),
    )


async def sides_of(tx: Tx, user_id: str) -> list[Row]:
    """Every thread someone is or was on one side of: its id, and that of the other member."""
    return await tx.fetch("SELECT thread_id, other_id FROM members WHERE user_id = ?", (user_id,))


async def oldest_messages(tx: Tx, before: int, limit: int) -> list[Row]:
    """The places and threads of messages that were sent before a second, the oldest first."""
    return await tx.fetch(
        "SELECT seq, thread_id FROM messages WHERE created_at < ? ORDER BY created_at LIMIT ?",
        (before, limit),
    )


async def owners_of(tx: Tx, seq: int) -> list[str]:
    """Who has a copy of a message."""
    return await many(tx, str, "SELECT user_id FROM copies WHERE seq = ?", (seq,))
