"""The streams of a Streamable HTTP server, over as many connections as they take.

An `HttpExchange` is one request until it is answered; `GetStream` is the stream on which a server
of the handshake era says what nobody asked it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    ErrorObject,
    ProtocolMessage,
    Request,
    Response,
    decode_message,
    encode_message,
    replace,
    same_id,
)
from folkmoot.core.transport import SseMetadata, TransportContext
from folkmoot.mcp.client.connection import HttpAnswer, read_whole
from folkmoot.mcp.client.target import Asking, may_recover, refusal_of
from folkmoot.mcp.client.weblink import LISTENS, OK
from folkmoot.mcp.framing import EventReader, SseEvent
from folkmoot.mcp.wire import (
    EVENT_ID_HEADER,
    EVENT_STREAM,
    INITIALIZE,
    JSON,
    LISTEN,
    SESSION_HEADER,
)
from folkmoot.taskgroups import Eager

if TYPE_CHECKING:
    from folkmoot.core.strict import Limits
    from folkmoot.mcp.client.http import HttpLink

MAX_EMPTY_RECONNECTS: Final = 5
"""Connections in a row that brought nothing, after which a broken stream is given up."""
LINGER_SECONDS: Final = 1.0
"""How long a server may take to end a stream after its answer, so that its connection lives on."""
MOST_REFUSAL: Final = 1024 * 1024


class HttpExchange(Entity):
    """A request, the POST that carries it, and the stream that answers it."""

    link: HttpLink
    request: Request
    sender: dict[str, str]
    headers: dict[str, str]
    stateless: bool
    cancelled: bool = False
    """Whether the client wants no answer any more."""
    settled: bool = False
    """Whether it has one."""
    headed: asyncio.Event | None = None
    """Set once the status of the answer is known, or there is none; if someone waits for it."""
    _task: asyncio.Task[None] | None = None
    _eager: Eager[None] | None = None
    """The exchange before it needs a task: one whose answer comes in one piece never does."""
    _transport: TransportContext | None = None
    _stream: ServerStream | None = None

    def begin(self) -> None:
        """Send the request, at once where a connection is open, and have its answer delivered."""
        connections = self.link.target.connections
        if self.headed is not None or connections is None or not connections.ready:
            self._task = self.link.start(self._run())
            return
        eager = Eager(self._run())
        if not eager.done:
            self._eager = eager
            if not eager.call_when_woken(self._woken):
                self._go_on_in_task(eager)

    def _woken(self, asked: asyncio.Future[HttpAnswer]) -> None:
        eager = self._eager
        failed = asked.cancelled() or asked.exception() is not None
        if eager is None:
            return
        answer = None if failed else asked.result()
        if not (isinstance(answer, HttpAnswer) and answer.is_message and answer.status in OK):
            self._go_on_in_task(eager)
            return
        self._eager = None
        try:
            if not eager.step():
                self._go_on_in_task(eager)
        except Exception as error:  # noqa: BLE001 - ends the link, as the error of a task does
            self.link.start(fail_with(error))

    def _go_on_in_task(self, eager: Eager[None]) -> None:
        self._eager, self._task = None, self.link.start(eager.rest())

    def stop(self) -> None:
        """End the exchange where it waits, unless this is called by itself."""
        eager, self._eager = self._eager, None
        if eager is not None:
            eager.close()
        elif self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _run(self) -> None:
        try:
            broken = await self._post()
            while not (self.settled or self.cancelled):
                broken = await self._resume(broken)
        except e.FolkmootError as error:
            if not (self.settled or self.cancelled):
                await self.link.fail(self, error, self._transport)
        finally:
            if not self.settled:
                self.link.settle(self)
            if self.headed is not None:
                self.headed.set()
            # They hold this one too, and would be left to the collector of garbage.
            self._task = self._eager = self._stream = None

    async def _post(self) -> e.CarryError | None:
        link, request = self.link, self.request
        target, body = link.target, encode_message(request)
        patience = None if request.method == LISTEN else target.answer_seconds
        asking = Asking(target, "POST", self.headers, body, target.url, patience)
        try:
            async with asking as answer:
                self._transport = link.answer_context("POST", answer)
                if request.method == INITIALIZE:
                    link.heard(self, answer)
                if self.headed is not None:
                    self.headed.set()
                if answer.status not in OK:
                    await self._refused(answer)
                elif answer.content_type == EVENT_STREAM:
                    await self._read(answer)
                else:
                    await self._whole(answer)
        except (e.ServerUnreachable, e.ServerTimeout) as error:
            if self._stream is None or not self._stream.resuming:
                raise
            return error
        return None

    async def _resume(self, broken: e.CarryError | None) -> e.CarryError | None:
        stream, link = self._stream, self.link
        if (
            self.stateless
            or stream is None
            or not stream.resuming
            or stream.empty_reconnects >= MAX_EMPTY_RECONNECTS
        ):
            raise broken or e.ServerUnreachable(
                f"The server at {link.target.shown} ended the connection before it had answered."
            )
        await asyncio.sleep(stream.wait)
        headers = link.in_session(self.sender | LISTENS | stream.resuming)
        try:
            async with link.target.ask("GET", headers) as answer:
                if answer.status in OK and answer.content_type == EVENT_STREAM:
                    await self._read(answer)
                    return None
                status = answer.status
        except (e.ServerUnreachable, e.ServerTimeout) as error:
            stream.empty_reconnects += 1
            return error
        lost = e.ServerUnreachable(
            f"The server at {link.target.shown} broke off its answer and does not resume it.",
            status=status,
        )
        if not may_recover(status):
            raise lost
        stream.empty_reconnects += 1
        return lost

    async def _read(self, answer: HttpAnswer) -> None:
        """Read a stream to its end, or for a little longer than its answer."""
        if self._stream is None:
            link = self.link
            name = f"post-{link.count()}"
            self._stream = ServerStream(name, link.limits, self._take, link.unreadable)
        try:
            async with asyncio.timeout(None) as self._limit:
                await self._stream.read(answer)
        except TimeoutError:
            # A silence of the server's is a timeout too, and another one.
            if not self._limit.expired():
                raise

    async def _take(self, message: ProtocolMessage, transport: TransportContext, size: int) -> None:
        await self.link.deliver(message, transport, size, by=self)
        if self.settled:
            self._limit.reschedule(asyncio.get_running_loop().time() + LINGER_SECONDS)

    async def _whole(self, answer: HttpAnswer) -> None:
        """Take an answer of one JSON message."""
        empty = answer.whole and not answer.parts
        if answer.content_type != JSON or empty:
            raise e.ServerAnswerInvalid(
                "The server accepted the request and answers nothing."
                if empty
                else f"The server answers with {answer.content_type[:100]}, not with a message.",
                status=answer.status,
            )
        body = await read_whole(answer, self.link.limits.message_bytes)
        try:
            message = decode_message(body, self.link.limits)
        except e.MessageError as error:
            self.link.invalid_messages.note(error)
            raise e.ServerAnswerInvalid(
                f"The server's answer cannot be read: {error.message}", status=answer.status
            ) from None
        # An error may have been made before anyone had read the id.
        if not isinstance(message, Response) or not (
            message.id is None or same_id(message.id, self.request.id)
        ):
            raise e.ServerAnswerInvalid(
                "The response does not match the request.", status=answer.status
            )
        await self._deliver(message, len(body))

    async def _refused(self, answer: HttpAnswer) -> None:
        """Take an answer whose status is an error."""
        in_session = SESSION_HEADER in self.headers
        error = refusal_of(answer.status, in_session=in_session)
        if answer.content_type != JSON:
            raise error
        body = await read_whole(answer, MOST_REFUSAL)
        try:
            message = decode_message(body, self.link.limits)
        except e.MessageError:
            raise error from None
        if not isinstance(message, Response) or not isinstance(message.error, ErrorObject):
            raise error
        await self._deliver(message, len(body))

    def _deliver(self, answer: Response, size: int) -> Awaitable[None]:
        own = self.request.id
        if type(answer.id) is not type(own) or answer.id != own:
            answer = replace(answer, id=own)
        transport = self._transport or self.link.current_context()
        return self.link.deliver(answer, transport, size, by=self)


async def fail_with(error: Exception) -> None:
    """Fail, as a task."""
    raise error


logger = logging.getLogger("folkmoot.proxy")


class GetStream:
    """Opens the stream, and opens it again where it broke off, until there is none to be had."""

    def __init__(self, link: HttpLink, sender: dict[str, str]) -> None:
        self.begun = asyncio.Event()
        """Set once the server has said whether there is such a stream."""
        self._link = link
        self._sender = sender
        self._stream = ServerStream(
            f"get-{link.count()}", link.limits, link.deliver, link.unreadable
        )

    async def run(self) -> None:
        """Read the stream, over as many connections as it needs."""
        try:
            while True:
                if not await self._connect():
                    return
                await asyncio.sleep(self._stream.wait)
        finally:
            self.begun.set()

    async def _connect(self) -> bool:
        """Take what comes over one connection; whether another is worth the attempt."""
        stream = self._stream
        last = stream.resuming
        headers = self._link.in_session(self._sender | LISTENS | last)
        try:
            async with self._link.target.ask("GET", headers) as answer:
                self.begun.set()
                if answer.status in OK and answer.content_type == EVENT_STREAM:
                    await stream.read(answer)
                    return True
                status = answer.status
        except e.CarryError as error:
            stream.empty_reconnects += 1
            logger.debug("a stream broke", extra={"error": error.message})
            return True
        stream.empty_reconnects += 1
        # 405 is how a server says that it has none.
        return may_recover(status)


LONGEST_ID: Final = 1024
"""A longer event id cannot be asked for: it would not fit into a header."""
SHORTEST_WAIT: Final = 0.05
FIRST_WAIT: Final = 0.25
LONGEST_WAIT: Final = 30.0
STEADY_SECONDS: Final = 5.0
"""A connection that held this long counts as a good one, even if it brought nothing."""

Take: TypeAlias = Callable[[ProtocolMessage, TransportContext, int], Awaitable[None]]
Unreadable: TypeAlias = Callable[[bytes, e.MessageError], Awaitable[None]]


class ServerStream:
    """One stream: its name, and the event id to resume it."""

    def __init__(self, name: str, limits: Limits, take: Take, unreadable: Unreadable) -> None:
        self.name = name
        self.last_event_id: str | None = None
        self.empty_reconnects = 0
        """How many connections in a row brought no event."""
        self._retry: float | None = None
        self._limits = limits
        self._take = take
        self._unreadable = unreadable

    @property
    def resuming(self) -> dict[str, str]:
        """The header that asks for the rest of the stream; none if the server cannot know it."""
        last = self.last_event_id
        return {} if last is None or len(last) > LONGEST_ID else {EVENT_ID_HEADER: last}

    @property
    def wait(self) -> float:
        """Seconds to wait before the next connection, by the server's wish or by our patience."""
        if self._retry is not None and self.empty_reconnects <= 1:
            return min(max(self._retry, SHORTEST_WAIT), LONGEST_WAIT)
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self.empty_reconnects, 16))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret

    async def read(self, answer: HttpAnswer) -> None:
        """Take every message of one connection until it ends."""
        reader = EventReader(self._limits.message_bytes)
        now = asyncio.get_running_loop().time
        began = now()
        self.empty_reconnects += 1
        try:
            async for chunk in answer.chunks():
                for event in reader.feed(chunk):
                    self.empty_reconnects = 0
                    await self.take(event, answer)
        except e.MessageTooLarge as error:
            await self._unreadable(b"", error)
            raise e.ServerAnswerInvalid(
                f"The server's answer cannot be read: {error.message}"
            ) from None
        finally:
            if now() - began >= STEADY_SECONDS:
                self.empty_reconnects = 0

    async def take(self, event: SseEvent, answer: HttpAnswer) -> None:
        """Take one event, which may hold a message."""
        if event.event_id is not None:
            self.last_event_id = event.event_id or None
        if event.retry is not None:
            self._retry = event.retry
        if not event.data or event.event_type not in (None, "", "message"):
            return
        try:
            message = decode_message(event.data, self._limits)
        except e.MessageError as error:
            await self._unreadable(event.data, error)
            return
        metadata = SseMetadata(
            self.name, event.event_id, event.event_type, event.retry, self.last_event_id
        )
        transport = TransportContext(metadata, answer.came_over)
        await self._take(message, transport, len(event.data))
