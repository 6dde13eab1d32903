"""How stored messages and threads become what their reader sees."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from folkmoot.accounts import Account
from folkmoot.core.errors import ThreadNotFound
from folkmoot.core.ports import Tx
from folkmoot.mail import queries, queries_pages
from folkmoot.mail.bodies import Bodies
from folkmoot.mail.cursors import Cursors
from folkmoot.mail.model import (
    E2E,
    GONE_HANDLE,
    GONE_NAME,
    Digest,
    EncryptedPayload,
    Message,
    Page,
    State,
    Thread,
    ThreadPage,
)
from folkmoot.mail.paging import LIST_BYTES, PAGE_BYTES, fitting
from folkmoot.mail.queries_pages import CopyRow, Start, ThreadRow
from folkmoot.mail.subjects import Subjects

PREVIEW_CHARACTERS = 500
UNREADABLE = "This message cannot be decrypted: it was changed where it is stored."
INBOX = "inbox"
THREADS = "threads"


class Reader:
    """Reads pages; everything here runs within a unit, decryption too."""

    def __init__(self, bodies: Bodies, subjects: Subjects, cursors: Cursors) -> None:
        self._bodies = bodies
        self._subjects = subjects
        self._cursors = cursors

    async def messages(
        self, tx: Tx, reader: Account, thread_id: str | None, start: Start, limit: int, now: int
    ) -> Page:
        """Messages from a place back, newest first: incoming ones, or all of one thread."""
        rows = await queries_pages.copies_before(tx, reader.id, thread_id, start, limit + 1)
        return await self._page(tx, reader, thread_id, rows, limit, now)

    async def news(
        self, tx: Tx, reader: Account, thread_id: str | None, start: Start, limit: int, now: int
    ) -> Page | None:
        """The unread messages from a place back, unless all there are lie in muted threads."""
        if thread_id is None:
            unread = await queries_pages.count_unread(tx, reader.id)
            total, loud = unread.total, unread.loud
        else:
            member = await queries.access_member(tx, reader.id, thread_id)
            total = member.unread
            loud = 0 if member.state == "muted" else total
        if not loud:
            return None
        rows = await queries_pages.copies_before(
            tx, reader.id, thread_id, start, min(limit + 1, total), unread=True
        )
        return await self._page(tx, reader, thread_id, rows, limit, now) if rows else None

    async def _page(
        self,
        tx: Tx,
        reader: Account,
        thread_id: str | None,
        rows: list[CopyRow],
        limit: int,
        now: int,
    ) -> Page:
        shown = await fitting(tx, rows[:limit], PAGE_BYTES)
        cursor = None
        if len(rows) > len(shown):
            cursor = self._cursors.make(reader, thread_id or INBOX, shown[-1].seq)
        # Reading again within the second in which all was read changes nothing.
        marks = any(row.unread or row.last_read_at < now for row in shown)
        bodies = await self._bodies.of_all(tx, reader, shown)
        return Page(
            messages=[
                read_message(reader.handle, row, body)
                for row, body in zip(shown, bodies, strict=True)
            ],
            next_cursor=cursor,
            seqs=tuple(row.seq for row in shown) if marks else (),
        )

    async def threads(
        self, tx: Tx, reader: Account, state: State | None, before: int, limit: int
    ) -> ThreadPage:
        """Threads whose last message came before a place, newest first."""
        rows = await queries_pages.threads_before(tx, reader.id, state, before, limit + 1)
        shown = await fitting(tx, rows[:limit], LIST_BYTES)
        cursor = None
        if len(rows) > len(shown):
            cursor = self._cursors.make(reader, THREADS, shown[-1].seq)
        bodies = await self._bodies.of_all(tx, reader, shown)
        listed = [self._thread(row, body) for row, body in zip(shown, bodies, strict=True)]
        return ThreadPage(listed, cursor)

    async def thread(self, tx: Tx, reader: Account, thread_id: str) -> Thread:
        """One thread."""
        await queries.access_member(tx, reader.id, thread_id)
        row = await queries_pages.one_thread(tx, reader.id, thread_id)
        if row is None:
            raise ThreadNotFound
        [whole] = await fitting(tx, [row], LIST_BYTES)
        return self._thread(whole, await self._bodies.of(tx, reader, whole))

    def _thread(self, row: ThreadRow, body: str | None) -> Thread:
        subject = self._subjects.open(row.id, row.subject)
        return Thread(
            id=row.id,
            subject=subject.text if subject.first_seq > row.hidden_seq else "",
            other_handle=row.other_handle or GONE_HANDLE,
            other_display_name=row.other_name or GONE_NAME,
            last_message_body=preview(body),
            last_message_at=row.last_at,
            unread_count=row.unread,
            member_state=row.state,
            last_read_at=row.last_read_at,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    async def digest(self, tx: Tx, reader: Account) -> Digest:
        """What is unread."""
        unread = await queries_pages.count_unread(tx, reader.id)
        senders = await queries_pages.recent_senders(tx, reader.id)
        more = 0
        if len(senders) == queries_pages.MOST_SENDERS:
            more = await queries_pages.count_senders(tx, reader.id) - len(senders)
        return Digest(
            total_unread=unread.total,
            threads_with_unread=unread.threads,
            recent_senders=senders,
            urgent_count=await queries_pages.count_urgent(tx, reader.id),
            more_senders=more or UNSET,
        )


def read_message(handle: str, row: CopyRow, body: str | None) -> Message:
    """A message as the one with this handle sees it."""
    other = row.other_handle or GONE_HANDLE
    payload: EncryptedPayload | UnsetType = UNSET
    error: str | UnsetType = UNSET
    if row.mode == E2E:
        payload = EncryptedPayload(row.ciphertext or "", row.nonce, row.sender_key)
    elif body is None:
        error = UNREADABLE
    return Message(
        id=row.id,
        thread_id=row.thread_id,
        from_handle=other if row.incoming else handle,
        to_handle=handle if row.incoming else other,
        body=body,
        priority=row.priority,
        encryption_mode=row.mode,
        reply_to=row.reply_to,
        created_at=row.created_at,
        unread=bool(row.unread),
        encrypted_payload=payload,
        error=error,
    )


def preview(body: str | None) -> str | None:
    """The beginning of a body, for a list of many."""
    if body is None or len(body) <= PREVIEW_CHARACTERS:
        return body
    return body[: PREVIEW_CHARACTERS - 1] + "…"
