"""HTTP headers on the way to a server: which of a client's pass, and which repeat a message.

What the tables do not name is held back. In the stateless era headers repeat the protocol version,
the method, the name of what is asked for and, for tools that wish it, some arguments, so that
others need not read the message. What cannot be the value of a header is written in base64.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    Notification,
    ProtocolMessage,
    Request,
    Response,
)
from folkmoot.core.session import Era, ProtocolVersion
from folkmoot.core.transport import Headers
from folkmoot.mcp import wire

TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""What the name of a header may be."""
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
    (wire.PARAM_HEADERS,),
)
"""What a client says of itself and not of one message: kept where the exchange is another one."""

REQUEST_HEADERS: Final = Allowlist(
    CLIENTS_OWN.names | {"accept", "content-type", wire.EVENT_ID_HEADER}, ("mcp-",)
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
    """The headers that may pass, in order; `extra` names more of them."""
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


ANNOTATION: Final = "x-mcp-header"
"""Marks a property of a tool's schema whose value is repeated."""

NAMED_BY: Final = {
    wire.TOOLS_CALL: "name",
    wire.PROMPTS_GET: "name",
    wire.RESOURCES_READ: "uri",
    **dict.fromkeys((wire.TASKS_GET, wire.TASKS_UPDATE, wire.TASKS_CANCEL), "taskId"),
}
"""Which member of the params says what a method is about."""

MOST_TOOLS: Final = 4096
MOST_PARAMS: Final = 64
LONGEST: Final = 4096
"""A longer value is not repeated: a server would refuse the header before it looked at it."""

_PLAIN: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?|")
_WRAPPED: Final = re.compile(r"=\?base64\?.*\?=")
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_MAPS: Final = frozenset({"$defs", "definitions", "patternProperties", "dependentSchemas"})
"""Members of a schema that have schemas by name."""
_DATA: Final = frozenset({"const", "default", "enum", "examples", ANNOTATION})
"""Members of a schema that have no schemas in them."""

Path = tuple[str, ...]


def stateless_version(message: ProtocolMessage) -> str | None:
    """The version a message claims, if it is one of the stateless era."""
    if type(message) is Response or type(message.params) is not dict:
        return None
    meta = message.params.get("_meta")
    version = meta.get(wire.VERSION_KEY) if type(meta) is dict else None
    return version if type(version) is str and _is_stateless(version) else None


@lru_cache(64)
def _is_stateless(version: str) -> bool:
    return ProtocolVersion(version).era is Era.STATELESS


@lru_cache(1024)
def as_value(text: str) -> str:
    """A text as the value of a header."""
    if _PLAIN.fullmatch(text) and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


class Mirror(Entity):
    """Makes the headers of messages, and learns from listings which arguments belong in them."""

    _tools: dict[str, dict[Path, str]] = {}

    def headers(self, message: Request | Notification, version: str) -> dict[str, str]:
        """The headers that repeat a message."""
        made = {wire.VERSION_HEADER: version, wire.METHOD_HEADER: as_value(message.method)}
        params = message.params if isinstance(message.params, dict) else {}
        name = params.get(NAMED_BY.get(message.method, ""))
        if isinstance(name, str):
            made[wire.NAME_HEADER] = as_value(name)
            if message.method == wire.TOOLS_CALL and name in self._tools:
                made |= self._params(name, params.get("arguments"))
        return made

    def learn(self, listing: Any) -> None:
        """Read the tools of a listing."""
        tools = listing.get("tools") if isinstance(listing, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            name = tool.get("name") if isinstance(tool, dict) else None
            if not isinstance(name, str):
                continue
            marked = dict(marked_in(tool.get("inputSchema")))
            if not marked:
                self._tools.pop(name, None)
            elif len(self._tools) < MOST_TOOLS or name in self._tools:
                self._tools[name] = marked

    def marked(self, tool: str) -> dict[Path, str]:
        """The arguments of a tool that headers repeat: their paths and header names."""
        return self._tools.get(tool, {})

    def _params(self, tool: str, arguments: Any) -> dict[str, str]:
        made: dict[str, str] = {}
        for path, token in self.marked(tool).items():
            written = _written(value_at(arguments, path))
            if written is not None:
                made[wire.PARAM_HEADERS + token] = written
        return made


def value_at(arguments: Any, path: Path) -> Any:
    """The argument at a path of properties; None where there is none."""
    value = arguments
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def as_text(value: Any) -> str | None:
    """An argument as a header repeats it, before it is encoded; None for what none can repeat."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:
        # A number of thousands of digits.
        return None


def _written(value: Any) -> str | None:
    text = as_text(value)
    written = None if text is None else as_value(text)
    return written if written is not None and len(written) <= LONGEST else None


def marked_in(schema: Any) -> Iterator[tuple[Path, str]]:
    """The properties a schema marks for headers, with their names; each name once."""
    seen: set[str] = set()
    for path, token, kind in _marks(schema):
        if path and not _fault(token, kind, seen):
            seen.add(token.lower())
            yield path, token.lower()
            if len(seen) == MOST_PARAMS:
                return


def wrong_mark(schema: Any) -> str:
    """What is wrong with the marks of a schema, for which clients must not use its tool.

    Empty if nothing is.
    """
    seen: set[str] = set()
    for path, token, kind in _marks(schema):
        fault = _fault(token, kind, seen) if path else "is not on a property of the arguments"
        if fault:
            return f"{ANNOTATION} {fault}"
        seen.add(token.lower())
    return ""


def _fault(token: Any, kind: Any, seen: Container[str]) -> str:
    if not isinstance(token, str) or not TOKEN.fullmatch(token):
        return "is not the name of a header"
    if not isinstance(kind, str) or kind not in _TYPES:
        return "is on a property that is neither a string, an integer nor a boolean"
    return "names a header twice" if token.lower() in seen else ""


def _marks(schema: Any) -> Iterator[tuple[Path | None, Any, Any]]:
    """Each mark in a schema: the path of its property, the header's name, the property's type.

    The path is None where arguments cannot be found without evaluating the schema.
    """
    open_: list[tuple[Path | None, Any]] = [((), schema)]
    while open_:
        path, node = open_.pop()
        if isinstance(node, list):
            open_.extend((None, each) for each in node)
        if not isinstance(node, dict):
            continue
        if ANNOTATION in node:
            yield path, node[ANNOTATION], node.get("type")
        for keyword, value in node.items():
            if keyword == "properties" and isinstance(value, dict):
                below = value.items()
                open_.extend(
                    (None if path is None else (*path, name), each) for name, each in below
                )
            elif keyword in _MAPS and isinstance(value, dict):
                open_.extend((None, each) for each in value.values())
            elif keyword not in _DATA:
                open_.append((None, value))
