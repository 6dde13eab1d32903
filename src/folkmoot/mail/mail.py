"""Mail: each action is one transaction, with its events published after the commit."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, field

from folkmoot.accounts import Account, Accounts, OnDelete, access_recipient
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.ports import Bus, Clock, Sealer, Store, Tx, Unit
from folkmoot.core.uuids import is_beginning
from folkmoot.mail import queries, queries_pages, queries_removal
from folkmoot.mail.encryption import (
    Bodies,
    SharedKeys,
    Subject,
    Subjects,
    close_box,
    subject_of,
)
from folkmoot.mail.idempotency import Attempt, SentKeys, SentMeanwhile, check_attempt
from folkmoot.mail.limits import (
    MAX_BODY_CHARACTERS,
    MAX_CLOCK_SKEW,
    MAX_DIGEST_SENDERS,
    MAX_MAIL_PAGE,
    MAX_PAGE_BYTES,
    MAX_PREVIEW,
    MAX_SHARED_KEYS,
    MAX_THREADS_PAGE_BYTES,
    MAX_WAIT_SECONDS,
)
from folkmoot.mail.model import (
    E2E,
    GONE_HANDLE,
    GONE_NAME,
    SERVER_ASSISTED,
    STATES,
    Conversation,
    Digest,
    MailPage,
    Mode,
    Sent,
    State,
    Thread,
    ThreadPage,
)
from folkmoot.mail.queries import StoredMessage, ThreadMember
from folkmoot.mail.queries_pages import LAST_SECOND, CopyRow, Start, ThreadRow
from folkmoot.mail.reading import INBOX, THREADS, Cursors, fitting, read_message
from folkmoot.mail.sending import (
    DeliveredMessage,
    GivenPayload,
    OutgoingMessage,
    check_content,
    new_id,
    new_letter,
    publish_message,
)
from folkmoot.mail.thread_pages import ThreadPages
from folkmoot.mail.waiting import publish_change, publish_marked, wait_for_page
from folkmoot.names.grammar import parse_handle
from folkmoot.quotas import MAIL_BYTES, Quotas, QuotaUse, warning

T = TypeVar("T")


class Mail(Entity):
    """Everyone's mailboxes. `reader` and `sender` are the account on whose behalf is acted."""

    store: Store
    bus: Bus
    clock: Clock
    accounts: Accounts
    sealer: Sealer
    max_body_characters: int = MAX_BODY_CHARACTERS
    most_pairs: int = MAX_SHARED_KEYS
    quotas: Quotas = field(default_factory=Quotas)

    def __post_init__(self) -> None:
        self._keys = SharedKeys(self.accounts.private_key, most_pairs=self.most_pairs)
        self._bodies = Bodies(self._keys)
        self._subjects = Subjects(self.sealer)
        self._cursors = Cursors(self.sealer)
        self._sent_keys = SentKeys(self.sealer)
        self._thread_pages = ThreadPages(self.store.bus) if self.store.sole_writer else None

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
        content = check_content(body, encrypted_payload, self.max_body_characters)
        letter = new_letter(content, priority, reply_to, self._now())
        attempt = check_attempt(sender, idempotency_key, parse_handle(to) or to, letter)

        async def recipient(tx: Tx) -> Account:
            found = await access_recipient(tx, sender, to, letter.now)
            if found.id == sender.id:
                raise e.CannotSendToSelf
            return found

        return self._post(sender, letter, recipient, attempt)

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
        content = check_content(body, encrypted_payload, self.max_body_characters)
        letter = new_letter(content, priority, message_id, self._now())
        attempt = check_attempt(sender, idempotency_key, message_id, letter)

        async def recipient(tx: Tx) -> Account:
            _, member = await queries.access_message(tx, sender.id, message_id)
            found = await self.accounts.fetch(tx, member.other_id)
            await self.accounts.may_write_to(tx, sender, found)
            return found

        return self._post(sender, letter, recipient, attempt)

    async def _post(
        self,
        sender: Account,
        letter: OutgoingMessage,
        recipient_in: Unit[Account],
        attempt: Attempt | None,
    ) -> Sent:
        if attempt is not None:
            # Before the disk is looked at: what was sent is known though nothing more can be sent.
            known = await self.store.read(lambda tx: self._sent_keys.find(tx, attempt))
            if known is not None:
                return known
        self.quotas.check_disk()
        quotas, limits = self.quotas, self.quotas.limits

        async def post(tx: Tx) -> Sent | tuple[DeliveredMessage, Account]:
            # Another attempt may have been quicker than this one since it was looked for.
            known = None if attempt is None else await self._sent_keys.find(tx, attempt)
            if known is not None:
                return known
            recipient = await recipient_in(tx)
            stored = await self._deliver(tx, sender, recipient, letter)
            quotas.check("mail_bytes_per_account", stored.used, limits.mail_bytes_per_account)
            quotas.check("mail_bytes", quotas.mail_used + stored.size, limits.mail_bytes)
            if attempt is not None:
                await self._sent_keys.put(tx, attempt, sent_of(stored, recipient))
            publish_message(tx, stored)
            return stored, recipient

        try:
            posted = await self._write_once(post)
        except (e.ConstraintViolated, e.UserNotFound):
            # The sender's account may have gone since the request was let in.
            if await self.accounts.account(sender.id) is None:
                raise e.TokenInvalid from None
            raise
        if isinstance(posted, Sent):
            return posted
        stored, recipient = posted
        quotas.mail_used += stored.size
        use = QuotaUse(stored.used, limits.mail_bytes_per_account)
        return sent_of(stored, recipient, warning("mail_bytes_per_account", use))

    async def _write_once(self, post: Unit[T]) -> T:
        """Run a unit that sends a message; once more, if another attempt was quicker by a hair.

        Who writes to a thread holds it, and the rest are single statements: any order is right.
        """
        try:
            return await self.store.write(post, any_order=True)
        except (SentMeanwhile, e.ConstraintViolated):
            # Or an account went while its thread was waited for: the next look finds it gone.
            return await self.store.write(post, any_order=True)

    async def _deliver(
        self, tx: Tx, sender: Account, recipient: Account, letter: OutgoingMessage
    ) -> DeliveredMessage:
        """Store a letter with a copy for each side. The cost does not depend on what is stored."""
        seq, thread_id, now = await self._place(tx, sender, recipient, letter)
        if letter.reply_to is not None:
            await check_reply_to(tx, sender, thread_id, letter.reply_to)
        content = letter.content
        enclosed: tuple[Mode, str, str, str, str]
        if isinstance(content, str):
            boxed = close_box(await self._keys.of(tx, sender, recipient.public_key), content)
            enclosed = (SERVER_ASSISTED, *boxed, sender.public_key, recipient.public_key)
        else:
            enclosed = (E2E, content.ciphertext, content.nonce, content.sender_public_key, "")
        message = StoredMessage(
            seq,
            letter.id,
            thread_id,
            sender.id,
            recipient.id,
            letter.reply_to,
            letter.priority,
            *enclosed,
            now,
        )
        size = MAIL_BYTES + len(message.ciphertext)
        states, used = await queries.insert_message(tx, message, size)
        return DeliveredMessage(message, states.get(recipient.id) == "muted", size, used)

    async def _place(
        self, tx: Tx, sender: Account, recipient: Account, letter: OutgoingMessage
    ) -> tuple[int, str, int]:
        """The place of a message, its thread, which begins with the first message, and its time."""
        pair = ":".join(sorted((sender.id, recipient.id)))
        while True:
            thread = await queries.touch_thread(tx, pair, letter.now, letter.now + MAX_CLOCK_SKEW)
            if thread is not None:
                thread_id, now, seq = thread
                return seq, thread_id, now
            # Taken before the thread is there, so what comes later has a later place.
            thread_id, seq = new_id(), await tx.next_sequence(queries.PLACES)
            subject = self._subjects.seal(thread_id, Subject(seq, subject_of(letter.content)))
            if await queries.insert_thread(tx, thread_id, pair, subject, sender.id, letter.now):
                await queries.insert_members(tx, thread_id, sender.id, recipient.id, letter.now)
                return seq, thread_id, letter.now

    async def welcome(
        self, tx: Tx, account: Account, inviter_id: str | None, pending: str | None
    ) -> None:
        """Deliver an invite's pending message within the registration that claims it."""
        if inviter_id is None or not pending:
            return
        inviter = await self.accounts.fetch(tx, inviter_id)
        letter = new_letter(pending, "normal", None, self._now())
        # Whoever was invited is not to pay for what the inviter has stored.
        publish_message(tx, await self._deliver(tx, inviter, account, letter))

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
            start, wanted = Start(place), limit + 1
            if before is not None:
                start = Start(place, min(max(before, 0), LAST_SECOND))
            member = None
            if thread_id is not None:
                member = await queries.access_member(tx, reader.id, thread_id)
            if wait:
                wanted = min(wanted, await count_news(tx, reader, member))
                if not wanted:
                    return None
            rows = await queries_pages.copies_before(
                tx, reader.id, thread_id, start, wanted, unread=wait > 0
            )
            if wait and not rows:
                return None
            return await self._page(tx, reader, thread_id, rows, limit)

        async def look() -> MailPage | None:
            return await self.store.read(read)

        page = await (wait_for_page(self.bus, reader.id, wait, look) if wait else look())
        return unmarked(page or MailPage([]), peek=peek)

    async def _page(
        self, tx: Tx, reader: Account, thread_id: str | None, rows: list[CopyRow], limit: int
    ) -> MailPage:
        shown = await fitting(tx, rows[:limit], MAX_PAGE_BYTES)
        cursor = None
        if len(rows) > len(shown):
            cursor = self._cursors.make(reader, thread_id or INBOX, shown[-1].seq)
        # Reading again within the second in which all was read changes nothing.
        now = self._now()
        marks = any(row.unread or row.last_read_at < now for row in shown)
        bodies = await self._bodies.of_all(tx, reader, shown)
        return MailPage(
            messages=[
                read_message(reader.handle, row, body)
                for row, body in zip(shown, bodies, strict=True)
            ],
            next_cursor=cursor,
            seqs=tuple(row.seq for row in shown) if marks else (),
        )

    async def mark_delivered(self, reader: Account, seqs: tuple[int, ...]) -> None:
        """Mark read what was handed over: the `seqs` of a page whose answer arrived."""
        if not seqs:
            return
        now = self._now()

        async def unit(tx: Tx) -> None:
            marked = await queries.mark_copies(tx, reader.id, seqs, now)
            publish_marked(tx, reader.id, marked)

        await self.store.write(unit)

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
            rows = await queries_pages.threads_before(tx, reader.id, state, place, limit + 1)
            shown = await fitting(tx, rows[:limit], MAX_THREADS_PAGE_BYTES)
            after = None
            if len(rows) > len(shown):
                after = self._cursors.make(reader, THREADS, shown[-1].seq)
            bodies = await self._bodies.of_all(tx, reader, shown)
            return ThreadPage(list(map(self._thread, shown, bodies)), after)

        page = await self.store.read(read)
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
            await queries.access_member(tx, reader.id, thread_id)
            row = await queries_pages.one_thread(tx, reader.id, thread_id)
            if row is None:
                raise e.ThreadNotFound
            [whole] = await fitting(tx, [row], MAX_THREADS_PAGE_BYTES)
            thread = self._thread(whole, await self._bodies.of(tx, reader, whole))
            rows = await queries_pages.copies_before(
                tx, reader.id, thread_id, Start(place), limit + 1
            )
            page = await self._page(tx, reader, thread_id, rows, limit)
            return Conversation(thread, unmarked(page, peek=peek))

        return await self.store.read(read)

    def _thread(self, row: ThreadRow, body: str | None) -> Thread:
        # By place: names would cost more than the rest of it, for every thread of a list.
        thread_id, subject, created, updated, state, read, unread, _, last, hidden, *_ = row
        first_seq, text = self._subjects.open(thread_id, subject)
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

    async def digest(self, reader: Account) -> Digest:
        """What is unread; the cost grows with the threads that hold any of it."""

        async def read(tx: Tx) -> Digest:
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

        return await self.store.read(read)

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

        await self.store.write(unit)

    async def set_state(self, reader: Account, thread_id: str, state: State) -> None:
        """Archive a thread, until its next message; star or mute it; or make it active again."""

        async def unit(tx: Tx) -> None:
            if await queries.set_state(tx, reader.id, thread_id, state):
                publish_change(tx, (reader.id,), "state", thread_id)
            else:
                await queries.access_member(tx, reader.id, thread_id)

        await self.store.write(unit)

    async def resolve_id_prefix(self, reader: Account, message_id: str) -> str:
        """The id of a message of the reader's that was named by the beginning of it."""
        start = message_id.strip().lower()
        if not is_beginning(start):
            return message_id
        found = await self.store.read(lambda tx: queries.ids_beginning(tx, reader.id, start))
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
            await self._remove_copy(tx, reader.id, member.thread_id, seq)
            publish_change(tx, (reader.id,), "removed", member.thread_id)

        await self.store.write(unit)

    async def delete_thread(self, reader: Account, thread_id: str) -> None:
        """Remove a thread from the reader's mailbox; the other side keeps it.

        A new message brings it back, with nothing of what was before. The cost grows with the
        length of the thread.
        """

        async def unit(tx: Tx) -> None:
            await queries.access_member(tx, reader.id, thread_id)
            await queries.hold_thread(tx, thread_id)
            most = self.quotas.limits.mail_bytes_per_account
            await queries_removal.delete_copies(tx, reader.id, thread_id, most)
            await queries_removal.leave_thread(tx, reader.id, thread_id)
            await queries_removal.delete_thread_if_empty(tx, thread_id)
            thread = await queries_removal.read_thread(tx, thread_id)
            if thread is not None:
                first = self._subjects.open(thread_id, thread.subject).first_seq
                await self._drop_subject(tx, thread_id, first)
            publish_change(tx, (reader.id,), "removed", thread_id)

        await self.store.write(unit)

    async def delete_account(self, reader: Account, *, also: OnDelete | None = None) -> None:
        """Remove the reader's account with all they sent and all they had, in one transaction.

        `also` removes in it what others keep. What others sent to them stays with those others. The
        cost grows with the threads' length.
        """

        async def farewell(tx: Tx, account: Account) -> None:
            for thread_id, other_id in await queries_removal.sides_of(tx, account.id):
                await queries.hold_thread(tx, thread_id)
                await queries_removal.delete_sent(tx, account.id, thread_id)
                await queries_removal.delete_copies(tx, account.id, thread_id, 0)
                await queries_removal.delete_member(tx, account.id, thread_id)
                await self._leave_to_other(tx, other_id, thread_id, account.id)
                publish_change(tx, (other_id,), "removed")
            if also is not None:
                await also(tx, account)

        await self.accounts.delete(reader, also=farewell)

    async def _leave_to_other(self, tx: Tx, user_id: str, thread_id: str, gone: str) -> None:
        """Bring the side that stays up to date; if nothing of the thread is left, it goes."""
        thread = await queries_removal.read_thread(tx, thread_id)
        if thread is None:
            return
        if thread.created_by == gone:
            first = self._subjects.open(thread_id, thread.subject).first_seq
            await self._empty_subject(tx, thread_id, first)
        await queries_removal.recount_unread(tx, user_id, thread_id)
        await queries_removal.update_last_copy(tx, user_id, thread_id, (0, thread.created_at))
        await queries_removal.delete_thread_if_empty(tx, thread_id)

    async def expire(self, before: int, most: int = 500) -> int:
        """Remove up to `most` of the messages sent before a second, and answer how many went.

        For a hub that does not keep mail for ever; it calls until fewer go than it asked for.
        """

        async def unit(tx: Tx) -> int:
            expired = await queries_removal.oldest_messages(tx, before, most)
            owners: set[str] = set()
            for seq, thread_id in expired:
                for user_id in await queries_removal.owners_of(tx, seq):
                    await self._remove_copy(tx, user_id, thread_id, seq)
                    owners.add(user_id)
            publish_change(tx, owners, "removed")
            return len(expired)

        return await self.store.write(unit)

    async def _remove_copy(self, tx: Tx, user_id: str, thread_id: str, seq: int) -> None:
        """Remove someone's copy of a message. The cost does not depend on what is stored."""
        await queries.hold_thread(tx, thread_id)
        most = self.quotas.limits.mail_bytes_per_account
        await queries_removal.delete_copy(tx, user_id, seq, most)
        thread = await queries_removal.read_thread(tx, thread_id)
        if thread is None:
            return
        first = self._subjects.open(thread_id, thread.subject).first_seq
        if seq == first:
            await queries_removal.hide_until(tx, user_id, thread_id, seq)
            await self._drop_subject(tx, thread_id, first)
        await queries_removal.update_last_copy(tx, user_id, thread_id, (first, thread.created_at))

    async def _drop_subject(self, tx: Tx, thread_id: str, first_seq: int) -> None:
        """Empty the subject once the message it is part of is gone."""
        if not await queries_removal.has_message(tx, first_seq):
            await self._empty_subject(tx, thread_id, first_seq)

    async def _empty_subject(self, tx: Tx, thread_id: str, first_seq: int) -> None:
        subject = self._subjects.seal(thread_id, Subject(first_seq, ""))
        await queries_removal.set_subject(tx, thread_id, subject)

    def _now(self) -> int:
        return int(self.clock.now())


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


async def count_news(tx: Tx, reader: Account, member: ThreadMember | None) -> int:
    """How much is unread, of one thread or all; nothing if all there is lies in muted threads."""
    if member is not None:
        return 0 if member.state == "muted" else member.unread
    unread = await queries_pages.count_unread(tx, reader.id)
    return unread.total if unread.loud else 0


async def check_reply_to(tx: Tx, sender: Account, thread_id: str, message_id: str) -> None:
    """Refuse a reference to anything but a message of this thread that the sender has."""
    try:
        _, member = await queries.access_message(tx, sender.id, message_id)
    except e.ToolError:
        raise e.MessageNotFound from None
    if member.thread_id != thread_id:
        raise e.MessageNotFound


def check_limit(limit: int) -> None:
    """Refuse to list nothing or too much at once."""
    if not 1 <= limit <= MAX_MAIL_PAGE:
        raise e.ArgumentInvalid(f"limit must be from 1 to {MAX_MAIL_PAGE}.", field="limit")


def unmarked(page: MailPage, *, peek: bool) -> MailPage:
    """The page; after a peek, one that marks nothing."""
    return MailPage(page.messages, page.next_cursor) if peek else page
