"""The interceptors of mail: one encrypts what is sent, the other decrypts what is read."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from folkmoot.bridge.calls import (
    CallInterceptor,
    Envelope,
    SideHub,
    answer_in,
    payload_of,
    tool_call,
    with_payload,
)
from folkmoot.bridge.crypto import (
    digest,
    new_letter,
    read_payload,
    seal,
    write_letter,
)
from folkmoot.bridge.identity import (
    BRIDGE,
    E2E,
    SERVER_ASSISTED,
    Device,
    Peers,
    Recipient,
    mark,
)
from folkmoot.bridge.ledger import Ledger, SeenLetter
from folkmoot.bridge.limits import MAX_LOOKUPS_PER_PAGE, MAX_REMEMBERED_LOOKUPS, MAX_REPLY_PAGES
from folkmoot.bridge.reading import (
    GONE,
    SEALED,
    Marker,
    PageReader,
    ReadPage,
)
from folkmoot.bridge.tools import PAGES, PAYLOAD, SENDING
from folkmoot.core import errors as e
from folkmoot.core.message import Response
from folkmoot.core.ports import Clock
from folkmoot.core.uuids import as_stored, is_beginning
from folkmoot.core.verdict import CONTINUE, Modify, Verdict
from folkmoot.operations.row import NOTICE, notice_about


class SentLetter(msgspec.Struct, frozen=True):
    """A message being sent: its recipient, and the digest of its box if it was sealed."""

    recipient: Recipient
    digest: str | None
    retried: bool = False
    """Whether it may be a message again that was sent before."""


class MailEncryption(CallInterceptor):
    """Seals the body of what is sent to whoever has a key; never sends it readable instead."""

    name = "bridge-seal"

    def __init__(
        self, device: Device, peers: Peers, ledger: Ledger, hub: SideHub, clock: Clock
    ) -> None:
        self._device = device
        self._peers = peers
        self._ledger = ledger
        self._hub = hub
        self._clock = clock

    async def judge(self, envelope: Envelope) -> Verdict:
        """What is to become of the message."""
        call, notes = tool_call(envelope), envelope.context.notes
        if call is not None and call.tool in SENDING:
            arguments, notes[self] = await self._sealed(dict(call.arguments))
            return Modify(call.with_arguments(arguments))
        response, sent = answer_in(envelope), notes.get(self)
        if response is not None and sent is not None:
            return await self._describe_sent(response, sent)
        return CONTINUE

    async def _sealed(self, given: dict[str, Any]) -> tuple[dict[str, Any], SentLetter]:
        """The arguments of a call with the message sealed."""
        await self._device.ready()
        to = given.get("to")
        if to is None:
            answered = await self._answered(given["message_id"])
            to, given["message_id"] = answered.peer, answered.message_id
        recipient = await self._peers.recipient(to)
        if recipient.key is None:
            return given, SentLetter(recipient, None)
        self._device.check_usable()
        content = self._content(recipient, given)
        payload = seal(self._device.keys.current, recipient.key, content)
        box = digest(payload)
        await asyncio.to_thread(
            self._ledger.note_sent, self._device.owner, box, recipient.handle, recipient.key
        )
        del given["body"]
        given[PAYLOAD] = msgspec.structs.asdict(payload)
        return given, SentLetter(recipient, box, retried="idempotency_key" in given)

    def _content(self, recipient: Recipient, given: dict[str, Any]) -> bytes:
        """What goes into the box: a letter for whoever reads letters, else the body alone."""
        if not recipient.letters:
            return bytes(given["body"], "utf-8")
        return write_letter(
            new_letter(
                self._device.handle,
                recipient.handle,
                given["body"],
                self._clock.now(),
                given.get("message_id") or given.get("reply_to"),
            )
        )

    async def _answered(self, message_id: str) -> SeenLetter:
        """The message that is answered, by its id or the beginning of it.

        It was seen here, or is looked up among the latest ones.
        """
        message_id = as_stored(message_id.strip())
        owner, start = self._device.owner, message_id.lower()
        seen = await asyncio.to_thread(self._ledger.by_id, owner, message_id)
        if seen is not None:
            return seen
        if is_beginning(start):
            found = await asyncio.to_thread(self._ledger.beginning, owner, start)
            if len(found) > 1:
                raise e.ArgumentInvalid(
                    f"Several messages begin with {start}; give more of the id.",
                    field="message_id",
                )
            if found:
                return found[0]
        cursor: dict[str, Any] = {}
        for _ in range(MAX_REPLY_PAGES):
            page = await self._hub.call("msg/inbox", peek=True, limit=100, **cursor)
            for message in page.get("messages") or []:
                found_id = message.get("id") if isinstance(message, dict) else None
                if isinstance(found_id, str) and is_meant(found_id, message_id, start):
                    sender = str(message.get("from_handle"))
                    return SeenLetter(None, found_id, None, sender, outgoing=False, peer_key="")
            if not page.get("next_cursor"):
                raise e.MessageNotFound
            cursor = {"cursor": page["next_cursor"]}
        raise e.PeerUnknown(
            "The bridge does not know whom this would answer: read the message first with "
            "msg_inbox or msg_thread, or write with msg_send.",
            message_id=message_id,
        )

    async def _describe_sent(self, response: Response, sent: SentLetter) -> Verdict:
        payload = payload_of(response)
        if payload is None:
            return CONTINUE
        mode, key, note = E2E, sent.recipient.standing, sent.recipient.note
        if sent.digest is None:
            mode, key = SERVER_ASSISTED, ""
            note = (
                f"@{sent.recipient.handle} has no key, so the hub could read this message; it is "
                "stored encrypted there."
            )
        elif sent.retried and payload.get("encryption_mode") == SERVER_ASSISTED:
            mode, key = SERVER_ASSISTED, ""
            note = "A message with this idempotency_key was sent before, and the hub could read it."
        else:
            await self._place(payload, sent.digest)
        if payload.get("to") != sent.recipient.handle:
            note = f"{note} The hub says that it went to another handle.".strip()
        payload["encryption_mode"] = mode
        payload[BRIDGE] = mark(mode, key=key, note=note)
        return Modify(with_payload(response, payload))

    async def _place(self, payload: dict[str, Any], box: str) -> None:
        message_id, thread_id = payload.get("message_id"), payload.get("thread_id")
        if isinstance(message_id, str) and isinstance(thread_id, str):
            await asyncio.to_thread(
                self._ledger.note_place, self._device.owner, box, message_id, thread_id
            )


def is_meant(found: str, message_id: str, start: str) -> bool:
    """Whether an id is the one that was given, or begins with it."""
    return found == message_id or (is_beginning(start) and found.startswith(start))


class MailRequest(msgspec.Struct, frozen=True):
    """A look at mail: whether it is to be marked read."""

    marks: bool


class MailDecryption(CallInterceptor):
    """Asks the hub not to mark mail as read, opens it, and notes each message's encryption."""

    name = "bridge-open"

    def __init__(self, device: Device, peers: Peers, ledger: Ledger, marker: Marker) -> None:
        self._device = device
        self._peers = peers
        self._ledger = ledger
        self._marker = marker
        self._looked_up: dict[str, None] = {}

    async def judge(self, envelope: Envelope) -> Verdict:
        """What is to become of the message."""
        call, notes = tool_call(envelope), envelope.context.notes
        if call is not None and call.tool in PAGES:
            await self._device.ready()
            await self._marker.wait_marked()
            peek = call.arguments.get("peek")
            notes[self] = MailRequest(marks=peek is None or peek is False)
            return Modify(call.with_arguments({**call.arguments, "peek": True}))
        response, asked = answer_in(envelope), notes.get(self)
        if response is not None and asked is not None:
            return await self._answer(response, asked, notes)
        return CONTINUE

    async def _answer(
        self, response: Response, asked: MailRequest, notes: dict[Any, Any]
    ) -> Verdict:
        payload = payload_of(response)
        if payload is None:
            return CONTINUE
        messages, thread = payload.get("messages"), payload.get("thread")
        if not isinstance(messages, list):
            raise e.AnswerInvalid("The hub's answer holds no messages, so it is not shown.")
        other = thread.get("other_handle") if isinstance(thread, dict) else None
        page = await self._read(messages, other if isinstance(other, str) else None)
        payload["messages"] = page.messages
        payload.pop(BRIDGE, None)
        if page.messages:
            # The bridge's own, so that no hub can leave it out.
            payload[NOTICE] = notice_about(
                ("messages",) if thread is None else ("thread", "messages")
            )
        if said := self._said(page, asked):
            payload[BRIDGE] = said
        if asked.marks:
            self._marker.expect(notes, page.incoming)
        return Modify(with_payload(response, payload))

    async def _read(self, messages: list[Any], other: str | None) -> ReadPage:
        unasked = await self._know(messages)
        page = await asyncio.to_thread(self._reader(other, unasked).read, messages)
        if page.renames:
            followed = [
                await self._follow(*it) for it in sorted(page.renames)[:MAX_LOOKUPS_PER_PAGE]
            ]
            if any(followed):
                page = await asyncio.to_thread(self._reader(other, unasked).read, messages)
        await asyncio.to_thread(self._remember, page)
        return page

    def _reader(self, other: str | None, unasked: frozenset[str]) -> PageReader:
        return PageReader(self._device.keys, self._device.names, self._ledger, other, unasked)

    async def _know(self, messages: list[Any]) -> frozenset[str]:
        """Learn what the page cannot be read without: who we are, and who is new to us.

        Answers who is new and was not asked about, since there were too many.
        """
        shown = [it for it in messages if isinstance(it, dict)]
        names = self._device.names
        if any(it.get("from_handle") not in names and it.get("to_handle") not in names
               for it in shown):  # fmt: skip
            await self._device.look_again()
        ourselves = self._device.names | {GONE}
        met: dict[str, str | None] = {}
        for message in reversed(shown):
            payload = read_payload(message.get(SEALED))
            if payload is None:
                continue
            for side, key in (("to_handle", None), ("from_handle", payload.sender_public_key)):
                handle = message.get(side)
                if isinstance(handle, str) and handle not in ourselves:
                    met[handle] = key or met.get(handle)
        known = await asyncio.to_thread(self._pinned, set(met))
        new = sorted(met.keys() - known, key=lambda handle: (handle in self._looked_up, handle))
        for handle in new[:MAX_LOOKUPS_PER_PAGE]:
            self._looked_up[handle] = None
            if len(self._looked_up) > MAX_REMEMBERED_LOOKUPS:
                del self._looked_up[next(iter(self._looked_up))]
            try:
                await self._peers.meet(handle, met[handle])
            except e.FolkmootError:
                # Then no key of theirs is known, which is what will be said of their messages.
                continue
        return frozenset(new[MAX_LOOKUPS_PER_PAGE:]) - self._looked_up.keys()

    def _pinned(self, handles: set[str]) -> set[str]:
        owner = self._device.owner
        pins = {it: self._ledger.pin_of(owner, it) for it in handles}
        return {it for it, pin in pins.items() if pin is not None and pin.key}

    async def _follow(self, was: str, handle: str) -> bool:
        try:
            return await self._peers.follow(was, handle)
        except e.FolkmootError:
            return False

    def _remember(self, page: ReadPage) -> None:
        owner = self._device.owner
        with self._ledger.changing():
            for handle, key in page.writers:
                self._ledger.note_letters(owner, handle, key)
            for seen in page.seen:
                if seen.outgoing and seen.digest:
                    self._ledger.note_place(owner, seen.digest, seen.message_id, seen.thread_id)
                self._ledger.note_seen(owner, seen)

    def _said(self, page: ReadPage, asked: MailRequest) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if self._device.problem:
            said["problem"] = self._device.problem
        if page.refused:
            again = " They count as read now; msg_thread shows them again." if asked.marks else ""
            said["not_shown"] = page.refused
            said["note"] = (
                f"{page.refused} of these messages could not be opened or verified; each says "
                f"why.{again} msg_delete_message removes one permanently."
            )
        return said
