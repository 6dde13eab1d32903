"""Telling: what the client hears of tools and profiles, with what the bridge knows about them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from folkmoot.bridge.boxes import fingerprint
from folkmoot.bridge.calls import (
    MAIL,
    CallInterceptor,
    Envelope,
    answer_in,
    canonical,
    payload_of,
    tool_call,
    with_payload,
)
from folkmoot.bridge.device import Device
from folkmoot.bridge.guarding import HIDDEN, KNOWN, PAGES, SENDING
from folkmoot.bridge.ledger import Ledger
from folkmoot.bridge.marking import Marker
from folkmoot.bridge.modes import BRIDGE
from folkmoot.bridge.peers import plain_handle
from folkmoot.core.errors import AnswerInvalid
from folkmoot.core.message import Request, Response, replace
from folkmoot.core.verdict import CONTINUE, Block, Modify, Verdict
from folkmoot.mcp.wire import TOOLS_LIST
from folkmoot.operations.row import WORDS_OF_OTHERS

Teller: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]

LIST: Final = TOOLS_LIST
DESCRIPTIONS: Final = {
    "msg/send": "Send a message to another MMP user. The bridge on this computer encrypts it end "
    "to end if they have a key; `bridge.mode` in the answer says whether it did.",
    "msg/reply": "Reply to a specific message. The bridge on this computer encrypts it end to end "
    "if the other side has a key; `bridge.mode` in the answer says whether it did.",
    "msg/inbox": "Retrieve your recent messages. The bridge on this computer decrypts them; "
    "`bridge.mode` in each says whether it was end-to-end encrypted (e2e), readable to the hub "
    "(server_assisted) or is not shown because it is not what it claims to be (not_verified).",
    "msg/thread": "Read one conversation with the messages of both sides, newest first. The bridge "
    "on this computer decrypts them; `bridge.mode` in each says how it was protected.",
}
PREVIEWS: Final = (
    "The previews and subjects come from the hub; end-to-end encrypted messages have none."
)
INVITES: Final = "The hub can read the message of an invite."
SETTLES: Final = frozenset(("msg/threads", "msg/digest", "msg/open_inbox"))
"""What tells how much is unread, and so waits for what was read to be marked."""


class Telling(CallInterceptor):
    """Describes tools as they are through the bridge, and notes what it knows in some answers."""

    name = "bridge-tell"

    def __init__(self, device: Device, ledger: Ledger, marker: Marker) -> None:
        self._device = device
        self._ledger = ledger
        self._marker = marker
        self._tellers: dict[str, Teller] = {
            "msg/whoami": self._whoami,
            "msg/lookup": self._lookup,
            "msg/change_handle": self._changed,
            "msg/invite": noting(INVITES),
            "msg/threads": noting(PREVIEWS),
            "msg/open_inbox": noting(PREVIEWS),
        }

    async def judge(self, envelope: Envelope) -> Verdict:
        """What is to become of the message."""
        message, notes = envelope.message, envelope.context.notes
        call = tool_call(envelope)
        if call is not None:
            if call.tool in SETTLES:
                await self._marker.settled()
            if call.tool in self._tellers:
                notes[self] = call.tool
        elif isinstance(message, Request) and message.method == LIST:
            notes[self] = LIST
        response, about = answer_in(envelope), notes.get(self)
        if response is None or about is None:
            return CONTINUE
        return self._list(response) if about == LIST else await self._tell(response, about)

    def _list(self, response: Response) -> Verdict:
        result = response.result
        if not isinstance(result, dict):
            return CONTINUE
        tools = result.get("tools")
        if not isinstance(tools, list):
            return Block(AnswerInvalid("The hub's list of tools cannot be understood."))
        listed = [described(tool) for tool in tools if offered(tool)]
        return Modify(replace(response, result={**result, "tools": listed}))

    async def _tell(self, response: Response, tool: str) -> Verdict:
        payload = payload_of(response)
        if payload is None:
            return CONTINUE
        payload[BRIDGE] = await self._tellers[tool](payload)
        return Modify(with_payload(response, payload))

    async def _whoami(self, _: dict[str, Any]) -> dict[str, Any]:
        await self._device.ready()
        said: dict[str, Any] = {"device_key": fingerprint(self._device.owner)}
        if self._device.problem:
            said["problem"] = self._device.problem
        return said

    async def _lookup(self, profile: dict[str, Any]) -> dict[str, Any]:
        await self._device.ready()
        handle, key = profile.get("handle"), profile.get("client_public_key") or ""
        pin = None
        if isinstance(handle, str):
            pin = await asyncio.to_thread(
                self._ledger.pin_of, self._device.owner, plain_handle(handle)
            )
        if pin is None:
            return {"key": "never met" if key else "none"}
        pinned = fingerprint(pin.key) if pin.key else "none"
        held = "as pinned" if pin.key == key else "changed"
        return {"key": held, "pinned": pinned, "verified": pin.verified and pin.key == key}

    async def _changed(self, _: dict[str, Any]) -> dict[str, Any]:
        await self._device.look_again()
        return {"note": "The bridge knows you by the new handle."}


def noting(note: str) -> Teller:
    """A teller that always says the same."""

    async def tell(_: dict[str, Any]) -> dict[str, Any]:
        return {"note": note}

    return tell


def offered(tool: Any) -> bool:
    """Whether a tool is shown: one for mail that the bridge does not know is not."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return False
    name = canonical(tool["name"])
    return not name.startswith(f"{MAIL}/") or name in KNOWN


def described(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool as it is through the bridge."""
    name = canonical(tool["name"])
    if name in DESCRIPTIONS:
        words = f" {WORDS_OF_OTHERS}" if name in PAGES else ""
        tool = {**tool, "description": DESCRIPTIONS[name] + words}
    schema = tool.get("inputSchema")
    if name not in HIDDEN or not isinstance(schema, dict):
        return tool
    properties = {it: told for it, told in (schema.get("properties") or {}).items()
                  if it not in HIDDEN[name]}  # fmt: skip
    schema = {**schema, "properties": properties}
    if name in SENDING:
        # The choice between a body and a box is the bridge's now.
        schema.pop("oneOf", None)
        schema["required"] = [*schema.get("required", []), "body"]
        if isinstance(properties.get("body"), dict):
            properties["body"] = {"type": "string", "description": "The text of the message."}
    return {**tool, "inputSchema": schema}
