"""Mail: each action is one transaction, with its events published after the commit."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import UNSET

from folkmoot.accounts import Account, Accounts, OnDelete, access_recipient
from folkmoot.core import errors as e
from folkmoot.core.ports import Bus, Clock, Sealer, Store, Tx, Unit
from folkmoot.core.uuids import is_beginning
from folkmoot.mail import queries
from folkmoot.mail.encryption import (
    Bodies,
    SharedKeys,
    Subjects,
)
from folkmoot.mail.idempotency import Attempt, SentKeys, SentMeanwhile, check_attempt
from folkmoot.mail.limits import (
    MAX_BODY_CHARACTERS,
    MAX_MAIL_PAGE,
    MAX_SHARED_KEYS,
    MAX_WAIT_SECONDS,
)
from folkmoot.mail.model import (
    STATES,
    Conversation,
    Digest,
    MailPage,
    Sent,
    State,
    StateChange,
    ThreadPage,
)
from folkmoot.mail.queries_pages import LAST_SECOND, Start
from folkmoot.mail.reading import INBOX, THREADS, Cursors, MailReader
from folkmoot.mail.removal import Remover
from folkmoot.mail.sending import (
    DeliveredMessage,
    GivenPayload,
    MailSender,
    check_content,
    new_letter,
    publish_message,
)
from folkmoot.mail.thread_pages import ThreadPages
from folkmoot.mail.waiting import publish_change, publish_marked, wait_for_page
from folkmoot.names.grammar import parse_handle
from folkmoot.quotas import Quotas, QuotaUse, warning

T = TypeVar("T")


class Mail:
    """Everyone's mailboxes. `reader` and `sender` are the account on whose behalf is acted."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        clock: Clock,
        accounts: Accounts,
        sealer: Sealer,
        *,
        max_body_characters: int = MAX_BODY_CHARACTERS,
        most_pairs: int = MAX_SHARED_KEYS,
        quotas: Quotas | None = None,
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._accounts = accounts
        self._max_body = max_body_characters
        keys = SharedKeys(accounts.private_key, most_pairs=most_pairs)
        subjects = Subjects(sealer)
        self._cursors = Cursors(sealer)
        self._quotas = quotas or Quotas()
        self._sender = MailSender(keys, subjects, self._quotas)
        self._reader = MailReader(Bodies(keys), subjects, self._cursors)
        self._remover = Remover(subjects, self._quotas)
        self._sent_keys = SentKeys(sealer)
        self._thread_pages = ThreadPages(store.bus) if store.sole_writer else None

    def send(
        self,
        sender: Account,
        to: str,
        *,
        body: str | None = None,
        encrypted_payload: GivenPayload | None = None,
        priority: str = "normal",
        reply_to: str | None = None,
        idempotency_key: str | None = None,
    ) -> Coroutine[Any, Any, Sent]:
        """Send a message, encrypted here or by the client; answered when it is stored for good.

        The same `idempotency_key` within 24 hours is answered with the first message.
        """
        content = check_content(body, encrypted_payload, self._max_body)
        letter = new_letter(content, priority, reply_to, self._now())
        attempt = None
        if idempotency_key is not None:
            target = parse_handle(to) or to
            attempt = check_attempt(sender, idempotency_key, target, content, letter.now)

        async def unit(tx: Tx) -> tuple[DeliveredMessage, Account]:
            recipient = await access_recipient(tx, sender, to, letter.now)
            if recipient.id == sender.id:
                raise e.CannotSendToSelf
            return await self._sender.store(tx, sender, recipient, letter), recipient

        return self._post(sender, unit, attempt)

    def reply(
        self,
        sender: Account,
        message_id: str,
        *,
        body: str | None = None,
        encrypted_payload: GivenPayload | None = None,
        priority: str = "normal",
        idempotency_key: str | None = None,
    ) -> Coroutine[Any, Any, Sent]:
        """Answer a message the sender has, in its thread; blocks and privacy hold as in `send`."""
        content = check_content(body, encrypted_payload, self._max_body)
        letter = new_letter(content, priority, message_id, self._now())
        attempt = None
        if idempotency_key is not None:
            attempt = check_attempt(sender, idempotency_key, message_id, content, letter.now)

        async def unit(tx: Tx) -> tuple[DeliveredMessage, Account]:
            _, member = await queries.access_message(tx, sender.id, message_id)
            recipient = await self._accounts.fetch(tx, member.other_id)
            await self._accounts.may_write_to(tx, sender, recipient)
            return await self._sender.store(tx, sender, recipient, letter), recipient

        return self._post(sender, unit, attempt)

    async def _post(
        self, sender: Account, unit: Unit[tuple[DeliveredMessage, Account]], attempt: Attempt | None
    ) -> Sent:
        if attempt is not None:
            # Before the disk is looked at: what was sent is known though nothing more can be sent.
            known = await self._store.read(lambda tx: self._sent_keys.find(tx, attempt))
            if known is not None:
                return known
        self._quotas.check_disk()

        async def post(tx: Tx) -> Sent | tuple[DeliveredMessage, Account]:
            # Another attempt may have been quicker than this one since it was looked for.
            known = None if attempt is None else await self._sent_keys.find(tx, attempt)
            if known is not None:
                return known
            stored, recipient = await unit(tx)
            if attempt is not None:
                await self._sent_keys.put(tx, attempt, sent_of(stored, recipient))
            publish_message(tx, stored)
            return stored, recipient

        try:
            posted = await self._write_once(post)
        except (e.ConstraintViolated, e.UserNotFound):
            # The sender's account may have gone since the request was let in.
            if await self._accounts.account(sender.id) is None:
                raise e.TokenInvalid from None
            raise
        if isinstance(posted, Sent):
            return posted
        stored, recipient = posted
        limits = self._quotas.limits
        self._quotas.mail_used += stored.size
        near = warning(
            "mail_bytes_per_account", QuotaUse(stored.used, limits.mail_bytes_per_account)
        )
        return sent_of(stored, recipient, near)

    async def _write_once(self, post: Unit[T]) -> T:
        """Run a unit that sends a message; once more, if another attempt was quicker by a hair.

        Who writes to a thread holds it, and the rest are single statements: any order is right.
        """
        try:
            return await self._store.write(post, any_order=True)
        except (SentMeanwhile, e.ConstraintViolated):
            # Or an account went while its thread was waited for: the next look finds it gone.
            return await self._store.write(post, any_order=True)

    async def welcome(
        self, tx: Tx, account: Account, inviter_id: str | None, pending: str | None
    ) -> None:
        """Deliver an invite's pending message within the registration that claims it."""
        if inviter_id is None or not pending:
            return
        inviter = await self._accounts.fetch(tx, inviter_id)
        letter = new_letter(pending, "normal", None, self._now())
        # Whoever was invited is not to pay for what the inviter has stored.
        publish_message(tx, await self._sender.deliver(tx, inviter, account, letter))

    async def inbox(
        self,
        reader: Account,
        *,
        thread_id: str | None = None,
        limit: int = 50,
        before: int | None = None,
        cursor: str | None = None,
        peek: bool = False,
        wait: float = 0,
    ) -> MailPage:
        """Messages to the reader, or those of one thread, newest first.

        With `wait` only the unread ones, as soon as there are any outside muted threads, and
        nothing if there are none in time. Nothing is marked read before `mark_delivered`. The cost
        grows with what is returned, not with what is stored; that of `before` a little with the
        reader's younger messages.
        """
        check_limit(limit)
        if not 0 <= wait <= MAX_WAIT_SECONDS:
            raise e.ArgumentInvalid(
                f"wait must be from 0 to {MAX_WAIT_SECONDS} seconds.", field="wait"
            )
        place = self._cursors.read(reader, thread_id or INBOX, cursor)

        async def read(tx: Tx) -> MailPage | None:
            start, now = Start(place), self._now()
            if thread_id is not None:
                await queries.access_member(tx, reader.id, thread_id)
            if before is not None:
                start = Start(place, min(max(before, 0), LAST_SECOND))
            find = self._reader.news if wait else self._reader.messages
            return await find(tx, reader, thread_id, start, limit, now)

        async def look() -> MailPage | None:
            return await self._store.read(read)

        page = await (wait_for_page(self._bus, reader.id, wait, look) if wait else look())
        return unmarked(page or MailPage([]), peek=peek)

    async def mark_delivered(self, reader: Account, seqs: tuple[int, ...]) -> None:
        """Mark read what was handed over: the `seqs` of a page whose answer arrived."""
        if not seqs:
            return
        now = self._now()

        async def unit(tx: Tx) -> None:
            marked = await queries.mark_copies(tx, reader.id, seqs, now)
            publish_marked(tx, reader.id, marked)

        await self._store.write(unit)

    async def threads(
        self,
        reader: Account,
        *,
        state: State | None = None,
        limit: int = MAX_MAIL_PAGE,
        cursor: str | None = None,
    ) -> ThreadPage:
        """The reader's threads, the one with the newest message first, with previews.

        The cost grows with what is returned; with `state`, with the number of the reader's threads.
        """
        check_limit(limit)
        if state is not None and state not in STATES:
            raise e.ArgumentInvalid(f"state must be one of {', '.join(STATES)}.", field="state")
        place = self._cursors.read(reader, THREADS, cursor)
        pages = self._thread_pages
        question = (reader.public_key, state, place, limit)
        changes = 0
        if pages is not None:
            if (known := pages.find(reader, question)) is not None:
                return known
            changes = pages.changes

        async def read(tx: Tx) -> ThreadPage:
            return await self._reader.threads(tx, reader, state, place, limit)

        page = await self._store.read(read)
        if pages is not None:
            pages.keep(reader, question, page, changes)
        return page

    async def thread(
        self,
        reader: Account,
        thread_id: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        peek: bool = False,
    ) -> Conversation:
        """One thread and its messages of both sides, newest first; marked as `inbox` does."""
        check_limit(limit)
        place = self._cursors.read(reader, thread_id, cursor)

        async def read(tx: Tx) -> Conversation:
            thread = await self._reader.thread(tx, reader, thread_id)
            page = await self._reader.messages(
                tx, reader, thread_id, Start(place), limit, self._now()
            )
            return Conversation(thread, unmarked(page, peek=peek))

        return await self._store.read(read)

    async def digest(self, reader: Account) -> Digest:
        """What is unread; the cost grows with the threads that hold any of it."""
        return await self._store.read(lambda tx: self._reader.digest(tx, reader))

    async def mark_read(
        self, reader: Account, thread_id: str, message_ids: Sequence[str] | None = None
    ) -> None:
        """Mark everything in a thread read, or these messages of it alone."""
        now = self._now()

        async def mark(tx: Tx) -> int:
            await queries.access_member(tx, reader.id, thread_id)
            if message_ids is None:
                return await queries.mark_thread(tx, reader.id, thread_id, now)
            places = await queries.places_of(tx, thread_id, message_ids) if message_ids else []
            return await queries.mark_copies(tx, reader.id, places, now) if places else 0

        async def unit(tx: Tx) -> None:
            publish_marked(tx, reader.id, await mark(tx), thread_id)

        await self._store.write(unit)

    async def archive(self, reader: Account, thread_id: str, *, undo: bool = False) -> StateChange:
        """Archive a thread, until its next message; or make it active again."""
        return await self._set_state(reader, thread_id, "active" if undo else "archived")

    async def star(self, reader: Account, thread_id: str, *, undo: bool = False) -> StateChange:
        """Star a thread, or make it active again."""
        return await self._set_state(reader, thread_id, "active" if undo else "starred")

    async def mute(self, reader: Account, thread_id: str, *, undo: bool = False) -> StateChange:
        """Mute a thread, so that it raises no notice; or make it active again."""
        return await self._set_state(reader, thread_id, "active" if undo else "muted")

    async def _set_state(self, reader: Account, thread_id: str, state: State) -> StateChange:
        async def unit(tx: Tx) -> None:
            if await queries.set_state(tx, reader.id, thread_id, state):
                publish_change(tx, (reader.id,), "state", thread_id)
            else:
                await queries.access_member(tx, reader.id, thread_id)

        await self._store.write(unit)
        return StateChange(thread_id, state)

    async def resolve_id_prefix(self, reader: Account, message_id: str) -> str:
        """The id of a message of the reader's that was named by the beginning of it."""
        start = message_id.strip().lower()
        if not is_beginning(start):
            return message_id
        found = await self._store.read(lambda tx: queries.ids_beginning(tx, reader.id, start))
        if len(found) > 1:
            raise e.ArgumentInvalid(
                f"Several of your messages begin with {start}; give more of the id.",
                field="message_id",
            )
        if not found:
            raise e.MessageNotFound
        return found[0]

    async def delete_message(self, reader: Account, message_id: str) -> None:
        """Remove the reader's copy of a message; the other side keeps its own."""

        async def unit(tx: Tx) -> None:
            seq, member = await queries.access_message(tx, reader.id, message_id)
            await self._remover.remove_copy(tx, reader.id, member.thread_id, seq)
            publish_change(tx, (reader.id,), "removed", member.thread_id)

        await self._store.write(unit)

    async def delete_thread(self, reader: Account, thread_id: str) -> None:
        """Remove a thread from the reader's mailbox; the other side keeps it.

        A new message brings it back, with nothing of what was before. The cost grows with the
        length of the thread.
        """

        async def unit(tx: Tx) -> None:
            await queries.access_member(tx, reader.id, thread_id)
            await self._remover.remove_thread(tx, reader.id, thread_id)
            publish_change(tx, (reader.id,), "removed", thread_id)

        await self._store.write(unit)

    async def delete_account(self, reader: Account, *, also: OnDelete | None = None) -> None:
        """Remove the reader's account with all they sent and all they had, in one transaction.

        `also` removes in it what others keep.
        """

        async def farewell(tx: Tx, account: Account) -> None:
            publish_change(tx, await self._remover.remove_account(tx, account), "removed")
            if also is not None:
                await also(tx, account)

        await self._accounts.delete(reader, also=farewell)

    async def expire(self, before: int, most: int = 500) -> int:
        """Remove up to `most` of the messages sent before a second, and answer how many went.

        For a hub that does not keep mail for ever; it calls until fewer go than it asked for.
        """

        async def unit(tx: Tx) -> int:
            removed, owners = await self._remover.expire(tx, before, most)
            publish_change(tx, owners, "removed")
            return removed

        return await self._store.write(unit)

    def _now(self) -> int:
        return int(self._clock.now())


def sent_of(stored: DeliveredMessage, recipient: Account, warned: str | None = None) -> Sent:
    """What the sender of a stored message is answered."""
    message = stored.message
    return Sent(
        message_id=message.id,
        thread_id=message.thread_id,
        to=recipient.handle,
        encryption_mode=message.mode,
        created_at=message.created_at,
        quota_warning=warned or UNSET,
    )


def check_limit(limit: int) -> None:
    """Refuse to list nothing or too much at once."""
    if not 1 <= limit <= MAX_MAIL_PAGE:
        raise e.ArgumentInvalid(f"limit must be from 1 to {MAX_MAIL_PAGE}.", field="limit")


def unmarked(page: MailPage, *, peek: bool) -> MailPage:
    """The page; after a peek, one that marks nothing."""
    return MailPage(page.messages, page.next_cursor) if peek else page
