"""Streamable HTTP for clients, in front of a server that speaks something else: both eras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.errors import FolkmootError, MethodNotAllowed, SessionNotFound, SessionRequired
from folkmoot.core.message import Request
from folkmoot.mcp.server.fronts import Front, Serve
from folkmoot.mcp.server.heads import check_answerable, check_json, check_listener
from folkmoot.mcp.server.responses import answer, refuse, say, write_events
from folkmoot.mcp.server.session import SessionCarrier
from folkmoot.mcp.server.stateless import StatelessFront
from folkmoot.mcp.wire import INITIALIZE, SESSION_HEADER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Receive, Scope, Send

    from folkmoot.core.ports import Clock
    from folkmoot.mcp.server.heads import Head
    from folkmoot.mcp.server.streams import Stream

METHODS: Final = "DELETE, GET, POST"
FIRST_PRIMED: Final = "2025-11-25"
"""The first version whose clients understand an event without data."""
ACCEPTED, NO_CONTENT = 202, 204


class HttpFront(Front[SessionCarrier]):
    """The ASGI application at `/mcp`.

    `serve` gets a `SessionCarrier` for each session and one carrier for all clients of the
    stateless era that say the same in the headers `apart` names.
    """

    def __init__(
        self, serve: Serve, clock: Clock, *, apart: Sequence[str] = (), **options: Any
    ) -> None:
        super().__init__(serve, clock, **options)
        self._stateless = StatelessFront(self, clock, self._limits, apart)

    async def _answer(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        method = scope["method"]
        if method == "POST":
            await self._post(head, receive, send)
        elif head.stateless:
            raise MethodNotAllowed("Without sessions there is only POST.", allow="POST")
        elif method == "GET":
            await self._listen(head, receive, send)
        elif method == "DELETE":
            self._known(head).end(SessionNotFound("The session has ended."))
            await say(send, NO_CONTENT)
        else:
            raise MethodNotAllowed(f"This address takes {METHODS}.", allow=METHODS)

    async def _post(self, head: Head, receive: Receive, send: Send) -> None:
        check_answerable(head)
        check_json(head)
        message = await self._read(receive, send)
        if message is None:
            return
        if head.stateless:
            await self._stateless.post(head, message, receive, send)
            return
        if not isinstance(message, Request):
            carrier = self._known(head)
            await carrier.take(message, head.transport)
            carrier.cancelled(message)
            await say(send, ACCEPTED, headers=_named(carrier))
            return
        try:
            await self._ask(head, message, receive, send)
        except FolkmootError as error:
            await refuse(send, error, message.id)

    async def _ask(self, head: Head, request: Request, receive: Receive, send: Send) -> None:
        opening = request.method == INITIALIZE and head.session is None
        carrier = self._open(SessionCarrier, head) if opening else self._known(head)
        stream, reader = carrier.ask(request, plain=head.json, events=head.events)
        async with self.watching(receive, reader):
            await carrier.take(request, head.transport, opening=opening)
            first = _first(head, stream)
            await answer(send, stream, reader, first=first, headers=_named(carrier))

    async def _listen(self, head: Head, receive: Receive, send: Send) -> None:
        check_listener(head)
        carrier = self._known(head)
        if head.last_event_id:
            stream, reader = carrier.resume(head.last_event_id)
            first = b""
        else:
            stream, reader = carrier.listen()
            first = _first(head, stream)
        async with self.watching(receive, reader):
            stream.begun = True
            await write_events(send, reader, first, _named(carrier))

    def _known(self, head: Head) -> SessionCarrier:
        if head.session is None:
            raise SessionRequired("The request names no session; one is opened with initialize.")
        return self._session(head.session)


def _named(carrier: SessionCarrier) -> list[tuple[bytes, bytes]]:
    return [(SESSION_HEADER.encode(), carrier.id.encode())]


def _first(head: Head, stream: Stream) -> bytes:
    return stream.first() if head.version.value >= FIRST_PRIMED else b""
