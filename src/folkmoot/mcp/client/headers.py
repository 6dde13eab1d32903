"""Which HTTP headers pass the proxy, as tables: what they do not name is held back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from folkmoot.core.transport import Headers
from folkmoot.mcp.wire import EVENT_ID_HEADER, PARAM_HEADERS

_UNSENDABLE: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
"""What would end a header, or cannot be written in one."""


class Allowlist(msgspec.Struct, frozen=True):
    """Names of headers, whole or by how they begin, in lower case."""

    names: frozenset[str]
    prefixes: tuple[str, ...] = ()


NEVER: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""What belongs to one connection, or to a browser; no option lets these pass."""

TRACING: Final = frozenset(
    {"baggage", "traceparent", "tracestate", "x-correlation-id", "x-request-id"}
)

CLIENTS_OWN: Final = Allowlist(
    frozenset({"accept-language", "authorization", "origin", "user-agent", *TRACING}),
    (PARAM_HEADERS,),
)
"""What a client says of itself and not of one message: kept where the exchange is another one."""

REQUEST_HEADERS: Final = Allowlist(
    CLIENTS_OWN.names | {"accept", "content-type", EVENT_ID_HEADER}, ("mcp-",)
)
"""What passes from a client to the server."""

ANSWER_HEADERS: Final = Allowlist(
    frozenset(
        {
            "allow",
            "cache-control",
            "content-language",
            "content-type",
            "deprecation",
            "link",
            "retry-after",
            "sunset",
            "www-authenticate",
            "x-accel-buffering",
            *TRACING,
        }
    ),
    ("mcp-",),
)
"""What passes from the server to a client."""


def allowed(
    pairs: Iterable[tuple[str, str]], table: Allowlist, extra: Iterable[str] = ()
) -> Headers:
    """The headers that pass, in their order; `extra` names more of them."""
    names = table.names
    more = {name.lower() for name in extra}
    if more:
        names = names | (more - NEVER)
    kept = []
    for name, value in pairs:
        known = name.lower()
        passes = known in names or (known.startswith(table.prefixes) and known not in NEVER)
        if passes and (value.isprintable() or not _UNSENDABLE.search(value)):
            kept.append((known, value))
    return Headers(tuple(kept))


def text_of(value: bytes) -> str:
    """The value of a header as text, in whichever of the two encodings it is written."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def without(headers: Headers, names: Iterable[str]) -> Headers:
    """The headers but these, such as an authorization that is not to be passed on."""
    held = {name.lower() for name in names}
    return Headers(tuple(pair for pair in headers.pairs if pair[0] not in held))
