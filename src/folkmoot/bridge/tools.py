"""The hub's tools through the bridge: calls that are refused, and descriptions that change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from folkmoot.bridge.calls import (
    MAIL,
    CallInterceptor,
    Envelope,
    ToolCall,
    answer_in,
    canonical,
    is_call,
    payload_of,
    tool_call,
    with_payload,
)
from folkmoot.bridge.crypto import FORMATS, fingerprint
from folkmoot.bridge.identity import BRIDGE, Device, plain_handle
from folkmoot.bridge.ledger import Ledger
from folkmoot.bridge.reading import Marker
from folkmoot.core import errors as e
from folkmoot.core.message import Request, Response, replace
from folkmoot.core.verdict import CONTINUE, Block, Modify, Verdict
from folkmoot.mcp.wire import TOOLS_LIST
from folkmoot.operations.arguments import check_text, unknown_names
from folkmoot.operations.row import WORDS_OF_OTHERS

PAYLOAD: Final = "encrypted_payload"
DEVICE_KEY: Final = "client_public_key"

SENDING: Final[dict[str, frozenset[str]]] = {
    "msg/send": frozenset(("to", "body", "priority", "reply_to", "idempotency_key")),
    "msg/reply": frozenset(("message_id", "body", "priority", "idempotency_key")),
}
"""What a call that sends mail may hold. Anything else could be words for the hub to read."""
PAGES: Final = frozenset(("msg/inbox", "msg/thread"))
OTHERS: Final = frozenset((
    "msg/register", "msg/recover", "msg/whoami", "msg/set_profile", "msg/change_handle",
    "msg/delete_account", "msg/delete_message", "msg/threads", "msg/digest", "msg/delete_thread",
    "msg/mark_read", "msg/archive", "msg/star", "msg/mute", "msg/contacts", "msg/add_contact",
    "msg/remove_contact", "msg/lookup", "msg/search_users", "msg/block", "msg/blocks", "msg/invite",
    "msg/open_inbox",
))  # fmt: skip
"""What else there is in mail, and neither takes nor shows what was sealed."""
KNOWN: Final = frozenset((*SENDING, *PAGES, *OTHERS))
HIDDEN: Final[dict[str, tuple[str, ...]]] = {
    "msg/send": (PAYLOAD,),
    "msg/reply": (PAYLOAD,),
    "msg/set_profile": (DEVICE_KEY, FORMATS),
    "msg/register": (DEVICE_KEY,),
}
"""Arguments that are the bridge's to give."""
WITHIN: Final = "folkmoot/call_tool"
"""Calls another tool; a call of mail inside of it would pass the bridge by."""


NO_CALL: Final = e.BlockedByInterceptor("A call of a tool must be a request that names the tool.")
NOT_ASKED: Final = e.AnswerInvalid("The hub answers what it was not asked, so it is not shown.")


class CallGuard(CallInterceptor):
    """Stops calls that would pass the bridge by, or set another key than the device's.

    It also stops answers to what it has not seen asked: nobody would open or check them.
    """

    name = "bridge-guard"

    def __init__(self, device: Device) -> None:
        self._device = device

    async def judge(self, envelope: Envelope) -> Verdict:
        """What is to become of the message."""
        call, notes = tool_call(envelope), envelope.context.notes
        if isinstance(envelope.message, Request):
            notes[self] = True
        elif (response := answer_in(envelope)) is not None:
            unknown = response.id is not None and self not in notes
            return Block(NOT_ASKED) if unknown else CONTINUE
        if call is None:
            return Block(NO_CALL) if is_call(envelope) else CONTINUE
        if call.tool == WITHIN:
            return self._within(call.arguments.get("name"))
        if not call.tool.startswith(f"{MAIL}/"):
            return CONTINUE
        if call.tool not in KNOWN:
            return Block(
                e.BlockedByInterceptor(
                    "The bridge does not know this tool, so it cannot keep mail secret in it."
                )
            )
        if call.tool in SENDING:
            check_sending(call)
        elif call.tool in HIDDEN:
            await self._check_key(call)
        return CONTINUE

    def _within(self, inner: Any) -> Verdict:
        if isinstance(inner, str) and not canonical(inner).startswith(f"{MAIL}/"):
            return CONTINUE
        return Block(e.BlockedByInterceptor("Call the tools for mail by themselves on the bridge."))

    async def _check_key(self, call: ToolCall) -> None:
        told = {name: call.arguments.get(name) for name in HIDDEN[call.tool]}
        given = {name: value for name, value in told.items() if value is not None}
        if not given:
            return
        await self._device.ready()
        if given != {DEVICE_KEY: self._device.owner} or call.tool == "msg/register":
            raise e.BlockedByInterceptor(
                "The bridge holds the key of this device and publishes it itself; leave out "
                f"{' and '.join(given)}. 'folkmoot bridge key' shows and changes it."
            )


def check_sending(call: ToolCall) -> None:
    """Refuse a call that sends anything but a body that can be sealed."""
    given = {name: value for name, value in call.arguments.items() if value is not None}
    if PAYLOAD in given:
        raise e.ArgumentInvalid(
            f"The bridge encrypts by itself: give body, and leave out {PAYLOAD}.", field=PAYLOAD
        )
    if unknown := [name for name in call.arguments if name not in SENDING[call.tool]]:
        raise e.ArgumentInvalid(unknown_names("", unknown), field=unknown[0][:40])
    whom = "to" if call.tool == "msg/send" else "message_id"
    if whom not in given:
        raise e.ArgumentInvalid(f"Missing argument: {whom}.", field=whom)
    for name, value in given.items():
        if not isinstance(value, str):
            raise e.ArgumentInvalid(f"{name} must be a string.", field=name)
    if "body" not in given:
        raise e.ContentMissing
    if not given["body"]:
        raise e.ArgumentInvalid("body must not be empty.", field="body")
    check_text(given)


Annotator: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]

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


class ToolDescriptions(CallInterceptor):
    """Describes tools as they work through the bridge, and adds the bridge's notes to answers."""

    name = "bridge-tell"

    def __init__(self, device: Device, ledger: Ledger, marker: Marker) -> None:
        self._device = device
        self._ledger = ledger
        self._marker = marker
        self._tellers: dict[str, Annotator] = {
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
                await self._marker.wait_marked()
            if call.tool in self._tellers:
                notes[self] = call.tool
        elif isinstance(message, Request) and message.method == TOOLS_LIST:
            notes[self] = TOOLS_LIST
        response, about = answer_in(envelope), notes.get(self)
        if response is None or about is None:
            return CONTINUE
        if about == TOOLS_LIST:
            return self._list(response)
        return await self._rewrite_answer(response, about)

    def _list(self, response: Response) -> Verdict:
        result = response.result
        if not isinstance(result, dict):
            return CONTINUE
        tools = result.get("tools")
        if not isinstance(tools, list):
            return Block(e.AnswerInvalid("The hub's list of tools cannot be understood."))
        listed = [described(tool) for tool in tools if offered(tool)]
        return Modify(replace(response, result={**result, "tools": listed}))

    async def _rewrite_answer(self, response: Response, tool: str) -> Verdict:
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


def noting(note: str) -> Annotator:
    """An annotator that always adds the same note."""

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
    """A tool's entry as it works through the bridge."""
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
