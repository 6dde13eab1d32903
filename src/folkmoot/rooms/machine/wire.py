"""A room's messages as bytes: stamped once, and the same bytes for everyone.

What the gateway adds stands in front of what the sender wrote. Only where a member must be
replaced is the envelope put together anew, and even then out of the sender's own bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.mcpx import PROTOCOL, SET_BY_GATEWAY, McpxMessage
from folkmoot.core.strict import Limits
from folkmoot.rooms.limits import MAX_SHOWN_KIND
from folkmoot.rooms.machine.model import GATEWAY

_BRACE: Final = ord("{")
_NULLABLE: Final = ("id", "from", "to", "correlation_id", "context")
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode

LARGE: Final = 65_536
"""Bytes of a message that is not copied twice."""


class Stamper:
    """Writes `seq` and `ts`; the text of the present moment is kept."""

    __slots__ = ("_begins", "_ends", "_member", "_second", "_text")

    def __init__(self) -> None:
        self._begins = self._ends = -1.0
        self._member = ""
        self._second = -1
        self._text = ""

    def ts(self, now: float) -> str:
        """A moment as RFC 3339 writes it, in UTC, to the millisecond."""
        second, milliseconds = divmod(int(now * 1000), 1000)
        if second != self._second:
            self._text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._second = second
        return f"{self._text}.{milliseconds:03d}Z"

    def moment_member(self, now: float) -> str:
        """The member `ts` of a moment, with the commas around it."""
        if not self._begins <= now < self._ends:
            self._begins = int(now * 1000) / 1000
            self._ends = self._begins + 0.001
            self._member = f',"ts":"{self.ts(now)}",'
        return self._member

    def stamp(
        self,
        message: McpxMessage,
        seq: int,
        now: float,
        sender: str,
        fresh_id: str | None,
        to: Sequence[str] | None = None,
    ) -> bytes:
        """An accepted message as everyone receives it.

        `sender` is the member `from` with its comma, `fresh_id` the id where the message has none,
        and `to` what stands in place of the message's own, if anything.
        """
        member = self.moment_member(now)
        said_by = sender if message.sender is None else ""
        named = "" if fresh_id is None else f'"id":"{fresh_id}",'
        head = f'{{"seq":{seq}{member}{said_by}{named}'.encode()
        if to is not None:
            return head + b'"to":%b,' % _encode(to) + _rest(message, drop_to=True)
        if message.verbatim or not _must_replace(message):
            raw = message.raw
            if len(raw) < LARGE:
                return head + raw[1 if raw[0] == _BRACE else raw.index(b"{") + 1 :]
            return join_large(head, raw)
        return head + _rest(message, drop_to=False)

    def gateway(
        self,
        kind: str,
        id_: str,
        now: float,
        payload: Any,
        *,
        seq: int | None = None,
        sender: str = GATEWAY,
        to: Sequence[str] = (),
        correlation_id: Sequence[str] = (),
    ) -> bytes:
        """A message of the gateway itself, or sent for someone."""
        members: dict[str, Any] = {} if seq is None else {"seq": seq}
        members |= {"ts": self.ts(now), "protocol": PROTOCOL, "id": id_, "from": sender}
        if to:
            members["to"] = to
        members["kind"] = kind
        if correlation_id:
            members["correlation_id"] = correlation_id
        members["payload"] = payload
        return _encode(members)


def join_large(head: bytes, raw: bytes) -> bytes:
    """The head and then the sender's members, which are copied once."""
    return b"".join((head, memoryview(raw)[raw.index(b"{") + 1 :]))


def moment(at: float) -> str:
    """A time as RFC 3339 writes it, to the second."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sender_member(name: str) -> str:
    """The member `from`, ready to be put in front."""
    return f'"from":{_encode(name).decode()},'


def _must_replace(message: McpxMessage) -> bool:
    """Whether the sender's bytes hold a member that cannot stand as it is."""
    members = message.members
    if "seq" in members or "ts" in members or members["kind"] != message.kind.text:
        return True
    if message.correlation_id and type(members["correlation_id"]) is str:
        return True
    return None in members.values() and any(
        name in members and members[name] is None for name in _NULLABLE
    )


def _rest(message: McpxMessage, *, drop_to: bool) -> bytes:
    """The sender's members, each in the sender's bytes, save those that cannot stand."""
    kept: dict[str, Any] = dict(_members(message.raw))
    for name in SET_BY_GATEWAY:
        kept.pop(name, None)
    for name in _NULLABLE:
        if name in kept and bytes(kept[name]) == b"null":
            del kept[name]
    if drop_to:
        kept.pop("to", None)
    if "correlation_id" in kept:
        kept["correlation_id"] = message.correlation_id
    kept["kind"] = message.kind.text
    return _encode(kept)[1:]


def refusal(
    error: e.FolkmootError, kind: str | None, capabilities: Iterable[Any]
) -> dict[str, Any]:
    """The payload of a `system.error`: what went wrong, what was attempted, what is allowed."""
    told = {
        "error": error.code,
        "message": error.message,
        "attempted_kind": kind,
        "your_capabilities": capabilities,
    }
    return {**told, **{name: value for name, value in error.data.items() if name not in told}}


def readable(raw: bytes, limits: Limits) -> tuple[str | None, str | None]:
    """The id and the kind of a message that was refused as a whole, where they can be read."""
    try:
        members = strict.decode_object(raw, limits)
    except e.MessageError:
        return None, None
    id_, kind = members.get("id"), members.get("kind")
    fits = type(id_) is str and 0 < len(id_) <= 128 and id_.isprintable()
    return id_ if fits else None, kind[:MAX_SHOWN_KIND] if type(kind) is str else None
