"""A server that speaks Streamable HTTP, of the handshake era or of the stateless one.

Each request is a POST of its own, and whatever answers it comes in the order of its stream. What
wants no answer is accepted by the server before the next message is sent.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core import errors as e
from folkmoot.core.message import (
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    encode_message,
)
from folkmoot.core.transport import Headers, HttpMetadata, TransportContext
from folkmoot.mcp import wire
from folkmoot.mcp.client.exchange import GetStream, HttpExchange
from folkmoot.mcp.client.headers import Mirror, as_value, stateless_version
from folkmoot.mcp.client.link import JUNK_A_SECOND
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.mcp.client.weblink import OK, SAYS, WebLink
from folkmoot.mcp.wire import answered_id, cancelled_id
from folkmoot.taskgroups import waited

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.ports import Clock
    from folkmoot.mcp.client.connection import HttpAnswer

__all__ = ["HttpLink", "HttpTarget"]

logger = logging.getLogger("folkmoot.proxy")

TELLING: Final = frozenset((wire.INITIALIZE, wire.TOOLS_LIST))
"""Methods whose answers a link learns from."""
MOST_OPEN: Final = 256
"""Requests that a server may have unanswered at once; then the next waits."""
TURN_SECONDS: Final = 30.0
"""How long it waits: an answer the server needs for the others may stand behind it."""
HANDSHAKE_SECONDS: Final = 10.0
"""How long what follows a handshake waits for the session that is opened by it."""
LISTEN_SECONDS: Final = 0.5
"""How long the stream for what the server says by itself is waited for before it is used."""
GOODBYE_SECONDS: Final = 2.0
NO_HEADERS: Final = Headers()


class HttpLink(WebLink):
    """One conversation with a Streamable HTTP server; `options` are those of `WebLink`.

    A server of the handshake era may answer even what was cancelled; with `drop_on_cancel` its
    answer is waited for no longer than it takes to tell it.
    """

    own_streams = True

    def __init__(
        self,
        target: HttpTarget,
        clock: Clock,
        *,
        listen: bool = True,
        drop_on_cancel: bool = False,
        most_open: int = MOST_OPEN,
        **options: Any,
    ) -> None:
        super().__init__(target, clock, **options)
        self.server_session: str | None = None
        self.version: str | None = None
        """The version a handshake has agreed on."""
        self._listen = listen
        self._drop_on_cancel = drop_on_cancel
        self._listening: asyncio.Task[None] | None = None
        self._exchanges: dict[MessageId, HttpExchange] = {}
        self._most_open = most_open
        self._settled = asyncio.Event()
        """Set when an exchange has ended; cleared by who waits for that."""
        self._mirror = Mirror()
        self._stateless: str | None = None
        """The version of the stateless era that was spoken last."""
        self._streams = 0
        self._opener: dict[str, str] = {}

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Send a message; a request is on its way then, everything else is accepted."""
        self.check_open(envelope)
        message = envelope.message
        version = stateless_version(message)
        if type(message) is Request:
            await self._ask(message, self.sender_of(envelope), version)
        elif not self._ends_exchange(message):
            sender = self.sender_of(envelope)
            await self.tell(self._headers_of(message, sender, version), encode_message(message))
            if type(message) is Notification:
                await self._told(message, sender)

    async def _told(self, notice: Notification, sender: dict[str, str]) -> None:
        """The server has accepted a notice."""
        if notice.method == wire.INITIALIZED:
            await self._begin_listening(sender)
        elif self._drop_on_cancel and (cancelled := cancelled_id(notice)) is not None:
            exchange = self._exchanges.get(cancelled)
            if exchange is not None:
                self._abandon(exchange)

    async def _ask(self, request: Request, sender: dict[str, str], version: str | None) -> None:
        if len(self._exchanges) >= self._most_open:
            await self._turn()
        handshake = request.method == wire.INITIALIZE and version is None
        if handshake:
            self._begin_anew(sender)
        if version is not None:
            self._stateless = version
        headers = self._headers_of(request, sender, version)
        exchange = HttpExchange(self, request, sender, headers, stateless=version is not None)
        before = self._exchanges.get(request.id)
        if before is not None:
            # Whoever uses an id again waits for the later answer.
            self._abandon(before)
        self._exchanges[request.id] = exchange
        if handshake:
            exchange.headed = asyncio.Event()
        exchange.begin()
        if exchange.headed is not None:
            await waited(exchange.headed, HANDSHAKE_SECONDS)

    async def _turn(self) -> None:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                while len(self._exchanges) >= self._most_open:
                    self._settled.clear()
                    await self._settled.wait()
        except TimeoutError:
            raise e.TooManyInFlight("The server already has too many open requests.") from None

    def _ends_exchange(self, message: ProtocolMessage) -> bool:
        """Whether a message only says that an answer is not wanted, by which all is done.

        In the stateless era that is said by closing the connection.
        """
        if type(message) is not Notification or message.method != wire.CANCELLED:
            return False
        cancelled = cancelled_id(message)
        exchange = None if cancelled is None else self._exchanges.get(cancelled)
        if exchange is None:
            return self._stateless is not None
        exchange.cancelled = True
        if exchange.stateless:
            self._abandon(exchange)
        return exchange.stateless

    def _abandon(self, exchange: HttpExchange) -> None:
        exchange.cancelled = True
        self.settle(exchange)
        exchange.stop()

    def settle(self, exchange: HttpExchange) -> None:
        """An exchange has its answer, or will have none."""
        if exchange.settled:
            return
        exchange.settled = True
        if self._exchanges.get(exchange.request.id) is exchange:
            del self._exchanges[exchange.request.id]
            self._settled.set()

    def heard(self, exchange: HttpExchange, answer: HttpAnswer) -> None:
        """The head of an answer is there."""
        handshake = exchange.request.method == wire.INITIALIZE and not exchange.stateless
        if handshake and answer.status in OK:
            self.server_session = answer.headers.get(wire.SESSION_HEADER)

    async def deliver(
        self,
        message: ProtocolMessage,
        transport: TransportContext,
        size: int,
        by: HttpExchange | None = None,
    ) -> None:
        """Take a message, whichever stream it came on: that of an exchange, or another."""
        if type(message) is Response:
            exchange = None if message.id is None else self._exchanges.get(message.id)
            if exchange is None:
                self.invalid_messages.note(
                    e.InvalidResponse("An answer came that nobody waits for.")
                )
                return
            if exchange.request.method in TELLING:
                self._learn(exchange, message.result)
            self.settle(exchange)
            if exchange is not by:
                exchange.stop()
            # What came before it is to be heard before it.
            taker = None if self._inbox.held else self.answering
            if taker is not None and taker(message, transport):
                return
        tag = None if by is None else by.request.id
        await self._inbox.put(self.envelope_of(message, transport), size, tag)

    async def fail(
        self, exchange: HttpExchange, error: e.FolkmootError, transport: TransportContext | None
    ) -> None:
        """Answer a request whose server does not."""
        self.settle(exchange)
        answer = self.answer_for(error, exchange.request.id)
        await self._inbox.put(self.envelope_of(answer, transport), 0)

    async def unreadable(self, raw: bytes, error: e.MessageError) -> None:
        """Take note of what is not a message; if it was meant for someone, they are told."""
        self.invalid_messages.note(error)
        message_id = answered_id(raw)
        exchange = None if message_id is None else self._exchanges.get(message_id)
        if exchange is not None:
            words = f"The server's answer cannot be read: {error.message}"
            await self.fail(exchange, e.ServerAnswerInvalid(words), None)
        await asyncio.sleep(min(1.0, len(raw) / JUNK_A_SECOND))

    def _learn(self, exchange: HttpExchange, result: Any) -> None:
        method = exchange.request.method
        if method == wire.INITIALIZE and not exchange.stateless and isinstance(result, dict):
            version = result.get("protocolVersion")
            self.version = as_value(version) if isinstance(version, str) else None
        elif method == wire.TOOLS_LIST and exchange.stateless:
            self._mirror.learn(result)

    def _headers_of(
        self, message: ProtocolMessage, sender: dict[str, str], version: str | None
    ) -> dict[str, str]:
        if version is None and type(message) is Notification:
            version = self._stateless
        if version is not None and not isinstance(message, Response):
            return sender | SAYS | self._mirror.headers(message, version)
        return self.in_session(sender | SAYS)

    def in_session(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers, with those of the session."""
        if self.server_session is not None:
            headers[wire.SESSION_HEADER] = self.server_session
        if self.version is not None:
            headers[wire.VERSION_HEADER] = self.version
        return headers

    def count(self) -> int:
        """The number of the next stream."""
        self._streams += 1
        return self._streams

    async def _begin_listening(self, sender: dict[str, str]) -> None:
        if not self._listen or self._listening is not None or self._stateless is not None:
            return
        listening = GetStream(self, sender)
        self._listening = self.start(listening.run())
        await waited(listening.begun, LISTEN_SECONDS)

    def _begin_anew(self, sender: dict[str, str]) -> None:
        """A handshake starts a session of its own, which whoever asked for it may end."""
        self._opener = sender
        self.server_session = self.version = self._stateless = None
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None

    async def close(self) -> None:
        """End the streams and the session."""
        if self.closed:
            return
        for exchange in tuple(self._exchanges.values()):
            exchange.stop()
        await super().close()
        if self.server_session is None:
            return
        headers = self.in_session(dict(self._opener))
        try:
            async with (
                asyncio.timeout(GOODBYE_SECONDS),
                self.target.ask("DELETE", headers) as answer,
            ):
                logger.debug("ended a session", extra={"status": answer.status})
        except (e.CarryError, TimeoutError):
            logger.debug("a session could not be ended")


class BackendLink(HttpLink):
    """Passes on nothing of a caller's, and wants to know nothing of an answer but its status."""

    def __init__(self, target: HttpTarget, clock: Clock, **options: Any) -> None:
        super().__init__(target, clock, pass_on=False, drop_on_cancel=True, **options)
        self._contexts: dict[int, TransportContext] = {}

    async def send(self, message: ProtocolMessage) -> None:
        """Send a message; a request goes straight on, since nothing of a caller's goes with it."""
        if type(message) is Request and not self.closed:
            await self._ask(message, dict(self._own.pairs), stateless_version(message))
        else:
            await super().send(message)

    def answer_context(self, method: str, answer: HttpAnswer) -> TransportContext:
        """The status of an answer; one object for all that have the same."""
        context = self._contexts.get(answer.status)
        if context is None:
            metadata = HttpMetadata(NO_HEADERS, method, self.target.shown, answer.status)
            context = self._contexts[answer.status] = TransportContext(metadata)
        return context
