"""How messages, threads and everything of someone's are removed, and old mail after a time.

Removing someone's copy never touches the other side's.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec import Struct

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.ports import Clock, RoomOwners, Tx
from folkmoot.mail import queries, queries_removal
from folkmoot.mail.encryption import Subject, Subjects
from folkmoot.mail.limits import MAX_OLD_REMOVED
from folkmoot.quotas import Quotas

if TYPE_CHECKING:
    from folkmoot.mail.mail import Mail


class Remover(Struct, eq=False):
    """Removes; everything here runs within a unit."""

    subjects: Subjects
    quotas: Quotas

    async def remove_copy(self, tx: Tx, user_id: str, thread_id: str, seq: int) -> None:
        """Remove someone's copy of a message. The cost does not depend on what is stored."""
        await queries.hold_thread(tx, thread_id)
        most = self.quotas.limits.mail_bytes_per_account
        await queries_removal.delete_copy(tx, user_id, seq, most)
        thread = await queries_removal.read_thread(tx, thread_id)
        if thread is None:
            return
        first = self.subjects.open(thread_id, thread.subject).first_seq
        if seq == first:
            await queries_removal.hide_until(tx, user_id, thread_id, seq)
            await self._drop_subject(tx, thread_id, first)
        await queries_removal.update_last_copy(tx, user_id, thread_id, (first, thread.created_at))

    async def remove_thread(self, tx: Tx, user_id: str, thread_id: str) -> None:
        """Remove one member's side of a thread; the other side keeps its own."""
        await queries.hold_thread(tx, thread_id)
        most = self.quotas.limits.mail_bytes_per_account
        await queries_removal.delete_copies(tx, user_id, thread_id, most)
        await queries_removal.leave_thread(tx, user_id, thread_id)
        await queries_removal.delete_thread_if_empty(tx, thread_id)
        thread = await queries_removal.read_thread(tx, thread_id)
        if thread is not None:
            first = self.subjects.open(thread_id, thread.subject).first_seq
            await self._drop_subject(tx, thread_id, first)

    async def remove_account(self, tx: Tx, account: Account) -> list[str]:
        """Remove a user's sent messages from both sides, and all their own mail.

        What others sent to them stays with those others, who are answered: their mailboxes have
        changed too. The cost grows with the threads' length.
        """
        sides = await queries_removal.sides_of(tx, account.id)
        for side in sides:
            await queries.hold_thread(tx, side.thread_id)
            await queries_removal.delete_sent(tx, account.id, side.thread_id)
            await queries_removal.delete_copies(tx, account.id, side.thread_id, 0)
            await queries_removal.delete_member(tx, account.id, side.thread_id)
            await self._settle_other(tx, side.other_id, side.thread_id, account.id)
        return [side.other_id for side in sides]

    async def _settle_other(self, tx: Tx, user_id: str, thread_id: str, gone: str) -> None:
        """Bring the side that stays up to date; if nothing of the thread is left, it goes."""
        thread = await queries_removal.read_thread(tx, thread_id)
        if thread is None:
            return
        first = self.subjects.open(thread_id, thread.subject).first_seq
        if thread.created_by == gone:
            await queries_removal.set_subject(
                tx, thread_id, self.subjects.seal(thread_id, Subject(first, ""))
            )
        await queries_removal.recount_unread(tx, user_id, thread_id)
        await queries_removal.update_last_copy(tx, user_id, thread_id, (0, thread.created_at))
        await queries_removal.delete_thread_if_empty(tx, thread_id)

    async def expire(self, tx: Tx, before: int, most: int) -> tuple[int, set[str]]:
        """Remove, from both sides, the oldest messages that were sent before a second.

        The answer is how many they were, and in whose mailboxes.
        """
        expired = await queries_removal.oldest_messages(tx, before, most)
        owners: set[str] = set()
        for message in expired:
            for user_id in await queries_removal.owners_of(tx, message.seq):
                await self.remove_copy(tx, user_id, message.thread_id, message.seq)
                owners.add(user_id)
        return len(expired), owners

    async def _drop_subject(self, tx: Tx, thread_id: str, first_seq: int) -> None:
        """Empty the subject once the message it is part of is gone."""
        if not await queries_removal.has_message(tx, first_seq):
            await queries_removal.set_subject(
                tx, thread_id, self.subjects.seal(thread_id, Subject(first_seq, ""))
            )


LOG = logging.getLogger(__name__)

DAY = 86_400


class Retention(Struct, eq=False):
    """Removes messages that are older than so many days; with no days, nothing."""

    mail: Mail
    clock: Clock
    keep_days: int
    pause_seconds: float = 600.0
    owners: RoomOwners | None = None

    async def run(self) -> None:
        """Remove what is too old at once and from time to time, until cancelled."""
        while True:
            try:
                removed = await self.tidy() if self.keep_days else 0
            except e.FolkmootError as error:
                # The mail stays a while longer; the next look tries again.
                LOG.warning("Old mail was not removed: %s", error.message)
            else:
                if removed:
                    LOG.info("removed old mail", extra={"messages": removed})
            await asyncio.sleep(self.pause_seconds)

    async def tidy(self) -> int:
        """Remove all that is too old now, and answer how many messages that were.

        Where several processes use the database, one of them does.
        """
        if self.owners is not None and not await self.owners.is_first():
            return 0
        before = int(self.clock.now()) - self.keep_days * DAY
        removed = 0
        while self.keep_days:
            gone = await self.mail.expire(before, MAX_OLD_REMOVED)
            removed += gone
            if gone < MAX_OLD_REMOVED:
                break
        return removed
