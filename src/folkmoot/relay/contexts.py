"""Transport contexts that are shared: exchanges that say the same of themselves have one object.

A client says the same in every request of a session, and a server in every answer, so whoever
writes a context down does it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.transport import HttpMetadata, TransportContext
from folkmoot.mcp.client.headers import REQUEST_HEADERS, allowed, text_of
from folkmoot.mcp.server.heads import check_once, connection_of, request_of

if TYPE_CHECKING:
    from starlette.types import Scope

    from folkmoot.core.transport import ConnectionInfo, Headers

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
            pairs = ((name.decode("latin-1"), text_of(value)) for name, value in said)
            known = allowed(pairs, REQUEST_HEADERS, extra)
            check_once(known)
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
