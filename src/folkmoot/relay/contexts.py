"""What HTTP says of an exchange: contexts that are shared, and headers that repeat a message.

A client says the same in every request of a session, and a server in every answer, so whoever
writes a context down does it once. Where an interceptor has made a message another, the headers
that repeat it are put right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.message import Request, Response
from folkmoot.core.transport import Headers, HttpMetadata, TransportContext
from folkmoot.mcp.client.headers import (
    METHOD,
    NAME,
    PARAM,
    VERSION,
    Mirror,
    Path,
    as_text,
    as_value,
    stateless_version,
    value_at,
)
from folkmoot.mcp.server.heads import (
    check_once,
    connection_of,
    passed_on,
    read_head,
    request_of,
    unwrapped,
)

if TYPE_CHECKING:
    from starlette.types import Scope

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.transport import ConnectionInfo

LENGTH: Final = b"content-length"
"""What alone differs between requests that say the same of themselves, and never passes."""
MOST: Final = 4096
"""So many are remembered; then all are forgotten, which costs no more than making them anew."""

LONGEST: Final = 4096
"""Headers of more bytes are not remembered: a few clients could fill the memory with them."""


class Contexts:
    """The contexts of one proxy, by what they say."""

    def __init__(self) -> None:
        self._known: dict[Any, TransportContext] = {}
        self._headers: dict[tuple[tuple[bytes, bytes], ...], Headers] = {}

    def headers_of(self, scope: Scope, extra: tuple[str, ...] = ()) -> Headers:
        """The headers of a client's request that pass, and `extra` ones."""
        said = tuple([pair for pair in scope["headers"] if pair[0] != LENGTH])
        known = self._headers.get(said)
        if known is None:
            check_once(read_head(said))
            known = passed_on(said, extra)
            if sum(len(name) + len(value) for name, value in said) <= LONGEST:
                if len(self._headers) >= MOST:
                    self._headers.clear()
                self._headers[said] = known
        return known

    def of_request(self, scope: Scope, headers: Headers) -> TransportContext:
        """The context of a client's request."""
        key = (
            headers.pairs,
            scope["method"],
            scope["path"],
            scope["query_string"],
            scope.get("client"),
        )
        known = self._known.get(key)
        if known is None:
            known = TransportContext(request_of(scope, headers), connection_of(scope))
            self._keep(key, headers, known)
        return known

    def of_answer(
        self,
        asked: HttpMetadata,
        status: int,
        headers: Headers,
        connection: ConnectionInfo | None,
    ) -> TransportContext:
        """The context of a server's answer to a request."""
        over = None if connection is None else connection.connection_id
        key = (headers.pairs, status, asked.method, asked.uri, over)
        known = self._known.get(key)
        if known is None:
            said = HttpMetadata(headers, asked.method, asked.uri, status)
            known = TransportContext(said, connection)
            self._keep(key, headers, known)
        return known

    def _keep(self, key: Any, headers: Headers, context: TransportContext) -> None:
        if sum(len(name) + len(value) for name, value in headers) > LONGEST:
            return
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[key] = context


REPEATED: Final = frozenset({METHOD, NAME, VERSION})

_mirror: Final = Mirror()


def mirrored(
    headers: Headers, message: ProtocolMessage, before: ProtocolMessage | None = None
) -> Headers:
    """The headers of a request that says this now; only the stateless era has any to change.

    `before` is what it said when its client made the headers.
    """
    version = stateless_version(message)
    if version is None or isinstance(message, Response):
        return headers
    kept: Iterator[tuple[str, str]] = (pair for pair in headers if pair[0] not in REPEATED)
    if isinstance(message, Request) and isinstance(before, Request):
        kept = _with_params(kept, _arguments(before), _arguments(message))
    return Headers((*kept, *_mirror.headers(message, version).items()))


def _with_params(
    headers: Iterator[tuple[str, str]], before: Any, now: Any
) -> Iterator[tuple[str, str]]:
    """Headers in which repeated arguments are those of now.

    Which argument a header repeats is told by its value; where several have that value, by its
    name. One that cannot be told stays, and is for the server to judge.
    """
    known = list(_leaves(before))
    for name, value in headers:
        if not name.startswith(PARAM):
            yield name, value
            continue
        paths = [path for path, leaf in known if leaf == unwrapped(value)]
        if len(paths) > 1:
            paths = [path for path in paths if path[-1].lower() == name.removeprefix(PARAM)]
        if len(paths) != 1:
            yield name, value
        elif (text := as_text(value_at(now, paths[0]))) is not None:
            yield name, as_value(text)


def _leaves(arguments: Any) -> Iterator[tuple[Path, str]]:
    """Every argument that a header could repeat, as it would, and where it stands."""
    waiting: list[tuple[Path, Any]] = [((), arguments)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, name), each) for name, each in value.items()]
        elif path and (text := as_text(value)) is not None:
            yield path, text


def _arguments(request: Request) -> Any:
    return request.params.get("arguments") if isinstance(request.params, dict) else None
