"""What reading and judging one message costs, against msgspec's untyped decode of the same bytes.

The decode is the floor: nobody who looks into a message can do with less. The goal is that all of
it together, strictness included, costs at most six times that.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec

from benchmarks.measure import Row, best, table
from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.capability import Rights
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.kindcheck import check
from folkmoot.core.kinds import parse
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.message import Request, decode_message
from folkmoot.core.policy import Decision, Principal, Verdict, decide
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import TransportContext
from folkmoot.operations import OPERATIONS, Arguments
from folkmoot.operations.arguments import decode

ALICE = Principal("account-1", "alice")
SESSION = SessionContext.with_id(SessionId("0f8fad5bd9cb469fa16570867728950e"))
TRANSPORT = TransportContext.websocket()
RIGHTS = Rights(
    [
        "chat.*",
        "mcp.notification.notifications/chat/*",
        "mcp.proposal.*",
        "mcp.request.tools/call:files:*",
        "!mcp.request.tools/call:files:remove_*",
    ]
)
untyped = msgspec.json.Decoder().decode


def call(size: int) -> dict[str, Any]:
    """An MCP tool call of about so many bytes, as JSON-RPC."""
    arguments: dict[str, Any] = {"path": "notes/today.md"}
    if size > 200:
        arguments |= {"encoding": "utf-8", "first": 1, "last": 40, "tags": ["notes", "daily"]}
        arguments["reason"] = "to see what is left to do today"
    if size > 1000:
        arguments["lines"] = [
            {"number": n, "text": f"line {n} says nothing new", "done": n % 2 == 0}
            for n in range(size // 62)
        ]
    params = {"name": "files:read_note", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 17, "method": "tools/call", "params": params}


def in_room(payload: dict[str, Any]) -> bytes:
    """The same call as a message of a room."""
    kind = "mcp.request.tools/call:files:read_note"
    sent = {"protocol": "mcpx/v1", "id": "m-0001", "from": "alice", "to": ["files"], "kind": kind}
    return strict.encode({**sent, "payload": payload})


def enveloped(message: Any) -> MessageEnvelope[Any]:
    """A message in its envelope, as a transport makes it."""
    timing = TimingContext(1.0, 2.0)
    direction = MessageDirection.CLIENT_TO_SERVER
    return MessageEnvelope(message, MessageContext(timing, direction, SESSION, TRANSPORT))


def checked(raw: bytes) -> Verdict:
    """Everything: strict decode, envelope, kind check and capability check of a room's message."""
    envelope: MessageEnvelope[McpxMessage] = enveloped(decode_mcpx(raw))
    return decide(ALICE, RIGHTS, envelope.message)


def messages() -> None:
    """The stages for a small and a large message, in both wire forms."""
    for size in 250, 2000:
        raw = in_room(call(size - 125))
        spaced = json.dumps(json.loads(raw)).encode()
        plain = strict.encode(call(size))
        assert checked(raw).decision is Decision.ALLOW
        floor, decoded, with_envelope, everything, loose = best(
            lambda raw=raw: untyped(raw),
            lambda raw=raw: strict.decode(raw),
            lambda raw=raw: enveloped(decode_mcpx(raw)),
            lambda raw=raw: checked(raw),
            lambda raw=spaced: checked(raw),
        )
        table(
            f"A room's message of {len(raw):,} bytes",
            Row("msgspec, untyped decode", floor),
            [
                Row("strict decode", decoded),
                Row("strict decode + envelope", with_envelope),
                Row("strict decode + envelope + kind + capability", everything, goal=6),
                Row(f"the same with white space ({len(spaced):,} bytes)", loose),
            ],
        )
        floor, with_envelope, everything = best(
            lambda raw=plain: untyped(raw),
            lambda raw=plain: enveloped(decode_message(raw)),
            lambda raw=plain: decide(ALICE, RIGHTS, enveloped(decode_message(raw)).message),
        )
        table(
            f"A plain MCP message of {len(plain):,} bytes",
            Row("msgspec, untyped decode", floor),
            [
                Row("strict decode + envelope", with_envelope),
                Row("strict decode + envelope + kind + capability", everything, goal=6),
            ],
        )


def envelopes() -> None:
    """Creating, copying and changing envelopes, against decoding a message."""
    raw = in_room(call(135))
    message = Request(id=1, method="tools/list")
    timing = TimingContext(1.0, 2.0)
    envelope = enveloped(message)
    floor, created, built, copied, changed, extended = best(
        lambda: untyped(raw),
        lambda: MessageEnvelope.new(message, timing),
        lambda: (
            MessageEnvelope.new(message, timing)
            .with_direction(MessageDirection.CLIENT_TO_SERVER)
            .with_session(SESSION)
        ),
        lambda: copy.copy(envelope.context),
        lambda: envelope.with_direction(MessageDirection.SERVER_TO_CLIENT),
        lambda: envelope.with_extension("trace", 1),
    )
    table(
        "Envelopes",
        Row(f"msgspec, untyped decode of {len(raw)} bytes", floor),
        [
            Row("new", created),
            Row("new + with_direction + with_session", built),
            Row("copy of a context", copied, goal=1),
            Row("with_direction", changed, goal=1),
            Row("with_extension", extended),
        ],
    )


def rights() -> None:
    """A verdict costs the same with ten capabilities and with two thousand, for known and new."""
    kind = check(parse("mcp.request.tools/call:tool-5"), call(250) | named("tool-5"), ["files"])
    few, many = (
        Rights([f"mcp.request.tools/call:tool-{n}" for n in range(size)]) for size in (10, 2000)
    )
    made_up = iter(range(10**9))
    floor, large, fresh = best(
        lambda: few.allows(kind),
        lambda: many.allows(kind),
        lambda: many.allows(parse(f"{kind.base}:made-up-{next(made_up)}")),
    )
    table(
        "Verdicts",
        Row("10 capabilities", floor),
        [
            Row("2,000 capabilities", large, goal=1.3),
            Row("2,000 capabilities, a made-up context", fresh),
        ],
    )


def named(tool: str) -> dict[str, Any]:
    """The params that name a tool."""
    return {"params": {"name": tool}}


GIVEN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "msg/send": ({"to": "bob", "body": "Tea at four?"}, {"to": "bob", "body": 7}),
    "msg/inbox": ({"limit": 20, "peek": True, "wait": None}, {"limit": 1_000}),
    "room/read": ({"room": "tea", "after": 7, "kinds": ["chat"]}, {"room": "tea", "after": "x"}),
    "room/propose": (
        {"room": "tea", "method": "tools/call", "params": {"name": "x", "arguments": {"y": [1]}}},
        {"room": "tea", "method": "tools/call", "parms": {}},
    ),
}
"""Arguments that are taken and arguments that are refused, by operation."""


def arguments() -> None:
    """Checking the arguments of an operation, against msgspec alone."""
    for name, (good, bad) in GIVEN.items():
        takes = next(row.takes for row in OPERATIONS if row.name == name)
        plain = {name: value for name, value in good.items() if value is not None}
        floor, taken, told = best(
            lambda takes=takes, plain=plain: msgspec.convert(plain, takes),
            lambda takes=takes, good=good: decode(takes, good),
            lambda takes=takes, bad=bad: refusal(takes, bad),
        )
        goal = None if "params" in good else 3
        table(
            f"Arguments of {name}",
            Row("msgspec, converted", floor),
            [Row("taken", taken, goal=goal), Row("refused with a sentence", told)],
        )


def refusal(takes: type[Arguments], given: dict[str, Any]) -> str:
    """The sentence for arguments that are wrong."""
    try:
        decode(takes, given)
    except e.ArgumentInvalid as error:
        return error.message
    raise AssertionError(given)


def main() -> None:
    """Print every table of the core."""
    messages()
    envelopes()
    rights()
    arguments()


if __name__ == "__main__":
    main()
