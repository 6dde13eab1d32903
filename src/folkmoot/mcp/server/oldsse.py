"""HTTP with Server-Sent Events as it was in the protocol's first version, 2024-11-05.

GET opens the stream, whose first event says where to POST what the client has to say. The
conversation is as long as the stream.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, quote

from folkmoot.core.errors import (
    FolkmootError,
    MessageError,
    MethodNotAllowed,
    SessionNotFound,
    SessionRequired,
    TooManyInFlight,
)
from folkmoot.core.message import decode_message, encode_message
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId
from folkmoot.mcp.carrier import PROXY_LIMITS
from folkmoot.mcp.server.carriers import FrontCarrier
from folkmoot.mcp.server.conversations import Conversations, Serve
from folkmoot.mcp.server.heads import check_json, check_listener, read_head, read_limited
from folkmoot.mcp.server.refusals import readable_id
from folkmoot.mcp.server.responses import refuse, say, write_events
from folkmoot.mcp.server.streams import UNSENT, Stream
from folkmoot.mcp.sse import encode_event

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import TransportContext

MOST_STREAMS: Final = 10_000
SESSION_BYTES: Final = 16
SESSION: Final = "session_id"
ACCEPTED: Final = 202
VERSION: Final = "2024-11-05"


class OldSseCarrier(FrontCarrier):
    """One stream, and what is posted beside it."""

    def __init__(
        self, session_id: str, clock: Clock, limits: Limits, context: TransportContext
    ) -> None:
        super().__init__(clock, limits, context)
        self.session = SessionContext(SessionId(session_id), ProtocolVersion(VERSION))
        self.stream = Stream("", resumable=False)

    @property
    def attended(self) -> bool:
        """Its one stream is open for as long as the client is there."""
        return not self.over

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Say a message in the stream."""
        self.check_way(envelope)
        self.check_open()
        self.stream.put(encode_message(envelope.message), envelope.context.transport)
        if self.stream.unsent > UNSENT:
            await self.stream.room()
            self.check_open()

    def _ended(self, error: FolkmootError | None) -> None:  # noqa: ARG002
        self.stream.end()


class OldSseFront:
    """The ASGI application of both addresses. It carries while `running` is entered."""

    def __init__(
        self,
        serve: Serve,
        clock: Clock,
        *,
        limits: Limits = PROXY_LIMITS,
        messages: str = "/messages",
        most: int = MOST_STREAMS,
        headers: Sequence[str] = (),
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._messages = messages
        self._most = most
        self._headers = tuple(headers)
        self._conversations = Conversations(serve)
        self._carriers: dict[str, OldSseCarrier] = {}

    @property
    def sessions(self) -> int:
        """How many streams are open."""
        return len(self._carriers)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Carry conversations while entered; then they are ended."""
        async with self._conversations.running():
            yield

    def stop(self) -> None:
        """End every conversation and stream, so that the server can stop."""
        self._conversations.stop()

    def end(self, session_id: str) -> None:
        """End one conversation, such as one that is idle."""
        carrier = self._carriers.get(session_id)
        if carrier is not None:
            carrier.end(SessionNotFound("The session has ended."))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request: a GET is the stream, a POST a message."""
        try:
            head = read_head(scope, self._headers)
            if scope["method"] == "GET":
                check_listener(head)
                await self._listen(scope, head.transport, receive, send)
            elif scope["method"] == "POST":
                check_json(head)
                await self._post(scope, head.transport, receive, send)
            else:
                raise MethodNotAllowed("This address takes GET or POST.", allow="GET, POST")
        except FolkmootError as error:
            await refuse(send, error)

    async def _listen(
        self, scope: Scope, transport: TransportContext, receive: Receive, send: Send
    ) -> None:
        if len(self._carriers) >= self._most:
            raise TooManyInFlight("Too many streams are open.")
        session_id = secrets.token_hex(SESSION_BYTES)
        carrier = OldSseCarrier(session_id, self._clock, self._limits, transport)
        path = quote(scope.get("root_path", "").rstrip("/") + self._messages)
        where = encode_event(f"{path}?{SESSION}={session_id}".encode(), event_type="endpoint")
        reader = carrier.stream.attach()
        self._conversations.begin(carrier, lambda: self._carriers.pop(session_id, None))
        self._carriers[session_id] = carrier
        try:
            async with self._conversations.watching(receive, reader):
                await write_events(send, reader, where)
        finally:
            carrier.end()

    async def _post(
        self, scope: Scope, transport: TransportContext, receive: Receive, send: Send
    ) -> None:
        named = parse_qs(scope["query_string"].decode("latin-1")).get(SESSION, [])
        if len(named) != 1:
            raise SessionRequired("The address names no session; the stream says which it is.")
        carrier = self._carriers.get(named[0])
        if carrier is None or carrier.over:
            raise SessionNotFound("The session has ended or does not exist.")
        body = await read_limited(receive, self._limits.message_bytes)
        if body is None:
            return
        try:
            message = decode_message(body, self._limits)
        except MessageError as error:
            await refuse(send, error, readable_id(body))
            return
        await carrier.take(message, transport)
        await say(send, ACCEPTED)
