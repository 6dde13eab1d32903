"""One session of the handshake era: which of its streams each message of the server's goes to."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    Notification,
    Request,
    Response,
    encode_message,
    is_message_id,
)
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.mcp.carrier import ABOUT
from folkmoot.mcp.server.fronts import (
    ASKED_TOKEN,
    CANCELLED_ID,
    TOLD_TOKEN,
    FrontCarrier,
    UnansweredRequest,
    found,
)
from folkmoot.mcp.server.resumable import ResumableStreams
from folkmoot.mcp.server.streams import UNSENT, Stream, StreamReader, Weight
from folkmoot.mcp.wire import CANCELLED, LOGGED, PROGRESS, refusal

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import MessageId, ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import TransportContext
    from folkmoot.mcp.server.resumable import StreamBudget

logger = logging.getLogger("folkmoot.proxy")

MOST_OPEN: Final = 1024
"""Requests of one session that may be open at once."""
CANCEL_SECONDS: Final = 1.0
"""How long a server may still answer what was cancelled; then its stream is ended for it."""
LEAVE_SECONDS: Final = 1.0
"""How long a client that leaves waits at most for its own open responses to end."""
MOST_UNHEARD: Final = 256
UNHEARD_BYTES: Final = 1024 * 1024
"""What may wait for a stream."""
LOSSES: Final = {PROGRESS: Weight.PROGRESS, LOGGED: Weight.LOG}
"""What may be dropped while nobody reads it."""


class SessionCarrier(FrontCarrier):
    """One session as a carrier for the relay."""

    def __init__(
        self,
        session_id: str,
        clock: Clock,
        limits: Limits,
        context: TransportContext,
        budget: StreamBudget,
    ) -> None:
        super().__init__(clock, limits, context)
        self.id = session_id
        self.session = SessionContext(SessionId(session_id))
        self._streams = ResumableStreams(budget)
        self._general = Stream(listening=True, keeper=self._streams)
        """The stream that answers nothing: the one a client opens with GET."""
        self._tokens: dict[MessageId, MessageId] = {}
        """Which request a progress token belongs to."""
        self._undelivered = Undelivered()
        self._listened = asyncio.Event()

    @property
    def listeners(self) -> int:
        """How many responses to its client are open."""
        streams = (self._general, *(each.stream for each in self._open.values()))
        return sum(stream.reader is not None for stream in streams)

    @property
    def attended(self) -> bool:
        """Whether a stream is being read."""
        return self.listeners > 0

    def ask(self, request: Request, *, plain: bool, events: bool) -> tuple[Stream, StreamReader]:
        """The stream that will answer a request, and its reader."""
        if request.id in self._open:
            raise e.InvalidId("A request with this id is already open.")
        if len(self._open) >= MOST_OPEN:
            raise e.TooManyInFlight("Too many requests of this session are open at once.")
        stream = Stream(plain=plain, events=events, keeper=self._streams)
        reader = stream.attach()
        token = found(request, ASKED_TOKEN)
        if is_message_id(token):
            self._tokens[token] = request.id
        known = token if is_message_id(token) else None
        self._open[request.id] = UnansweredRequest(request.id, stream, known)
        if events and self._general.reader is None:
            self._tell_unheard(stream)
        return stream, reader

    def listen(self) -> tuple[Stream, StreamReader]:
        """The stream that answers nothing, for a client that listens."""
        reader = self._general.attach()
        self._listened.set()
        self._tell_unheard(self._general)
        return self._general, reader

    async def listening(self) -> None:
        """Wait until the client has opened the stream that answers nothing."""
        await self._listened.wait()

    def resume(self, event_id: str) -> tuple[Stream, StreamReader]:
        """The stream that an event belongs to, from there on."""
        stream, place = self._streams.resume(event_id)
        reader = stream.attach(place)
        if stream is self._general:
            self._tell_unheard(stream)
        return stream, reader

    def cancelled(self, message: ProtocolMessage) -> None:
        """See to it that a request ends which the client has cancelled and the server lets be."""
        if isinstance(message, Notification) and message.method == CANCELLED:
            request_id = found(message, CANCELLED_ID)
            asked = self._open.get(request_id) if is_message_id(request_id) else None
            if asked is not None:
                loop = asyncio.get_running_loop()
                loop.call_later(CANCEL_SECONDS, partial(self._give_up, asked))

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Send a message in the stream it belongs to, or keep it until there is one."""
        self.check_way(envelope)
        self.check_open()
        message = envelope.message
        if isinstance(message, Response) and message.id is not None:
            asked = self._open.get(message.id)
            self._answer(message.id, encode_message(message), envelope.context.transport)
            if asked is not None and asked.stream.unsent > UNSENT:
                # A client that reads none of its answers must not have us keep them all.
                await asked.stream.flushed()
            return
        stream = self._stream_for(message, envelope.context.extensions.get(ABOUT))
        if stream is None:
            refusal_of = self._undelivered.keep(envelope)
            if refusal_of is not None:
                self.say(refusal_of)
            return
        method = message.method if isinstance(message, Notification) else ""
        weight = LOSSES.get(method, Weight.QUESTION)
        stream.put(encode_message(message), envelope.context.transport, weight=weight)
        if stream.unsent > UNSENT:
            await stream.room()
            if self.over:
                raise e.TransportClosed("The client has ended the conversation.")

    def _stream_for(self, message: ProtocolMessage, about: MessageId | None) -> Stream | None:
        """The stream of the request that a message is about, else the one there is."""
        if isinstance(message, Notification) and message.method == PROGRESS:
            token = found(message, TOLD_TOKEN)
            about = self._tokens.get(token, about) if is_message_id(token) else about
        asked = None if about is None else self._open.get(about)
        if asked is not None and asked.stream.events:
            return asked.stream
        if self._general.reader is not None:
            return self._general
        for asked in reversed(self._open.values()):
            if asked.stream.events and asked.stream.reader is not None:
                return asked.stream
        return None

    def _answer(self, request_id: MessageId, raw: bytes, said: TransportContext | None) -> None:
        """Answer a request, which is open no longer; the stream is kept if it can be resumed."""
        asked = self._open.pop(request_id, None)
        if asked is None:
            return
        if asked.token is not None:
            self._tokens.pop(asked.token, None)
        stream = asked.stream
        stream.put(raw, said, last=True)
        if not (stream.begun or stream.reader):
            stream.discard()

    def _give_up(self, asked: UnansweredRequest) -> None:
        if self._open.get(asked.id) is asked:
            refused = refusal(asked.id, e.RequestCancelled("The request was cancelled."))
            self._answer(asked.id, encode_message(refused), None)

    async def leave(self) -> None:
        """End the session as its client wishes, once what is open has ended without an answer.

        The client no longer listens for answers, and official ones fail over an error that comes
        while they leave.
        """
        written: list[asyncio.Future[None]] = []
        for asked in list(self._open.values()):
            if asked.stream.events and not asked.stream.done:
                del self._open[asked.id]
                done = asyncio.get_running_loop().create_future()
                written.append(done)
                asked.stream.delivered = partial(done.set_result, None)
                asked.stream.primed = False
                asked.stream.end()
        if written:
            await asyncio.wait(written, timeout=LEAVE_SECONDS)
        self.end(e.SessionNotFound("The session has ended."))

    def _tell_unheard(self, stream: Stream) -> None:
        for envelope in self._undelivered.take():
            stream.put(encode_message(envelope.message), envelope.context.transport)

    def _ended(self) -> None:
        self._general.end()
        self._streams.close()
        self._tokens.clear()
        self._undelivered.take()


class Undelivered(Entity):
    """What the server says while no stream of its client is open, kept until one is.

    When there are too many messages, the oldest notification goes.
    """

    _kept: deque[MessageEnvelope[Any]] = field(default_factory=deque)
    _bytes: int = 0
    _told: bool = False

    def keep(self, envelope: MessageEnvelope[Any]) -> Response | None:
        """Keep a message; a request that there is no room for is answered with what comes back."""
        size = len(encode_message(envelope.message))
        while self._kept and (
            len(self._kept) >= MOST_UNHEARD or self._bytes + size > UNHEARD_BYTES
        ):
            if not self._drop_notification():
                if isinstance(envelope.message, Request):
                    error = e.TooManyInFlight("The client listens to none of its streams.")
                    return refusal(envelope.message.id, error)
                return None
        self._kept.append(envelope)
        self._bytes += size
        return None

    def take(self) -> list[MessageEnvelope[Any]]:
        """All of them, in their order; nothing is kept any more."""
        kept = list(self._kept)
        self._kept.clear()
        self._bytes = 0
        return kept

    def _drop_notification(self) -> bool:
        for place, envelope in enumerate(self._kept):
            if isinstance(envelope.message, Notification):
                del self._kept[place]
                self._bytes -= len(encode_message(envelope.message))
                if not self._told:
                    self._told = True
                    logger.warning("notifications are dropped: a client listens to no stream")
                return True
        return False
