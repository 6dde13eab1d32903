"""Sealing: encrypts what is sent before it leaves, and says how it went."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from folkmoot.bridge.boxes import digest, seal
from folkmoot.bridge.calls import (
    CallInterceptor,
    Envelope,
    answer_in,
    payload_of,
    tool_call,
    with_payload,
)
from folkmoot.bridge.device import Device
from folkmoot.bridge.guarding import PAYLOAD, SENDING
from folkmoot.bridge.hub import SideHub
from folkmoot.bridge.ledger import Ledger, Seen
from folkmoot.bridge.letter import new_letter, write_letter
from folkmoot.bridge.modes import BRIDGE, E2E, SERVER_ASSISTED, mark
from folkmoot.bridge.peers import Peers, Recipient
from folkmoot.core.errors import ArgumentInvalid, MessageNotFound, PeerUnknown
from folkmoot.core.message import Response
from folkmoot.core.ports import Clock
from folkmoot.core.uuids import is_beginning
from folkmoot.core.verdict import CONTINUE, Modify, Verdict

MOST_PAGES: Final = 5
"""Pages of mail that are looked through for the message that is answered."""


class Sent(msgspec.Struct, frozen=True):
    """A message on its way: for whom, and its box if it was sealed."""

    recipient: Recipient
    digest: str | None
    retried: bool = False
    """Whether it may be a message again that was sent before."""


class Sealing(CallInterceptor):
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
            return await self._tell(response, sent)
        return CONTINUE

    async def _sealed(self, given: dict[str, Any]) -> tuple[dict[str, Any], Sent]:
        """The arguments of a call as they leave."""
        await self._device.ready()
        to = given.get("to")
        if to is None:
            answered = await self._answered(given["message_id"])
            to, given["message_id"] = answered.peer, answered.message_id
        recipient = await self._peers.recipient(to)
        if recipient.key is None:
            return given, Sent(recipient, None)
        self._device.check_usable()
        content = self._content(recipient, given)
        payload = seal(self._device.keys.current, recipient.key, content)
        box = digest(payload)
        await asyncio.to_thread(
            self._ledger.note_sent, self._device.owner, box, recipient.handle, recipient.key
        )
        del given["body"]
        given[PAYLOAD] = msgspec.structs.asdict(payload)
        return given, Sent(recipient, box, retried="idempotency_key" in given)

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

    async def _answered(self, message_id: str) -> Seen:
        """The message that is answered, by its id or the beginning of it.

        It was seen here, or is looked up among the latest ones.
        """
        owner, start = self._device.owner, message_id.strip().lower()
        seen = await asyncio.to_thread(self._ledger.by_id, owner, message_id)
        if seen is not None:
            return seen
        if is_beginning(start):
            found = await asyncio.to_thread(self._ledger.beginning, owner, start)
            if len(found) > 1:
                raise ArgumentInvalid(
                    f"Several messages begin with {start}; give more of the id.",
                    field="message_id",
                )
            if found:
                return found[0]
        cursor: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = await self._hub.call("msg/inbox", peek=True, limit=100, **cursor)
            for message in page.get("messages") or []:
                found_id = message.get("id") if isinstance(message, dict) else None
                if isinstance(found_id, str) and is_meant(found_id, message_id, start):
                    sender = str(message.get("from_handle"))
                    return Seen(None, found_id, None, sender, outgoing=False, peer_key="")
            if not page.get("next_cursor"):
                raise MessageNotFound
            cursor = {"cursor": page["next_cursor"]}
        raise PeerUnknown(
            "The bridge does not know whom this would answer: read the message first with "
            "msg_inbox or msg_thread, or write with msg_send.",
            message_id=message_id,
        )

    async def _tell(self, response: Response, sent: Sent) -> Verdict:
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
