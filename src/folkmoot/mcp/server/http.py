"""HTTP for clients, in front of a server that speaks something else.

- Streamable HTTP of both eras
- HTTP with Server-Sent Events as it was in the first version of the protocol, 2024-11-05: GET opens
  the stream, whose first event says where to POST what the client has to say. The conversation is
  as long as the stream.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote

from folkmoot.core import errors as e
from folkmoot.core.message import Request, encode_message
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId
from folkmoot.mcp.framing import encode_event
from folkmoot.mcp.server.fronts import Front, FrontCarrier, Serve
from folkmoot.mcp.server.heads import EVENT_ID, check_answerable, check_json, check_listener
from folkmoot.mcp.server.heads import SESSION as SESSION_BYTES
from folkmoot.mcp.server.responses import answer, refuse, say, write_events
from folkmoot.mcp.server.resumable import FIRST_PRIMED, StreamBudget
from folkmoot.mcp.server.session import SessionCarrier
from folkmoot.mcp.server.stateless import StatelessFront
from folkmoot.mcp.server.streams import UNSENT, Stream
from folkmoot.mcp.wire import INITIALIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Receive, Scope, Send

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import TransportContext
    from folkmoot.mcp.server.heads import CarriedHead as Head

METHODS: Final = "DELETE, GET, POST"
ACCEPTED: Final = 202
NO_CONTENT: Final = 204


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
        self._streams = StreamBudget(by_account=False)

    async def _answer(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        method = scope["method"]
        if method == "POST":
            await self._post(head, receive, send)
        elif head.stateless:
            raise e.MethodNotAllowed("Only POST is supported in protocol 2026-07-28.", allow="POST")
        elif method == "GET":
            await self._listen(head, receive, send)
        elif method == "DELETE":
            await self._known(head).leave()
            await say(send, NO_CONTENT)
        else:
            raise e.MethodNotAllowed(f"This address takes {METHODS}.", allow=METHODS)

    async def _post(self, head: Head, receive: Receive, send: Send) -> None:
        check_answerable(head, both=False)
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
        except e.FolkmootError as error:
            await refuse(send, error, message.id)

    async def _ask(self, head: Head, request: Request, receive: Receive, send: Send) -> None:
        opening = request.method == INITIALIZE and SESSION_BYTES not in head.first
        carrier = self._new(head) if opening else self._known(head)
        stream, reader = carrier.ask(request, plain=head.json, events=head.events)
        with self.watching(receive, reader):
            await carrier.take(request, head.transport, opening=opening)
            stream.primed = head.version.value >= FIRST_PRIMED
            await answer(send, stream, reader, headers=_named(carrier))

    async def _listen(self, head: Head, receive: Receive, send: Send) -> None:
        check_listener(head)
        carrier = self._known(head)
        if event_id := head.text(EVENT_ID):
            stream, reader = carrier.resume(event_id)
            first = b""
        else:
            stream, reader = carrier.listen()
            first = stream.first() if head.version.value >= FIRST_PRIMED else b""
        with self.watching(receive, reader):
            stream.begun = True
            await write_events(send, reader, first, _named(carrier))

    def _known(self, head: Head) -> SessionCarrier:
        session_id = head.text(SESSION_BYTES)
        if session_id is None:
            raise e.SessionRequired("The request names no session; one is opened with initialize.")
        return self._session(session_id)

    def _new(self, head: Head) -> SessionCarrier:
        return self._open(partial(SessionCarrier, budget=self._streams), head)


def _named(carrier: SessionCarrier) -> list[tuple[bytes, bytes]]:
    return [(SESSION_BYTES, carrier.id.encode())]


SESSION: Final = "session_id"
VERSION: Final = "2024-11-05"


class OldSseCarrier(FrontCarrier):
    """One SSE stream, and the messages posted beside it."""

    def __init__(
        self, session_id: str, clock: Clock, limits: Limits, context: TransportContext
    ) -> None:
        super().__init__(clock, limits, context)
        self.id = session_id
        self.session = SessionContext(SessionId(session_id), ProtocolVersion(VERSION))
        self.stream = Stream()

    @property
    def attended(self) -> bool:
        """Its one stream is open as long as the client is there."""
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
            raise e.MethodNotAllowed("This address takes GET or POST.", allow="GET, POST")

    async def _listen(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        carrier = self._open(OldSseCarrier, head)
        path = quote(scope.get("root_path", "").rstrip("/") + self._messages)
        where = encode_event(f"{path}?{SESSION}={carrier.id}".encode(), event_type="endpoint")
        reader = carrier.stream.attach()
        try:
            with self.watching(receive, reader):
                await write_events(send, reader, where)
        finally:
            carrier.end()

    async def _post(self, scope: Scope, head: Head, receive: Receive, send: Send) -> None:
        named = parse_qs(scope["query_string"].decode("latin-1")).get(SESSION, [])
        if len(named) != 1:
            raise e.SessionRequired("The address names no session; the stream says which it is.")
        carrier = self._session(named[0])
        message = await self._read(receive, send)
        if message is not None:
            await carrier.take(message, head.transport)
            await say(send, ACCEPTED)
