r"""McpxMessage: one message of a room as its sender wrote it, every member recognised and checked.

Members are recognised in the decoded form, so `"\u0073eq"` is `seq`. The payload is never
rewritten: the bytes stay beside the message, and what a gateway adds is added around them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeAlias, final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.kinds import Kind, migrate, parse
from folkmoot.core.strict import (
    DEFAULT_LIMITS,
    Limits,
    ShallowObject,
    learnt,
)

PROTOCOL: Final = "mcpx/v1"
SET_BY_GATEWAY: Final = ("seq", "ts")
"""Members whose value is the gateway's, whatever a sender writes there."""

Identifier: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Identifiers: TypeAlias = Annotated[tuple[Identifier, ...], msgspec.Meta(max_length=64)]


@learnt
class SentMembers(msgspec.Struct, frozen=True, gc=False):
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


class Common(SentMembers, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What most send: nothing is null or spelled in another way, so reading it once is enough."""

    protocol: Literal["mcpx/v1"]
    to: Identifiers = ()
    correlation_id: Identifiers = ()
    payload: ShallowObject | None = None


_members = msgspec.json.Decoder(dict[str, Any]).decode
_read_common = msgspec.json.Decoder(Common).decode


@final
class McpxMessage(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A room's message. `sender` is the member `from`; absent lists are empty."""

    kind: Kind
    id: str | None
    sender: str | None
    to: tuple[str, ...]
    correlation_id: tuple[str, ...]
    context: str | None
    payload: dict[str, Any] | None
    raw: bytes
    verbatim: bool
    """Whether the bytes are known to hold nothing that a gateway would have to change."""

    @property
    def members(self) -> dict[str, Any]:
        """Everything that was sent, unknown members included."""
        return _members(self.raw)

    @property
    def claims(self) -> tuple[str, ...]:
        """The members that cannot be passed on as they were sent.

        They are the gateway's own that the sender filled in, and a kind in its old spelling.
        """
        members = self.members
        claimed = tuple(name for name in SET_BY_GATEWAY if name in members)
        return claimed if members["kind"] == self.kind.text else ("kind", *claimed)

    def __repr__(self) -> str:
        return f"McpxMessage({self.kind}, id={self.id!r}, sender={self.sender!r}, to={self.to!r})"


def decode_mcpx(
    raw: bytes,
    limits: Limits = DEFAULT_LIMITS,
    accept_old_spellings: bool = False,  # noqa: FBT001, FBT002 - by name it would cost more
) -> McpxMessage:
    """Decode a participant's message; with `accept_old_spellings` old kinds are migrated."""
    # Values are counted once; what is no object, or too large, is refused for that first.
    counted = raw[:1] == b"{" and len(raw) <= limits.message_bytes
    if counted:
        strict.check_amount(raw, limits)
    sent = strict.decode_whole(raw, limits, _read_common, counted=counted)
    if (
        sent is None
        or not (sent.id is None or sent.id.isprintable())
        or (accept_old_spellings and sent.kind != migrate(sent.kind))
    ):
        spell = migrate if accept_old_spellings else str
        return _decode_any(raw, limits, spell, counted=counted)
    kind, to, about = parse(sent.kind), sent.to, sent.correlation_id
    return McpxMessage(
        kind, sent.id, sent.sender, to, about, sent.context, sent.payload, raw, verbatim=True
    )


def _decode_any(
    raw: bytes, limits: Limits, spell: Callable[[str], str], *, counted: bool
) -> McpxMessage:
    """Decode a message of which nothing is known yet, and say what is wrong with it."""
    try:
        sent = msgspec.convert(strict.decode_object(raw, limits, counted=counted), SentMembers)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        member = where.rstrip("`")
        raise e.InvalidEnvelope(f"{member or 'The message'}: {what}.", member=member) from None
    if sent.protocol != PROTOCOL:
        raise e.UnsupportedProtocol(f'"protocol" must be "{PROTOCOL}".')
    if sent.id is not None and not sent.id.isprintable():
        raise e.InvalidEnvelope("id: Expected printable characters.", member="id")
    kind, to, about = parse(spell(sent.kind)), sent.to or (), sent.correlation_id or ()
    if isinstance(about, str):
        about = (about,)
    return McpxMessage(
        kind, sent.id, sent.sender, to, about, sent.context, sent.payload, raw, verbatim=False
    )
