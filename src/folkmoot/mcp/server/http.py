"""Streamable HTTP for clients, in front of a server that speaks something else: both eras."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import (
    FolkmootError,
    MessageError,
    MethodNotAllowed,
    SessionNotFound,
    SessionRequired,
    TooManyInFlight,
)
from folkmoot.core.message import Request, decode_message
from folkmoot.mcp.carrier import PROXY_LIMITS
from folkmoot.mcp.server.conversations import Conversations, Serve
from folkmoot.mcp.server.heads import (
    check_answerable,
    check_json,
    check_listener,
    read_head,
    read_limited,
)
from folkmoot.mcp.server.refusals import readable_id
from folkmoot.mcp.server.responses import answer, refuse, say, write_events
from folkmoot.mcp.server.session import SessionCarrier
from folkmoot.mcp.server.stateless import StatelessFront
from folkmoot.mcp.wire import INITIALIZE, SESSION_HEADER

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.mcp.server.heads import Head
    from folkmoot.mcp.server.streams import Stream

METHODS: Final = "DELETE, GET, POST"
MOST_SESSIONS: Final = 10_000
SESSION_BYTES: Final = 16
FIRST_PRIMED: Final = "2025-11-25"
"""The first version whose clients understand an event without data."""
ACCEPTED, NO_CONTENT = 202, 204


class HttpFront:
    """The ASGI application at `/mcp`. It carries while `running` is entered.

    `serve` gets a `SessionCarrier` for each session and one carrier for all clients of the
    stateless era that say the same in the headers `apart` names; a session ends when `serve`
    returns, when its client says so, or by `end`.
    """

    def __init__(
        self,
        serve: Serve,
        clock: Clock,
        *,
        limits: Limits = PROXY_LIMITS,
        most_sessions: int = MOST_SESSIONS,
        headers: Sequence[str] = (),
        apart: Sequence[str] = (),
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._most = most_sessions
        self._headers = tuple(headers)
        self._conversations = Conversations(serve)
        self._stateless = StatelessFront(self._conversations, clock, limits, apart)
        self._sessions: dict[str, SessionCarrier] = {}

    @property
    def sessions(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._sessions

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Carry conversations while entered; then they are ended."""
        async with self._conversations.running():
            yield

    def stop(self) -> None:
        """End every conversation and stream, so that the server can stop."""
        self._conversations.stop()

    def end(self, session_id: str) -> None:
        """End one session, such as one that is idle."""
        carrier = self._sessions.get(session_id)
        if carrier is not None:
            carrier.end(SessionNotFound("The session has ended."))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            await self._serve(scope, receive, send)
        except FolkmootError as error:
            await refuse(send, error)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        head = read_head(scope, self._headers)
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
        body = await read_limited(receive, self._limits.message_bytes)
        if body is None:
            return
        try:
            message = decode_message(body, self._limits)
        except MessageError as error:
            await refuse(send, error, readable_id(body))
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
        carrier = self._new(head) if opening else self._known(head)
        stream, reader = carrier.ask(request, plain=head.json, events=head.events)
        async with self._conversations.watching(receive, reader):
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
        async with self._conversations.watching(receive, reader):
            stream.begun = True
            await write_events(send, reader, first, _named(carrier))

    def _known(self, head: Head) -> SessionCarrier:
        if head.session is None:
            raise SessionRequired("The request names no session; one is opened with initialize.")
        carrier = self._sessions.get(head.session)
        if carrier is None or carrier.over:
            raise SessionNotFound("The session has ended or does not exist.")
        return carrier

    def _new(self, head: Head) -> SessionCarrier:
        if len(self._sessions) >= self._most:
            raise TooManyInFlight("Too many sessions are open.")
        session_id = secrets.token_hex(SESSION_BYTES)
        carrier = SessionCarrier(session_id, self._clock, self._limits, head.transport)
        self._conversations.begin(carrier, lambda: self._sessions.pop(session_id, None))
        self._sessions[session_id] = carrier
        return carrier


def _named(carrier: SessionCarrier) -> list[tuple[bytes, bytes]]:
    return [(SESSION_HEADER.encode(), carrier.id.encode())]


def _first(head: Head, stream: Stream) -> bytes:
    return stream.first() if head.version.value >= FIRST_PRIMED else b""
