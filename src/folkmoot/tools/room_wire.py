"""A room's messages for callers who have no WebSocket: written for them, and shown to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Raw, Struct

from folkmoot.core import chat, strict
from folkmoot.core.mcpx import PROTOCOL

Group: TypeAlias = Literal[
    "chat", "proposal", "request", "response", "presence", "reasoning", "other"
]
GROUP_NAMES: Final[tuple[str, ...]] = get_args(Group)

GROUPS: Final[dict[Group, tuple[str, ...]]] = {
    "chat": ("chat.message", f"mcp.notification.{chat.METHOD}"),
    "proposal": ("mcp.proposal", "mcpx.withdraw", "mcpx.reject", "system.proposal"),
    "request": ("mcp.request", "mcpx.begin"),
    "response": ("mcp.response",),
    "presence": ("system.presence",),
    "reasoning": ("reasoning",),
}
"""Groups of kinds in one word, and how the kinds in each begin."""

CHAT_MEMBERS: Final = ("text", "format", "thread_id", "reply_to", "mentions")


class Heard(Struct, frozen=True, gc=False):
    """A stored message of a room."""

    seq: int
    ts: str
    id: str
    kind: str
    sender: str = msgspec.field(name="from")
    to: tuple[str, ...] = ()
    correlation_id: tuple[str, ...] = ()
    payload: Raw = Raw(b"{}")


_heard = msgspec.json.Decoder(Heard).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode


def heard(raw: bytes | Raw) -> Heard:
    """A stored message, read."""
    return _heard(raw)


def envelope(
    kind: str, payload: dict[str, Any], *, to: Iterable[str] = (), about: str | None = None
) -> bytes:
    """A message to a room, as its sender writes it; the gateway adds the rest."""
    members: dict[str, Any] = {"protocol": PROTOCOL, "kind": kind}
    if to:
        members["to"] = to
    if about is not None:
        members["correlation_id"] = [about]
    return strict.encode({**members, "payload": payload})


def group_of(kind: str) -> Group:
    """The group a kind is in."""
    for name, beginnings in GROUPS.items():
        if any(kind == it or kind.startswith(f"{it}.") for it in beginnings):
            return name
    return "other"


def shown(message: Heard) -> dict[str, Any]:
    """A message in the few words a model needs: of chat what was said, else the payload."""
    told: dict[str, Any] = {
        "seq": message.seq,
        "ts": message.ts,
        "from": message.sender,
        "kind": message.kind,
        "id": message.id,
    }
    if message.to:
        told["to"] = message.to
    if message.correlation_id:
        told["correlation_id"] = message.correlation_id
    if group_of(message.kind) != "chat":
        return {**told, "payload": message.payload}
    payload = _object(message.payload)
    said = payload["params"] if "jsonrpc" in payload else payload
    return told | {name: said[name] for name in CHAT_MEMBERS if said.get(name) is not None}
