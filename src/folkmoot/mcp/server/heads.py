"""The head of a request to an HTTP front: what it says, and whether it may be served."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.core.errors import (
    BodyTooLarge,
    HeaderMismatch,
    MediaTypeUnsupported,
    NotAcceptable,
    ParamsInvalid,
    VersionMissing,
    VersionUnsupported,
)
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
from folkmoot.mcp.client.headers import (
    METHOD,
    NAME,
    NAMED_BY,
    PARAM,
    REQUEST_HEADERS,
    VERSION,
    VERSION_MEMBER,
    allowed,
    as_text,
    text_of,
    value_at,
)
from folkmoot.mcp.wire import (
    ACCEPT_BOTH,
    CAPABILITIES_KEY,
    EVENT_ID_HEADER,
    EVENT_STREAM,
    LEVELS,
    SESSION_HEADER,
    TOOLS_CALL,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.types import Receive, Scope

    from folkmoot.core.message import Request
    from folkmoot.mcp.client.headers import Mirror, Path

ASSUMED: Final = "2025-03-26"
"""What a client speaks that does not say, as the specification has it."""
SESSION: Final = SESSION_HEADER
JSON: Final = "application/json"
EVENTS: Final = EVENT_STREAM
TAKES_JSON: Final = frozenset({JSON, "application/*", "*/*"})
TAKES_EVENTS: Final = frozenset({EVENTS, "text/*", "*/*"})
ONCE: Final = frozenset({SESSION, VERSION, METHOD, NAME, "authorization", EVENT_ID_HEADER})
"""Headers of which two could be read as either."""

VERSION_BYTES: Final = VERSION.encode()
METHOD_BYTES: Final = METHOD.encode()
NAME_BYTES: Final = NAME.encode()
DECIDING: Final = frozenset({b"accept", b"content-type", VERSION_BYTES, METHOD_BYTES, NAME_BYTES})
PARAM_BYTES: Final = PARAM.encode()
EITHER: Final = frozenset({ACCEPT_BOTH.encode(), ACCEPT_BOTH.replace(" ", "").encode()})
"""How most clients say that they take an answer in either form."""
EXPERIMENTAL: Final = "experimental"
OBJECTS: Final = frozenset(
    {EXPERIMENTAL, "roots", "sampling", "elicitation", "tasks", "extensions"}
)
"""The capabilities that a client may declare, each of which is an object."""

_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(?:\.0{1,15})?")
_WRAPPED: Final = re.compile(r"=\?base64\?(.*)\?=")


class Head(msgspec.Struct, frozen=True):
    """What the headers of a request say."""

    headers: Headers
    transport: TransportContext
    version: ProtocolVersion
    json: bool
    """Whether the client takes an answer as one JSON object."""
    events: bool
    """Whether it takes a stream of events."""
    session: str | None
    last_event_id: str | None

    @property
    def stateless(self) -> bool:
        """Whether the request is of the era that has no sessions."""
        return self.version.era is Era.STATELESS


def read_head(scope: Scope, extra: Sequence[str] = ()) -> Head:
    """Read the head of a request; what no version of the protocol has is refused."""
    pairs = ((n.decode("latin-1"), text_of(v)) for n, v in scope["headers"])
    headers = allowed(pairs, REQUEST_HEADERS, extra)
    check_once(headers)
    found = dict(headers)
    version = ProtocolVersion(found.get(VERSION, ASSUMED))
    if not version.is_known and version.era is not Era.STATELESS:
        raise VersionUnsupported(
            "The header mcp-protocol-version names no version that is spoken here.",
            supported=list(KNOWN_VERSIONS),
            requested=version.value[:64],
        )
    accept = ",".join(headers.get_all("accept"))
    taken = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return Head(
        headers=headers,
        # Without the query, which may hold what opens a door.
        transport=TransportContext(
            HttpMetadata(headers, scope["method"], scope["path"]), connection_of(scope)
        ),
        version=version,
        json=not TAKES_JSON.isdisjoint(taken),
        events=not TAKES_EVENTS.isdisjoint(taken),
        session=found.get(SESSION),
        last_event_id=found.get(EVENT_ID_HEADER),
    )


def check_once(headers: Headers) -> None:
    """What may be said once only is not said twice, lest each reader take another of the two."""
    seen: set[str] = set()
    for name, _ in headers:
        if name in ONCE and name in seen:
            raise HeaderMismatch(f"The header {name} occurs twice.")
        seen.add(name)


def check_answerable(head: Head) -> None:
    """Who asks takes at least one form of answer."""
    if not head.json and not head.events:
        raise NotAcceptable(f"The client must accept {JSON} and {EVENTS}.")


def check_json(head: Head) -> None:
    """A message comes as JSON."""
    kind = (head.headers.get("content-type") or "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise MediaTypeUnsupported(f"A message is sent as {JSON}.")


def check_listener(head: Head) -> None:
    """Who listens takes events."""
    if not head.events:
        raise NotAcceptable(f"The client must accept {EVENTS}.")


def check_mirrored(head: Head, request: Request) -> None:
    """The headers of a request of the stateless era say what the request says."""
    params = request.params if isinstance(request.params, dict) else {}
    meta = params.get("_meta")
    version = meta.get(VERSION_MEMBER) if isinstance(meta, dict) else None
    if version is None:
        raise VersionMissing(f'The request does not say "{VERSION_MEMBER}" in params._meta.')
    _check_same(VERSION, head.version.value, version)
    _check_same(METHOD, head.headers.get(METHOD), request.method)
    name = params.get(NAMED_BY.get(request.method, ""))
    if name is not None:
        _check_same(NAME, unwrapped(head.headers.get(NAME)), name)


def check_params(head: Head, request: Request, mirror: Mirror) -> None:
    """The headers repeat the arguments that the tool's schema marks, and nothing else.

    A tool that was never listed is not known here, and its headers are passed on unchecked.
    """
    params = request.params if isinstance(request.params, dict) else {}
    name = params.get("name")
    if request.method != TOOLS_CALL or not isinstance(name, str):
        return
    check_marked(mirror.marked(name), params.get("arguments"), head.headers)


def check_marked(
    marked: Mapping[Path, str], arguments: Any, headers: Iterable[tuple[str, str]]
) -> None:
    """The headers repeat the arguments that are marked so, each under its token."""
    given: dict[str, list[str]] = {}
    for named, each in headers:
        given.setdefault(named, []).append(each)
    for path, token in marked.items():
        header = PARAM + token
        told = given.get(header, ())
        if len(told) > 1:
            raise HeaderMismatch(f"The header {header} stands there twice.")
        value = value_at(arguments, path)
        meant = None if value is None else as_text(value)
        if meant is not None and not told:
            raise HeaderMismatch(f"The header {header} is missing; {'.'.join(path)} is given.")
        if told and (meant is None or not _repeats(unwrapped(told[0]), value, meant)):
            raise HeaderMismatch(f"The header {header} does not say what the request says.")


class PlainHead(msgspec.Struct, frozen=True):
    """The headers of a request that decide how it is served, as one look at them tells."""

    accept: bytes
    content_type: bytes
    version: str | None
    method: str | None
    name: str | None
    parameters: list[tuple[str, str]]
    """Those that repeat arguments."""
    twice: str
    """One that may stand there once only and does not; empty if there is none."""


def read_plain(headers: Iterable[tuple[bytes, bytes]]) -> PlainHead:
    """Read the headers of a request."""
    found: dict[bytes, bytes] = {}
    parameters: list[tuple[str, str]] = []
    twice = ""
    for name, value in headers:
        if name in DECIDING:
            if name not in found:
                found[name] = value
            elif name == b"accept":
                found[name] += b"," + value
            elif name != b"content-type":
                twice = name.decode("latin-1")
        elif name.startswith(PARAM_BYTES):
            parameters.append((name.decode("latin-1"), text_of(value)))
    version, method = found.get(VERSION_BYTES), found.get(METHOD_BYTES)
    named = found.get(NAME_BYTES)
    return PlainHead(
        found.get(b"accept", b""),
        found.get(b"content-type", b""),
        None if version is None else version.decode("latin-1"),
        None if method is None else method.decode("latin-1"),
        None if named is None else named.decode() if named.isascii() else text_of(named),
        parameters,
        twice,
    )


def check_forms(head: PlainHead) -> None:
    """A message comes as JSON, from a client that takes either form of an answer."""
    kind = head.content_type.partition(b";")[0].strip().lower()
    if kind != JSON.encode():
        raise MediaTypeUnsupported(f"A message is sent as {JSON}.")
    taken = media_types(head.accept)
    if TAKES_JSON.isdisjoint(taken) or TAKES_EVENTS.isdisjoint(taken):
        raise NotAcceptable(f"The client must accept {JSON} and {EVENTS}.")


def check_listening(head: PlainHead) -> None:
    """Who listens takes events."""
    if TAKES_EVENTS.isdisjoint(media_types(head.accept)):
        raise NotAcceptable(f"The client must accept {EVENTS}.")


def media_types(accept: bytes) -> set[str]:
    """What a client takes, however little it likes it."""
    parts = accept.decode("latin-1").split(",")
    return {part.partition(";")[0].strip().lower() for part in parts}


def check_repeated(head: PlainHead, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The `_meta` of a request of the stateless era whose headers say what it says."""
    if head.twice:
        raise HeaderMismatch(f"The header {head.twice} occurs twice.")
    meta = params.get("_meta")
    if type(meta) is not dict or VERSION_MEMBER not in meta or CAPABILITIES_KEY not in meta:
        raise VersionMissing(f'params._meta must have "{VERSION_MEMBER}" and "{CAPABILITIES_KEY}".')
    if head.version != meta[VERSION_MEMBER]:
        raise HeaderMismatch(f"The header {VERSION} does not say what the request says.")
    if head.method != method:
        raise HeaderMismatch(f"The header {METHOD} does not say what the request says.")
    member = NAMED_BY.get(method)
    name = None if member is None else params.get(member)
    if name is not None and head.name != name:
        _check_same(NAME, unwrapped(head.name), name)
    return meta


def claimed(capabilities: Any, client: Any) -> dict[str, Any]:
    """What a client declares that it can be asked for; what nobody asks for is left out."""
    if type(capabilities) is not dict:
        raise ParamsInvalid("The client's capabilities must be an object.")
    for name, value in capabilities.items():
        if name in OBJECTS and type(value) is not dict:
            raise ParamsInvalid(f"The capability {name} must be an object.")
    if client is not None and not (
        type(client) is dict
        and type(client.get("name")) is str
        and type(client.get("version")) is str
    ):
        raise ParamsInvalid("clientInfo must have a name and a version.")
    if EXPERIMENTAL not in capabilities:
        return capabilities
    return {name: value for name, value in capabilities.items() if name != EXPERIMENTAL}


def check_wishes(token: Any, level: Any) -> None:
    """Refuse a progress token or a level that is none."""
    if token is not None and not is_message_id(token):
        raise ParamsInvalid("progressToken must be a string or an integer.")
    if level is not None and level not in LEVELS:
        raise ParamsInvalid(f"The level must be one of {', '.join(LEVELS)}.")


def _repeats(told: str | None, value: Any, meant: str) -> bool:
    """Whether a header says what an argument says; whole numbers may be written as decimals."""
    if told == meant:
        return True
    number = type(value) in (int, float) and told is not None and _DECIMAL.fullmatch(told)
    return bool(number) and float(told or 0) == value


def _check_same(header: str, told: str | None, meant: Any) -> None:
    if told != meant:
        raise HeaderMismatch(f"The header {header} does not say what the request says.")


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
            raise BodyTooLarge(f"A message may have at most {most:,} bytes.", limit=most)
        if not message.get("more_body", False):
            return bytes(body)


def request_of(scope: Scope, headers: Headers) -> HttpMetadata:
    """What a request says of itself, with its headers as far as they are kept."""
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
