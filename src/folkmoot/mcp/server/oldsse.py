"""HTTP with Server-Sent Events as it was in the protocol's first version, 2024-11-05.

GET opens the stream, whose first event says where to POST what the client has to say. The
conversation is as long as the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote

from folkmoot.core.errors import MethodNotAllowed, SessionRequired
from folkmoot.core.message import encode_message
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId
from folkmoot.mcp.server.fronts import Front, FrontCarrier, Serve
from folkmoot.mcp.server.heads import check_json, check_listener
from folkmoot.mcp.server.responses import say, write_events
from folkmoot.mcp.server.streams import UNSENT, Stream
from folkmoot.mcp.sse import encode_event

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import TransportContext
    from folkmoot.mcp.server.heads import Head

SESSION: Final = "session_id"
ACCEPTED: Final = 202
VERSION: Final = "2024-11-05"


class OldSseCarrier(FrontCarrier):
    """One stream, and what is posted beside it."""

    def __init__(
        self, session_id: str, clock: Clock, limits: Limits, context: TransportContext
    ) -> None:
        super().__init__(clock, limits, context)
        self.id = session_id
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

    def _ended(self) -> None:
        self.stream.end()


class OldSseFront(Front[OldSseCarrier]):
    """The ASGI application of both addresses; `messages` is where messages go."""

    def __init__(
        self, serve: Serve, clock: Clock, *, messages: str = "/messages", **options: Any
    ) -> None:
        super().__init__(serve, clock, **options)
        self._messages = messages

    async def _answer(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":
            check_listener(head)
            await self._listen(scope, head, receive, send)
        elif scope["method"] == "POST":
            check_json(head)
            await self._post(scope, head, receive, send)
        else:
            raise MethodNotAllowed("This address takes GET or POST.", allow="GET, POST")

    async def _listen(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        carrier = self._open(OldSseCarrier, head)
        path = quote(scope.get("root_path", "").rstrip("/") + self._messages)
        where = encode_event(f"{path}?{SESSION}={carrier.id}".encode(), event_type="endpoint")
        reader = carrier.stream.attach()
        try:
            async with self.watching(receive, reader):
                await write_events(send, reader, where)
        finally:
            carrier.end()

    async def _post(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        named = parse_qs(scope["query_string"].decode("latin-1")).get(SESSION, [])
        if len(named) != 1:
            raise SessionRequired("The address names no session; the stream says which it is.")
        carrier = self._session(named[0])
        message = await self._read(receive, send)
        if message is not None:
            await carrier.take(message, head.transport)
            await say(send, ACCEPTED)
