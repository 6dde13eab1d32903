"""The headers of a plain request, and what it says of itself in its `_meta`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from folkmoot.mcp.wire import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LEVEL_KEY,
    LEVELS,
    STATELESS_VERSION,
    VERSION_KEY,
)

if TYPE_CHECKING:
    from starlette.types import Scope

STATELESS = STATELESS_VERSION
STATELESS_HEADER = STATELESS.encode()
STATELESS_WRITTEN = b'"%s"' % STATELESS_HEADER

TOKEN_KEY = "progressToken"  # noqa: S105 - it names a request
CLAIMS = frozenset((VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY))
"""The members of `_meta` that a client of the stateless era tells of itself."""
OURS = CLAIMS | {TOKEN_KEY, LEVEL_KEY}
"""The members that are between the client and the hub; all others are for whom it calls."""
RESERVED = "io.modelcontextprotocol/"

CONTENT_TYPES = frozenset({b"application/json", b"application/json; charset=utf-8"})
JSON, EVENTS = b"application/json", b"text/event-stream"
BOTH = frozenset({b"application/json, text/event-stream", b"application/json,text/event-stream"})
"""How most clients say that they take either."""
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

_token: msgspec.json.Decoder[str | int] = msgspec.json.Decoder(str | int)
_level: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_any: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class Head(Struct, frozen=True):
    """The headers of a plain request that decide."""

    version: bytes | None
    method: bytes | None
    name: bytes | None


class Said(Struct, frozen=True):
    """What the `_meta` of a plain request asks for beside the request itself."""

    token: str | int | None = None
    level: str | None = None
    rest: dict[str, Any] | None = None
    """What is meant for whoever is called."""


NOTHING_SAID = Said()


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
    if accept in BOTH:
        return True
    parts = [part.strip() for part in accept.split(b",")]
    return JSON in parts and EVENTS in parts and b";" not in accept


def read_claims(meta: dict[str, Raw] | UnsetType) -> bytes | None:
    """What a client of the stateless era says of itself, as bytes; None if it leaves any out.

    Those of a client that was accepted are accepted again.
    """
    if meta is UNSET or bytes(meta.get(VERSION_KEY, b"")) != STATELESS_WRITTEN:
        return None
    capabilities = meta.get(CAPABILITIES_KEY)
    if capabilities is None:
        return None
    return b"\0".join((bytes(capabilities), bytes(meta.get(CLIENT_KEY, b""))))


def read_meta(meta: dict[str, Raw] | UnsetType, *, stateless: bool) -> Said | None:
    """What the `_meta` of a request says beside who asks; None if it is not plain."""
    if meta is UNSET or (stateless and len(meta) <= len(CLAIMS) and meta.keys() <= CLAIMS):
        return NOTHING_SAID
    try:
        token = _token.decode(meta[TOKEN_KEY]) if TOKEN_KEY in meta else None
        level = _level.decode(meta[LEVEL_KEY]) if stateless and LEVEL_KEY in meta else None
        rest = {
            name: _any.decode(value)
            for name, value in meta.items()
            if name not in OURS and not name.startswith(RESERVED)
        }
    except (ValueError, RecursionError):
        return None
    if level is not None and level not in LEVELS:
        return None
    return Said(token, level, rest or None)
