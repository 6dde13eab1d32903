"""How stored messages and threads become the pages that their reader sees.

A cursor is sealed: it reveals nothing, and works for its owner alone.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import UNSET, Struct, UnsetType

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.ports import Sealer, Tx
from folkmoot.mail import queries, queries_pages
from folkmoot.mail.encryption import Bodies, Subjects
from folkmoot.mail.limits import (
    MAX_CURSOR,
    MAX_DIGEST_SENDERS,
    MAX_PAGE_BYTES,
    MAX_PREVIEW,
    MAX_THREADS_PAGE_BYTES,
)
from folkmoot.mail.model import (
    E2E,
    GONE_HANDLE,
    GONE_NAME,
    Digest,
    EncryptedPayload,
    MailMessage,
    MailPage,
    State,
    Thread,
    ThreadPage,
)
from folkmoot.mail.queries_pages import CopyRow, Start, ThreadRow, box_within

CURSOR_PURPOSE = "cursor"

END = 2**62
"""Beyond the newest of everything."""


class Cursors(Struct, eq=False):
    """Makes and reads cursors. What is listed goes into the seal, so that lists do not mix."""

    sealer: Sealer

    def make(self, reader: Account, listed: str, seq: int) -> str:
        """The cursor of the page after this place."""
        return self.sealer.seal(CURSOR_PURPOSE, f"{reader.id} {listed}", str(seq).encode())

    def read(self, reader: Account, listed: str, cursor: str | None) -> int:
        """The place of a cursor; the beginning where none was given."""
        if cursor is None:
            return END
        try:
            # Whoever sends a long one has not got it from us; it need not be decoded.
            return int(
                self.sealer.open(CURSOR_PURPOSE, f"{reader.id} {listed}", cursor[:MAX_CURSOR])
            )
        except e.SealBroken:
            raise e.ArgumentInvalid(
                "cursor must be the next_cursor of an earlier answer to the same question.",
                field="cursor",
            ) from None


ANY_SIZE = 1 << 62

R = TypeVar("R", CopyRow, ThreadRow)


async def fitting(tx: Tx, rows: list[R], most: int) -> list[R]:
    """The first rows whose boxes fit, and at least one row."""
    # What came with its row is so short that a hundred of them always fit.
    if None not in [row.ciphertext for row in rows]:
        return rows
    shown: list[R] = []
    room = most
    for row in rows:
        whole = row
        if row.ciphertext is None and row.mode is not None:
            box = await box_within(tx, row.seq, room if shown else ANY_SIZE)
            if box is None:
                break
            whole = row._replace(ciphertext=box)
        room -= len(whole.ciphertext or "")
        if room < 0 and shown:
            break
        shown.append(whole)
    return shown


UNREADABLE = "This message cannot be decrypted: it was changed where it is stored."
INBOX = "inbox"
THREADS = "threads"


class MailReader(Struct, eq=False):
    """Reads pages; everything here runs within a unit, decryption too."""

    bodies: Bodies
    subjects: Subjects
    cursors: Cursors

    async def messages(
        self, tx: Tx, reader: Account, thread_id: str | None, start: Start, limit: int, now: int
    ) -> MailPage:
        """Messages from a place back, newest first: incoming ones, or all of one thread."""
        rows = await queries_pages.copies_before(tx, reader.id, thread_id, start, limit + 1)
        return await self._page(tx, reader, thread_id, rows, limit, now)

    async def news(
        self, tx: Tx, reader: Account, thread_id: str | None, start: Start, limit: int, now: int
    ) -> MailPage | None:
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
    ) -> MailPage:
        shown = await fitting(tx, rows[:limit], MAX_PAGE_BYTES)
        cursor = None
        if len(rows) > len(shown):
            cursor = self.cursors.make(reader, thread_id or INBOX, shown[-1].seq)
        # Reading again within the second in which all was read changes nothing.
        marks = any(row.unread or row.last_read_at < now for row in shown)
        bodies = await self.bodies.of_all(tx, reader, shown)
        return MailPage(
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
        shown = await fitting(tx, rows[:limit], MAX_THREADS_PAGE_BYTES)
        cursor = None
        if len(rows) > len(shown):
            cursor = self.cursors.make(reader, THREADS, shown[-1].seq)
        bodies = await self.bodies.of_all(tx, reader, shown)
        return ThreadPage(list(map(self._thread, shown, bodies)), cursor)

    async def thread(self, tx: Tx, reader: Account, thread_id: str) -> Thread:
        await queries.access_member(tx, reader.id, thread_id)
        row = await queries_pages.one_thread(tx, reader.id, thread_id)
        if row is None:
            raise e.ThreadNotFound
        [whole] = await fitting(tx, [row], MAX_THREADS_PAGE_BYTES)
        return self._thread(whole, await self.bodies.of(tx, reader, whole))

    def _thread(self, row: ThreadRow, body: str | None) -> Thread:
        # By place: names would cost more than the rest of it, for every thread of a list.
        thread_id, subject, created, updated, state, read, unread, _, last, hidden, *_ = row
        first_seq, text = self.subjects.open(thread_id, subject)
        if body is not None and len(body) > MAX_PREVIEW:
            body = body[: MAX_PREVIEW - 1] + "…"
        return Thread(
            thread_id,
            text if first_seq > hidden else "",
            row.other_handle or GONE_HANDLE,
            row.other_name or GONE_NAME,
            body,
            last,
            unread,
            state,
            read,
            created,
            updated,
            row.incoming == 0,
        )

    async def digest(self, tx: Tx, reader: Account) -> Digest:
        """What is unread."""
        unread = await queries_pages.count_unread(tx, reader.id)
        senders = await queries_pages.recent_senders(tx, reader.id)
        more = 0
        if len(senders) == MAX_DIGEST_SENDERS:
            more = await queries_pages.count_senders(tx, reader.id) - len(senders)
        return Digest(
            total_unread=unread.total,
            threads_with_unread=unread.threads,
            recent_senders=senders,
            urgent_count=await queries_pages.count_urgent(tx, reader.id),
            more_senders=more or UNSET,
        )


def read_message(handle: str, row: CopyRow, body: str | None) -> MailMessage:
    """A message as the member with this handle sees it."""
    other = row.other_handle or GONE_HANDLE
    payload: EncryptedPayload | UnsetType = UNSET
    error: str | UnsetType = UNSET
    if row.mode == E2E:
        payload = EncryptedPayload(row.ciphertext or "", row.nonce, row.sender_key)
    elif body is None:
        error = UNREADABLE
    return MailMessage(
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
