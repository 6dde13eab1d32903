"""Guarding: what a client may ask of the hub's mail while the bridge stands for its secrecy."""

from __future__ import annotations

from typing import Any, Final

from folkmoot.bridge.calls import (
    MAIL,
    CallInterceptor,
    Envelope,
    ToolCall,
    answer_in,
    canonical,
    is_call,
    tool_call,
)
from folkmoot.bridge.device import Device
from folkmoot.bridge.letter import FORMATS
from folkmoot.core.errors import (
    AnswerInvalid,
    ArgumentInvalid,
    BlockedByInterceptor,
    ContentMissing,
)
from folkmoot.core.message import Request
from folkmoot.core.verdict import CONTINUE, Block, Verdict
from folkmoot.operations.arguments import check_text, unknown_names

PAYLOAD: Final = "encrypted_payload"
DEVICE_KEY: Final = "client_public_key"

SENDING: Final[dict[str, frozenset[str]]] = {
    "msg/send": frozenset(("to", "body", "priority", "reply_to", "idempotency_key")),
    "msg/reply": frozenset(("message_id", "body", "priority", "idempotency_key")),
}
"""What a call that sends mail may hold. Anything else could be words for the hub to read."""
PAGES: Final = frozenset(("msg/inbox", "msg/thread"))
"""What answers with messages."""
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


NO_CALL: Final = BlockedByInterceptor("A call of a tool must be a request that names the tool.")
NOT_ASKED: Final = AnswerInvalid("The hub answers what it was not asked, so it is not shown.")


class Guarding(CallInterceptor):
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
                BlockedByInterceptor(
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
        return Block(BlockedByInterceptor("Call the tools for mail by themselves on the bridge."))

    async def _check_key(self, call: ToolCall) -> None:
        told = {name: call.arguments.get(name) for name in HIDDEN[call.tool]}
        given = {name: value for name, value in told.items() if value is not None}
        if not given:
            return
        await self._device.ready()
        if given != {DEVICE_KEY: self._device.owner} or call.tool == "msg/register":
            raise BlockedByInterceptor(
                "The bridge holds the key of this device and publishes it itself; leave out "
                f"{' and '.join(given)}. 'folkmoot bridge key' shows and changes it."
            )


def check_sending(call: ToolCall) -> None:
    """Refuse a call that sends anything but a body that can be sealed."""
    given = {name: value for name, value in call.arguments.items() if value is not None}
    if PAYLOAD in given:
        raise ArgumentInvalid(
            f"The bridge encrypts by itself: give body, and leave out {PAYLOAD}.", field=PAYLOAD
        )
    if unknown := [name for name in call.arguments if name not in SENDING[call.tool]]:
        raise ArgumentInvalid(unknown_names("", unknown), field=unknown[0][:40])
    whom = "to" if call.tool == "msg/send" else "message_id"
    if whom not in given:
        raise ArgumentInvalid(f"Missing argument: {whom}.", field=whom)
    for name, value in given.items():
        if not isinstance(value, str):
            raise ArgumentInvalid(f"{name} must be a string.", field=name)
    if "body" not in given:
        raise ContentMissing
    if not given["body"]:
        raise ArgumentInvalid("body must not be empty.", field="body")
    check_text(given)
