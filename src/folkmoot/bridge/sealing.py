"""Sealing: encrypts what is sent before it leaves, and says how it went."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from folkmoot.bridge.boxes import digest, seal
from folkmoot.bridge.calls import (
    Envelope,
    OpenCalls,
    ToolCall,
    answer_in,
    payload_of,
    tool_call,
    with_payload,
)
from folkmoot.bridge.device import Device
from folkmoot.bridge.guarding import PAYLOAD, SENDING
from folkmoot.bridge.hub import SideHub
from folkmoot.bridge.ledger import Ledger
from folkmoot.bridge.letter import new_letter, write_letter
from folkmoot.bridge.modes import BRIDGE, E2E, SERVER_ASSISTED, mark
from folkmoot.bridge.peers import Peers, Recipient
from folkmoot.core.errors import PeerUnknown
from folkmoot.core.message import Response
from folkmoot.core.ports import Clock
from folkmoot.core.verdict import CONTINUE, Modify, Verdict

MOST_PAGES = 5
"""Pages of mail that are looked through for the message that is answered."""


class Sent(msgspec.Struct, frozen=True):
    """A message on its way: for whom, and its box if it was sealed."""

    recipient: Recipient
    digest: str | None


class Sealing:
    """Seals the body of what is sent to whoever has a key; never sends it readable instead."""

    name = "bridge-seal"
    guards = False

    def __init__(
        self, device: Device, peers: Peers, ledger: Ledger, hub: SideHub, clock: Clock
    ) -> None:
        self._device = device
        self._peers = peers
        self._ledger = ledger
        self._hub = hub
        self._clock = clock
        self._open: OpenCalls[Sent] = OpenCalls()

    async def intercept(self, envelope: Envelope) -> Verdict:
        """What is to become of the message."""
        self._open.hear(envelope)
        call = tool_call(envelope)
        if call is not None and call.tool in SENDING:
            return await self._send(call)
        response = answer_in(envelope)
        if response is not None and (sent := self._open.take(response)) is not None:
            return await self._tell(response, sent)
        return CONTINUE

    async def _send(self, call: ToolCall) -> Verdict:
        await self._device.ready()
        recipient = await self._peers.recipient(await self._addressed(call.arguments))
        if recipient.key is None:
            self._open.put(call.request, Sent(recipient, None))
            return CONTINUE
        self._device.check_usable()
        letter = new_letter(
            self._device.handle,
            recipient.handle,
            call.arguments["body"],
            self._clock.now(),
            call.arguments.get("message_id") or call.arguments.get("reply_to"),
        )
        payload = seal(self._device.keys.current, recipient.key, write_letter(letter))
        box = digest(payload)
        await asyncio.to_thread(
            self._ledger.note_sent, self._device.owner, box, recipient.handle, recipient.key
        )
        self._open.put(call.request, Sent(recipient, box))
        arguments = {name: it for name, it in call.arguments.items() if name != "body"}
        arguments[PAYLOAD] = msgspec.structs.asdict(payload)
        return Modify(call.with_arguments(arguments))

    async def _addressed(self, arguments: dict[str, Any]) -> str:
        """The handle a message is for; whose message is answered was seen here, or is looked up."""
        if (to := arguments.get("to")) is not None:
            return str(to)
        message_id = arguments["message_id"]
        seen = await asyncio.to_thread(self._ledger.by_id, self._device.owner, message_id)
        if seen is not None:
            return seen.peer
        cursor: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = await self._hub.call("msg/inbox", peek=True, limit=100, **cursor)
            for message in page.get("messages") or []:
                if isinstance(message, dict) and message.get("id") == message_id:
                    return str(message.get("from_handle"))
            if not page.get("next_cursor"):
                break
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
        mode, note = E2E, sent.recipient.note
        if sent.digest is None:
            mode = SERVER_ASSISTED
            note = (
                f"@{sent.recipient.handle} has no key, so the hub could read this message; it is "
                "stored encrypted there."
            )
        else:
            await self._place(payload, sent.digest)
        if payload.get("to") != sent.recipient.handle:
            note = f"{note} The hub says that it went to another handle.".strip()
        payload["encryption_mode"] = mode
        payload[BRIDGE] = mark(mode, note=note)
        return Modify(with_payload(response, payload))

    async def _place(self, payload: dict[str, Any], box: str) -> None:
        message_id, thread_id = payload.get("message_id"), payload.get("thread_id")
        if isinstance(message_id, str) and isinstance(thread_id, str):
            await asyncio.to_thread(
                self._ledger.note_place, self._device.owner, box, message_id, thread_id
            )
