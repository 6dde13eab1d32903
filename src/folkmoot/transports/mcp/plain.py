"""What a plain request is: one the SDK would surely accept, and answer without a stream of its own.

Read strictly: whatever is unusual in the head or the body of a request makes it not plain, and
then it is the SDK's to judge, byte for byte as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

if TYPE_CHECKING:
    from starlette.types import Scope

STATELESS = "2026-07-28"
STATELESS_HEADER = STATELESS.encode()

CONTENT_TYPES = frozenset({b"application/json", b"application/json; charset=utf-8"})
JSON, EVENTS = b"application/json", b"text/event-stream"
MATTERING = frozenset(
    {
        b"accept",
        b"content-length",
        b"content-type",
        b"mcp-method",
        b"mcp-name",
        b"mcp-protocol-version",
        b"mcp-session-id",
    }
)
"""The headers that decide; a plain request has each of them at most once."""


class StatelessMeta(Struct, forbid_unknown_fields=True):
    """What a client says of itself with every request of the stateless era."""

    version: Literal["2026-07-28"] = msgspec.field(name="io.modelcontextprotocol/protocolVersion")
    capabilities: Raw = msgspec.field(name="io.modelcontextprotocol/clientCapabilities")
    info: Raw = msgspec.field(name="io.modelcontextprotocol/clientInfo", default=Raw(b""))

    @property
    def claims(self) -> bytes:
        """What it says, as bytes: those of a client that was accepted are accepted again."""
        return b"\0".join((bytes(self.capabilities), bytes(self.info)))


class HandshakeMeta(Struct, forbid_unknown_fields=True):
    """What a request of a session may say; the rest was said when the session was opened."""

    token: str | int | UnsetType = msgspec.field(name="progressToken", default=UNSET)


class _CallParams(Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | None = None


class StatelessCallParams(_CallParams, forbid_unknown_fields=True, kw_only=True):
    """The params of a call in the stateless era."""

    meta: StatelessMeta = msgspec.field(name="_meta")


class HandshakeCallParams(_CallParams, forbid_unknown_fields=True, kw_only=True):
    """The params of a call in a session."""

    meta: HandshakeMeta | UnsetType = msgspec.field(name="_meta", default=UNSET)


class StatelessListParams(Struct, forbid_unknown_fields=True):
    """The params of a listing in the stateless era; there is but one page."""

    meta: StatelessMeta = msgspec.field(name="_meta")


class HandshakeListParams(Struct, forbid_unknown_fields=True):
    """The params of a listing in a session."""

    meta: HandshakeMeta | UnsetType = msgspec.field(name="_meta", default=UNSET)


class _Request(Struct, forbid_unknown_fields=True, tag_field="method"):
    jsonrpc: Literal["2.0"]
    id: str | int


class StatelessCall(_Request, forbid_unknown_fields=True, tag="tools/call"):
    """A tool call in the stateless era."""

    params: StatelessCallParams


class StatelessList(_Request, forbid_unknown_fields=True, tag="tools/list"):
    """A listing of tools in the stateless era."""

    params: StatelessListParams


class HandshakeCall(_Request, forbid_unknown_fields=True, tag="tools/call"):
    """A tool call in a session."""

    params: HandshakeCallParams


class HandshakeList(_Request, forbid_unknown_fields=True, tag="tools/list"):
    """A listing of tools in a session."""

    params: HandshakeListParams = msgspec.field(default_factory=HandshakeListParams)


Stateless: TypeAlias = StatelessCall | StatelessList
Handshake: TypeAlias = HandshakeCall | HandshakeList
Plain: TypeAlias = Stateless | Handshake

_stateless: msgspec.json.Decoder[Stateless] = msgspec.json.Decoder(Stateless)
_handshake: msgspec.json.Decoder[Handshake] = msgspec.json.Decoder(Handshake)


class Head(Struct, frozen=True):
    """The headers of a plain request that decide."""

    version: bytes | None
    method: bytes | None
    name: bytes | None


def read_head(scope: Scope, *, in_session: bool) -> Head | None:
    """The head of a request, if it is plain so far."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in MATTERING:
            if name in found:
                return None
            found[name] = value
        elif name.startswith(b"mcp-"):
            return None
    if (
        scope["method"] != "POST"
        or b"content-length" not in found
        or found.get(b"content-type") not in CONTENT_TYPES
        or not accepts_both(found.get(b"accept", b""))
        or (b"mcp-session-id" in found) is not in_session
    ):
        return None
    return Head(
        found.get(b"mcp-protocol-version"), found.get(b"mcp-method"), found.get(b"mcp-name")
    )


def accepts_both(accept: bytes) -> bool:
    """Whether a client takes both forms of an answer, and says so without weighing them."""
    parts = [part.strip() for part in accept.split(b",")]
    return JSON in parts and EVENTS in parts and b";" not in accept


def read_stateless(head: Head, body: bytes) -> Stateless | None:
    """A plain request of the stateless era, whose headers say what its body says."""
    if head.version != STATELESS_HEADER:
        return None
    try:
        request = _stateless.decode(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(request, StatelessList):
        return request if head.method == b"tools/list" and head.name is None else None
    named = head.name is not None and head.name.decode("latin-1") == request.params.name
    return request if head.method == b"tools/call" and named else None


def read_handshake(head: Head, version: str, body: bytes) -> Handshake | None:
    """A plain request of a session, in the version that was agreed on when it was opened."""
    if head.version not in {None, version.encode()} or head.method or head.name:
        return None
    try:
        return _handshake.decode(body)
    except (ValueError, RecursionError):
        return None
