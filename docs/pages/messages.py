"""The tables of `reference/messages.md`: limits, refusals and the members of a room's message."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, get_args

import msgspec

from docs.pages.errors import sentence
from docs.pages.markdown import code, table
from folkmoot.core import errors as e
from folkmoot.core import mcpx
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.message import decode_message
from folkmoot.core.strict import DEFAULT_LIMITS, decode

CALL: Final[dict[str, Any]] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def call(**changes: Any) -> bytes:
    """A plain request with something changed."""
    return json.dumps({**CALL, **changes}).encode()


BYTES: Final = DEFAULT_LIMITS.message_bytes
DEPTH: Final = DEFAULT_LIMITS.nesting

BAD_JSON: Final[tuple[tuple[bytes, str], ...]] = (
    (b" " * (BYTES + 1), f"{BYTES + 1:,} bytes of anything"),
    (b'{"name": "\xff"}', "a byte `ff` in a string"),
    (b'{"name": "Ada"} {}', '`{"name": "Ada"} {}`'),
    (rb'{"name": "\ud83d"}', r'`{"name": "\ud83d"}`'),
    (b'{"a": 1, "b": {"c": 2, "c": 3}}', '`{"a": 1, "b": {"c": 2, "c": 3}}`'),
    (b"[" * (DEPTH + 1) + b"]" * (DEPTH + 1), f"{DEPTH + 1} arrays inside each other"),
    (b'{"n": NaN}', '`{"n": NaN}`'),
    (b'{"n": 1e999}', '`{"n": 1e999}`'),
)

BAD_CALLS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"[]", "`[…]`"),
    (b"7", "`7`"),
    (call(jsonrpc="1.0"), '`"jsonrpc": "1.0"`'),
    (call(id=1.0), '`"id": 1.0`'),
    (call(id=None), '`"id": null`'),
    (call(id=True), '`"id": true`'),
    (call(method=""), '`"method": ""`'),
    (call(params="x"), '`"params": "x"`'),
    (b'{"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}', "both `result` and `error`"),
    (call(result={}), "both `method` and `result`"),
)

BAD_ROOM_MESSAGES: Final[tuple[tuple[bytes, str], ...]] = (
    (b'{"kind": "chat.message"}', "no `protocol`"),
    (b'{"protocol": "mcpx/v1", "kind": "chat.message", "to": 7}', '`"to": 7`'),
)

READERS: Final[tuple[tuple[Callable[[bytes], object], tuple[tuple[bytes, str], ...]], ...]] = (
    (decode, BAD_JSON),
    (decode_message, BAD_CALLS),
    (decode_mcpx, BAD_ROOM_MESSAGES),
)

MEMBERS: Final = {
    "protocol": ("required", "Always `mcpx/v1`."),
    "kind": ("required", "What the message is; see [kinds](kinds.md)."),
    "id": ("printable", "The message's own id. The gateway fills it in when it is absent."),
    "from": ("identifier", "The sender. The gateway fills it in when it is absent."),
    "to": ("identifiers", "Who is meant; absent, `null` or empty means everyone."),
    "correlation_id": ("identifiers or one", "The messages this one belongs to."),
    "context": ("identifier", "What the message is a part of, a thread for example."),
    "payload": ("object", "What is said. It is never rewritten."),
    "seq": ("gateway", "The place of the message in its room."),
    "ts": ("gateway", "The time the gateway took the message."),
}


def limits() -> str:
    return table(
        ["What", "At most"],
        [
            ["bytes of one message", f"{BYTES:,}"],
            ["objects and arrays inside each other", str(DEPTH)],
        ],
    )


def refusals() -> str:
    """Each way in which bytes are no message, with bytes that are none in that way."""
    shown: dict[str, list[str]] = {}
    for read, examples in READERS:
        for raw, what in examples:
            shown.setdefault(refusal(read, raw).code, []).append(what)
    rows = (
        [code(name), sentence(error), ", ".join(shown[name])]
        for name, error in e.ERRORS.items()
        if issubclass(error, e.MessageError)
    )
    return table(["Code", "Meaning", "For example"], rows)


def refusal(read: Callable[[bytes], object], raw: bytes) -> e.MessageError:
    """The error that refuses the bytes."""
    try:
        read(raw)
    except e.MessageError as error:
        return error
    raise AssertionError(f"{raw[:80]!r} is not refused")


def members() -> str:
    """Every member of a room's message."""
    sent = {field.encode_name for field in msgspec.structs.fields(mcpx.SentMembers)}
    if MEMBERS.keys() != sent | {*mcpx.SET_BY_GATEWAY}:
        raise AssertionError("the members of a room's message are not the ones described here")
    rows = ([code(name), SHAPES[shape], meaning] for name, (shape, meaning) in MEMBERS.items())
    return table(["Member", "Must be", "Meaning"], rows)


ID_LENGTH: Final = get_args(mcpx.Identifier)[1].max_length
LIST_LENGTH: Final = get_args(mcpx.Identifiers)[1].max_length

SHAPES: Final = {
    "required": "a string; required",
    "identifier": f"a string of 1 to {ID_LENGTH} characters",
    "printable": f"a string of 1 to {ID_LENGTH} printable characters",
    "identifiers": f"a list of at most {LIST_LENGTH} such strings",
    "identifiers or one": f"a list of at most {LIST_LENGTH} such strings, or one of them alone",
    "object": "an object",
    "gateway": "set by the gateway, whatever a sender writes",
}

BLOCKS = {
    "message-limits": limits,
    "message-refusals": refusals,
    "room-message-members": members,
}
