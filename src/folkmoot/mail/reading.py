"""How stored messages and threads become the pages that their reader sees.

A cursor is sealed: it reveals nothing, and works for its owner alone.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import UNSET, Struct, UnsetType

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.ports import Sealer, Tx
from folkmoot.mail.limits import (
    MAX_CURSOR,
)
from folkmoot.mail.model import (
    E2E,
    GONE_HANDLE,
    EncryptedPayload,
    MailMessage,
)
from folkmoot.mail.queries_pages import CopyRow, ThreadRow, box_within

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
