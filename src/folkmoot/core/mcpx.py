r"""McpxMessage: one message of a room as its sender wrote it, every member recognised and checked.

Members are recognised in the decoded form, so `"\u0073eq"` is `seq`. The payload is never
rewritten: the bytes stay beside the message, and what a gateway adds is added around them.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from folkmoot.core import strict
from folkmoot.core.errors import InvalidEnvelope, UnsupportedProtocol
from folkmoot.core.kinds import Kind, migrate, parse
from folkmoot.core.strict import DEFAULT_LIMITS, Limits

PROTOCOL: Final = "mcpx/v1"
SET_BY_GATEWAY: Final = ("seq", "ts")
"""Members whose value is the gateway's, whatever a sender writes there."""

Identifier: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Identifiers: TypeAlias = Annotated[tuple[Identifier, ...], msgspec.Meta(max_length=64)]


class Sent(msgspec.Struct, frozen=True, gc=False):
    """The shape of what a participant may send."""

    kind: str
    protocol: str | None = None
    id: Identifier | None = None
    sender: Identifier | None = msgspec.field(name="from", default=None)
    to: Identifiers | None = ()
    correlation_id: Identifiers | Identifier | None = ()
    """A lone string is accepted, and becomes a list."""
    context: Identifier | None = None
    payload: dict[str, Any] | None = None


class McpxMessage(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A room's message. `sender` is the member `from`; absent lists are empty."""

    kind: Kind
    id: str | None
    sender: str | None
    to: tuple[str, ...]
    correlation_id: tuple[str, ...]
    context: str | None
    payload: dict[str, Any] | None
    members: dict[str, Any]
    """Everything that was sent, unknown members included."""
    raw: bytes

    @property
    def claims(self) -> tuple[str, ...]:
        """The members that cannot be passed on as they were sent.

        They are the gateway's own that the sender filled in, and a kind in its old spelling.
        """
        claimed = tuple(name for name in SET_BY_GATEWAY if name in self.members)
        return claimed if self.members["kind"] == str(self.kind) else ("kind", *claimed)

    def __repr__(self) -> str:
        return f"McpxMessage({self.kind}, id={self.id!r}, sender={self.sender!r}, to={self.to!r})"


def decode_mcpx(
    raw: bytes, limits: Limits = DEFAULT_LIMITS, *, accept_old_spellings: bool = False
) -> McpxMessage:
    """Decode a participant's message; with `accept_old_spellings` old kinds are migrated."""
    members = strict.decode_object(raw, limits)
    try:
        sent = msgspec.convert(members, Sent)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        member = where.rstrip("`")
        raise InvalidEnvelope(f"{member or 'The message'}: {what}.", member=member) from None
    if sent.protocol != PROTOCOL:
        raise UnsupportedProtocol(f'"protocol" must be "{PROTOCOL}".')
    if sent.id is not None and not sent.id.isprintable():
        raise InvalidEnvelope("id: Expected printable characters.", member="id")
    kind = parse(migrate(sent.kind) if accept_old_spellings else sent.kind)
    return McpxMessage(
        kind,
        sent.id,
        sent.sender,
        _listed(sent.to),
        _listed(sent.correlation_id),
        sent.context,
        members.get("payload"),
        members,
        raw,
    )


def _listed(value: tuple[str, ...] | str | None) -> tuple[str, ...]:
    if type(value) is tuple:
        return value
    return () if value is None else (value,)  # type: ignore[return-value]
