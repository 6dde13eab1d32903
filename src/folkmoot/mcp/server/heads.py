"""The head of an HTTP request: what it says, and whether the request may be served."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.message import is_message_id
from folkmoot.core.session import KNOWN_VERSIONS, Era, ProtocolVersion
from folkmoot.core.transport import (
    ConnectionInfo,
    Headers,
    HttpMetadata,
    SocketAddress,
    TlsInfo,
    TransportContext,
)
from folkmoot.mcp import wire
from folkmoot.mcp.client.headers import (
    NAMED_BY,
    REQUEST_HEADERS,
    allowed,
    as_text,
    text_of,
    value_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.types import Receive, Scope

    from folkmoot.mcp.client.headers import Path

TAKES_JSON: Final = frozenset({wire.JSON, "application/*", "*/*"})
TAKES_EVENTS: Final = frozenset({wire.EVENT_STREAM, "text/*", "*/*"})

SESSION: Final = wire.SESSION_HEADER.encode()
EVENT_ID: Final = wire.EVENT_ID_HEADER.encode()
VERSION_BYTES: Final = wire.VERSION_HEADER.encode()
METHOD_BYTES: Final = wire.METHOD_HEADER.encode()
NAME_BYTES: Final = wire.NAME_HEADER.encode()
PARAM_BYTES: Final = wire.PARAM_HEADERS.encode()
REPEATING: Final = frozenset({VERSION_BYTES, METHOD_BYTES, NAME_BYTES})
"""Headers that repeat what a request of the stateless era says."""
ONCE: Final = frozenset({SESSION, EVENT_ID, b"authorization"}) | REPEATING
"""Headers of which two could be read as either."""
NONE: Final[frozenset[bytes]] = frozenset()
HEAD_KEY: Final = "folkmoot.headers"
"""The member of a request's scope that is its `Head`, once that was read."""
EITHER: Final = frozenset({wire.ACCEPT_BOTH.encode(), wire.ACCEPT_BOTH.replace(" ", "").encode()})
"""How most clients say that they take an answer in either form."""
EXPERIMENTAL: Final = "experimental"
OBJECTS: Final = frozenset(
    {EXPERIMENTAL, "roots", "sampling", "elicitation", "tasks", "extensions"}
)
"""The capabilities that a client may declare, each of which is an object."""

_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(?:\.0{1,15})?")
_WRAPPED: Final = re.compile(r"=\?base64\?(.*)\?=")


class Head(msgspec.Struct, frozen=True):
    """The headers of a request, read in one pass."""

    pairs: Sequence[tuple[bytes, bytes]]
    first: dict[bytes, bytes]
    """Of a header that stands several times the first counts."""
    twice: frozenset[bytes]
    """Those that stand several times."""

    def text(self, name: bytes) -> str | None:
        """What a header says; None where there is none."""
        value = self.first.get(name)
        return None if value is None else text_of(value)

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The headers that repeat arguments."""
        return [
            (name.decode("latin-1"), text_of(value))
            for name, value in self.pairs
            if name.startswith(PARAM_BYTES)
        ]

    @property
    def json(self) -> bool:
        """Whether the client takes an answer as one JSON object."""
        return not TAKES_JSON.isdisjoint(self._taken())

    @property
    def events(self) -> bool:
        """Whether it takes a stream of events."""
        return not TAKES_EVENTS.isdisjoint(self._taken())

    def _taken(self) -> set[str]:
        """The media types a client accepts, at any quality."""
        accept = b",".join(value for name, value in self.pairs if name == b"accept")
        parts = accept.decode("latin-1").split(",")
        return {part.partition(";")[0].strip().lower() for part in parts}


def read_head(pairs: Sequence[tuple[bytes, bytes]]) -> Head:
    """Read the headers of a request."""
    first = dict(reversed(pairs))
    if len(first) == len(pairs):
        return Head(pairs, first, NONE)
    counts = Counter([name for name, _ in pairs])
    return Head(pairs, first, frozenset([name for name, count in counts.items() if count > 1]))


def head_of(scope: Scope) -> Head:
    """The headers of a request, which many ask for and the first reads."""
    head: Head | None = scope.get(HEAD_KEY)
    # An interceptor may have given the request other headers.
    if head is None or head.pairs is not scope["headers"]:
        head = scope[HEAD_KEY] = read_head(scope["headers"])
    return head


class CarriedHead(Head, frozen=True):
    """The head, with the headers that are passed on."""

    headers: Headers
    transport: TransportContext
    version: ProtocolVersion

    @property
    def stateless(self) -> bool:
        """Whether the request is of the era that has no sessions."""
        return self.version.era is Era.STATELESS


def read_carried(scope: Scope, extra: Sequence[str] = ()) -> CarriedHead:
    """Read the head of a request; what no version of the protocol has is refused."""
    head = head_of(scope)
    check_once(head)
    named = head.text(VERSION_BYTES)
    version = ProtocolVersion(wire.ASSUMED_VERSION if named is None else named)
    if not version.is_known and version.era is not Era.STATELESS:
        raise e.VersionUnsupported(
            "The header mcp-protocol-version names no version that is spoken here.",
            supported=list(KNOWN_VERSIONS),
            requested=version.value[:64],
        )
    headers = passed_on(head.pairs, extra)
    # Without the query, which may hold what opens a door.
    transport = TransportContext(
        HttpMetadata(headers, scope["method"], scope["path"]), connection_of(scope)
    )
    return CarriedHead(head.pairs, head.first, head.twice, headers, transport, version)


def passed_on(pairs: Iterable[tuple[bytes, bytes]], extra: Sequence[str] = ()) -> Headers:
    """The headers of a client's request that a server may see, and `extra` ones."""
    told = ((name.decode("latin-1"), text_of(value)) for name, value in pairs)
    return allowed(told, REQUEST_HEADERS, extra)


def check_once(head: Head, once: frozenset[bytes] = ONCE) -> None:
    """What may be said once only is not said twice, lest each reader take another of the two."""
    for name in head.twice & once:
        raise e.HeaderMismatch(f"Duplicate header {name.decode()}.")


def check_json(head: Head) -> None:
    """A message comes as JSON."""
    kind = head.first.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != wire.JSON.encode():
        raise e.MediaTypeUnsupported(f"A message is sent as {wire.JSON}.")


def check_answerable(head: Head, *, both: bool) -> None:
    """Who asks takes at least one form of answer, or `both`."""
    taken = (head.json, head.events)
    if not (all(taken) if both else any(taken)):
        raise e.NotAcceptable(f"The client must accept {wire.JSON} and {wire.EVENT_STREAM}.")


def check_listener(head: Head) -> None:
    """Refuse a listener that does not accept events."""
    if not head.events:
        raise e.NotAcceptable(f"The client must accept {wire.EVENT_STREAM}.")


def check_repeated(
    head: Head, method: str, params: dict[str, Any], needed: frozenset[str]
) -> dict[str, Any]:
    """The `_meta` of a request of the stateless era: it has what is needed, and the headers say
    what the request says.
    """
    if head.twice:
        check_once(head, REPEATING)
    meta = params.get("_meta")
    if type(meta) is not dict or not meta.keys() >= needed:
        named = " and ".join(f'"{key}"' for key in sorted(needed))
        raise e.VersionMissing(f"params._meta must have {named}.")
    first = head.first
    if first.get(VERSION_BYTES, b"").decode("latin-1") != meta[wire.VERSION_KEY]:
        raise e.HeaderMismatch(f"Header {wire.VERSION_HEADER} does not match the request body.")
    if first.get(METHOD_BYTES, b"").decode("latin-1") != method:
        _check_same(wire.METHOD_HEADER, head.text(METHOD_BYTES), method)
    member = NAMED_BY.get(method)
    name = None if member is None else params.get(member)
    if name is not None and first.get(NAME_BYTES, b"").decode("latin-1") != name:
        _check_same(wire.NAME_HEADER, unwrapped(head.text(NAME_BYTES)), name)
    return meta


def check_marked(
    marked: Mapping[Path, str], arguments: Any, headers: Iterable[tuple[str, str]]
) -> None:
    """Check that the headers repeat the marked arguments, each under its name."""
    given: dict[str, list[str]] = {}
    for named, each in headers:
        given.setdefault(named, []).append(each)
    for path, token in marked.items():
        header = wire.PARAM_HEADERS + token
        told = given.get(header, ())
        if len(told) > 1:
            raise e.HeaderMismatch(f"Duplicate header {header}.")
        value = value_at(arguments, path)
        meant = None if value is None else as_text(value)
        if meant is not None and not told:
            raise e.HeaderMismatch(f"The header {header} is missing; {'.'.join(path)} is given.")
        if told and (meant is None or not _repeats(unwrapped(told[0]), value, meant)):
            raise e.HeaderMismatch(f"Header {header} does not match the request body.")


def claimed(capabilities: Any, client: Any) -> dict[str, Any]:
    """The capabilities a client declares, as far as they are used."""
    if type(capabilities) is not dict:
        raise e.ParamsInvalid("The client's capabilities must be an object.")
    for name, value in capabilities.items():
        if name in OBJECTS and type(value) is not dict:
            raise e.ParamsInvalid(f"The capability {name} must be an object.")
    if client is not None and not (
        type(client) is dict
        and type(client.get("name")) is str
        and type(client.get("version")) is str
    ):
        raise e.ParamsInvalid("clientInfo must have a name and a version.")
    if EXPERIMENTAL not in capabilities:
        return capabilities
    return {name: value for name, value in capabilities.items() if name != EXPERIMENTAL}


def check_wishes(token: Any, level: Any) -> None:
    """Refuse a progress token or a level that is none."""
    if token is not None and not is_message_id(token):
        raise e.ParamsInvalid("progressToken must be a string or an integer.")
    if level is not None and level not in wire.LEVELS:
        raise e.ParamsInvalid(f"The level must be one of {', '.join(wire.LEVELS)}.")


def _repeats(told: str | None, value: Any, meant: str) -> bool:
    """Whether a header says what an argument says; whole numbers may be written as decimals."""
    if told == meant:
        return True
    number = type(value) in (int, float) and told is not None and _DECIMAL.fullmatch(told)
    return bool(number) and float(told or 0) == value


def _check_same(header: str, told: str | None, meant: Any) -> None:
    if told != meant:
        raise e.HeaderMismatch(f"Header {header} does not match the request body.")


def unwrapped(value: str | None) -> str | None:
    """The text that a header stands for; None where it stands for none."""
    wrapped = _WRAPPED.fullmatch(value) if value is not None else None
    if wrapped is None:
        return value
    try:
        decoded = base64.b64decode(wrapped[1], validate=True)
        return decoded.decode() if base64.b64encode(decoded).decode() == wrapped[1] else None
    except (binascii.Error, UnicodeDecodeError):
        return None


async def read_limited(receive: Receive, most: int) -> bytes | None:
    """The whole body, or nothing if the client has left before it was whole."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            raise e.BodyTooLarge(f"A message may have at most {most:,} bytes.", limit=most)
        if not message.get("more_body", False):
            return bytes(body)


def request_of(scope: Scope, headers: Headers) -> HttpMetadata:
    """The metadata of a request, with the headers that are kept."""
    query = scope["query_string"].decode("latin-1")
    uri = f"{scope['path']}?{query}" if query else scope["path"]
    return HttpMetadata(headers, scope["method"], uri)


def connection_of(scope: Scope) -> ConnectionInfo:
    """Both ends of the connection; the one of the client tells connections apart."""
    remote, local = _address(scope.get("client")), _address(scope.get("server"))
    tls = TlsInfo("TLS") if scope.get("scheme") == "https" else None
    return ConnectionInfo(str(remote or "unknown"), remote, local, tls)


def _address(pair: tuple[str, int] | None) -> SocketAddress | None:
    return None if pair is None else SocketAddress(pair[0], pair[1] or 0)
