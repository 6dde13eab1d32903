"""How stored messages and threads become what their reader sees."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from folkmoot.accounts import Account
from folkmoot.core.errors import SealBroken, ThreadNotFound
from folkmoot.core.ports import Tx
from folkmoot.mail import queries, queries_pages
from folkmoot.mail.crypto import SharedKeys, open_box
from folkmoot.mail.cursors import Cursors
from folkmoot.mail.model import (
    E2E,
    GONE_HANDLE,
    GONE_NAME,
    SERVER_ASSISTED,
    Digest,
    EncryptedPayload,
    Message,
    Page,
    State,
    Thread,
    ThreadPage,
)
from folkmoot.mail.queries_pages import CopyRow, ThreadRow
from folkmoot.mail.subjects import Subjects

LOG = logging.getLogger(__name__)

Keys: TypeAlias = dict[str, bytes | None]
"""Shared keys by the other side's public key; none where it cannot be had."""

PREVIEW_CHARACTERS = 500
UNREADABLE = "This message cannot be decrypted: it was changed where it is stored."
INBOX = "inbox"
THREADS = "threads"


class Reader:
    """Reads pages; everything here runs within a unit, decryption too."""

    def __init__(self, keys: SharedKeys, subjects: Subjects, cursors: Cursors) -> None:
        self._keys = keys
        self._subjects = subjects
        self._cursors = cursors

    async def messages(
        self, tx: Tx, reader: Account, thread_id: str | None, before: int, limit: int, now: int
    ) -> Page:
        """Messages before a place, newest first: incoming ones, or all of one thread."""
        rows = await queries_pages.copies_before(tx, reader.id, thread_id, before, limit + 1)
        return await self._page(tx, reader, thread_id, rows, limit, now)

    async def news(
        self, tx: Tx, reader: Account, thread_id: str | None, before: int, limit: int, now: int
    ) -> Page | None:
        """The unread messages before a place, unless all there are lie in muted threads."""
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
            tx, reader.id, thread_id, before, min(limit + 1, total), unread=True
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
        shown = rows[:limit]
        cursor = None
        if len(rows) > limit:
            cursor = self._cursors.make(reader, thread_id or INBOX, shown[-1].seq)
        # Reading again within the second in which all was read changes nothing.
        marks = any(row.unread or row.last_read_at < now for row in shown)
        keys = await self._keys_for(tx, reader, shown)
        return Page(
            messages=[read_message(reader.handle, row, keys) for row in shown],
            next_cursor=cursor,
            seqs=tuple(row.seq for row in shown) if marks else (),
        )

    async def _keys_for(self, tx: Tx, reader: Account, rows: Sequence[CopyRow | ThreadRow]) -> Keys:
        """The keys that open these rows' messages, each by the other side's public key."""
        keys: Keys = {}
        for row in rows:
            other = other_key(row)
            if other is not None and other not in keys:
                try:
                    keys[other] = await self._keys.of(tx, reader, other)
                except SealBroken:
                    keys[other] = None
        return keys

    async def threads(
        self, tx: Tx, reader: Account, state: State | None, before: int, limit: int
    ) -> ThreadPage:
        """Threads whose last message came before a place, newest first."""
        rows = await queries_pages.threads_before(tx, reader.id, state, before, limit + 1)
        shown = rows[:limit]
        cursor = None
        if len(rows) > limit:
            cursor = self._cursors.make(reader, THREADS, shown[-1].last_seq)
        keys = await self._keys_for(tx, reader, shown)
        return ThreadPage([self._thread(row, keys) for row in shown], cursor)

    async def thread(self, tx: Tx, reader: Account, thread_id: str) -> Thread:
        """One thread."""
        await queries.access_member(tx, reader.id, thread_id)
        row = await queries_pages.one_thread(tx, reader.id, thread_id)
        if row is None:
            raise ThreadNotFound
        return self._thread(row, await self._keys_for(tx, reader, [row]))

    def _thread(self, row: ThreadRow, keys: Keys) -> Thread:
        subject = self._subjects.open(row.id, row.subject)
        return Thread(
            id=row.id,
            subject=subject.text if subject.first_seq > row.hidden_seq else "",
            other_handle=row.other_handle or GONE_HANDLE,
            other_display_name=row.other_name or GONE_NAME,
            last_message_body=preview(read_body(row, keys)),
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
        return Digest(
            total_unread=unread.total,
            threads_with_unread=unread.threads,
            recent_senders=await queries_pages.recent_senders(tx, reader.id),
            urgent_count=await queries_pages.count_urgent(tx, reader.id),
        )


def other_key(row: CopyRow | ThreadRow) -> str | None:
    """The other side's public key, with which the reader opens the message; none for E2E."""
    if row.mode != SERVER_ASSISTED:
        return None
    return row.sender_key if row.incoming else row.recipient_key


def read_body(row: CopyRow | ThreadRow, keys: Keys) -> str | None:
    """The body; nothing for E2E, and for what was changed at rest: it hides no other message."""
    other = other_key(row)
    if other is None or row.ciphertext is None or row.nonce is None:
        return None
    key = keys[other]
    try:
        if key is not None:
            return open_box(key, row.ciphertext, row.nonce)
    except SealBroken:
        pass
    LOG.warning("A message was changed where it is stored, and cannot be decrypted.")
    return None


def read_message(handle: str, row: CopyRow, keys: Keys) -> Message:
    """A message as the one with this handle sees it."""
    other = row.other_handle or GONE_HANDLE
    body = read_body(row, keys)
    payload: EncryptedPayload | UnsetType = UNSET
    error: str | UnsetType = UNSET
    if row.mode == E2E:
        payload = EncryptedPayload(row.ciphertext, row.nonce, row.sender_key)
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
        encrypted_payload=payload,
        error=error,
    )


def preview(body: str | None) -> str | None:
    """The beginning of a body, for a list of many."""
    if body is None or len(body) <= PREVIEW_CHARACTERS:
        return body
    return body[: PREVIEW_CHARACTERS - 1] + "…"
