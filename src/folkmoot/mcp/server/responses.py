"""HTTP responses to clients: a few bytes, an error, or a stream for as long as it lasts.

An `HttpReply` is the response to one POST: its answer alone, or a stream of events that ends with
it. Most requests are answered at once, and cost no more than their answer. Only what is said before
it, or a long silence, makes the response a stream. The response to a GET is a stream from the
start.

`DisconnectWatch` looks after requests that take longer than most: their clients are watched for
leaving, and hear after a while that we are there. One that is answered soon costs no more than an
entry in a table: one timer looks after all that are new.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import encode_message
from folkmoot.mcp.server.streams import Stream, Weight
from folkmoot.mcp.wire import EVENT_STREAM, JSON, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.types import Receive, Send

    from folkmoot.core.message import MessageId
    from folkmoot.mcp.server.streams import StreamReader

logger = logging.getLogger("folkmoot.mcp")

OK: Final = 200
OPEN_SECONDS: Final = 5.0
"""After so long a silence the response begins, so that nobody in between takes us for dead."""
QUIET_SECONDS: Final = 15.0
"""After so long a silence a stream says that it is still there."""
PATIENCE_SECONDS: Final = 5.0
"""How long an answer may take before its request becomes a stream, which shows that it is awaited
and can be resumed."""
WATCH_SECONDS: Final = 0.05
"""A request that takes longer is worth watching whether its client is still there."""
PIECE: Final = 256 * 1024
COMMENT: Final = b": still here\n\n"
JSON_TYPE: Final = (b"content-type", JSON.encode())
JSON_LINE: Final = b"%b: %b\r\n" % JSON_TYPE
EVENT_HEADERS: Final = (
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


async def say(
    send: Send, status: int, body: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Answer with these bytes, which are JSON where there are any."""
    told = [*headers, (b"content-length", b"%d" % len(body))]
    if body:
        told.append(JSON_TYPE)
    await send({"type": "http.response.start", "status": status, "headers": told})
    # The next piece waits until the client has read of those before it.
    for start in range(0, len(body) - PIECE, PIECE):
        piece = body[start : start + PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    left = (len(body) - 1) // PIECE * PIECE if body else 0
    await send({"type": "http.response.body", "body": body[left:]})


async def refuse(
    send: Send,
    error: e.FolkmootError,
    message_id: MessageId | None = None,
    status: int | None = None,
) -> None:
    """Answer that a request cannot be served, with the status of the error or another."""
    headers = []
    if isinstance(error, e.MethodNotAllowed):
        headers.append((b"allow", error.data["allow"].encode()))
    await say(send, status or error.http, encode_message(refusal(message_id, error)), headers)


async def answer(
    send: Send,
    stream: Stream,
    reader: StreamReader,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """Answer as soon as something is said: by the answer alone if it is that, else by a stream."""
    while not await reader.wait(PATIENCE_SECONDS) and not stream.events:
        pass
    if reader.gone:
        return
    if stream.answer is not None:
        await say(send, stream.answer.status, stream.answer.body, headers)
        stream.answered()
        return
    stream.begun = True
    await write_events(send, reader, stream.first() if stream.primed else b"", headers)


async def write_events(
    send: Send,
    reader: StreamReader,
    first: bytes = b"",
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    """Write a stream until it is done or its client is gone."""
    await send(
        {"type": "http.response.start", "status": 200, "headers": [*EVENT_HEADERS, *headers]}
    )
    if first:
        await send({"type": "http.response.body", "body": first, "more_body": True})
    # The head leaves with the first part of the body, and a client may wait for it.
    patience = QUIET_SECONDS if first else 0
    while (events := await reader.more(patience)) is not None:
        await send({"type": "http.response.body", "body": events or COMMENT, "more_body": True})
        patience = QUIET_SECONDS
    await send({"type": "http.response.body", "body": b"", "more_body": False})


_encode = msgspec.json.Encoder().encode


class HttpReply(Struct, eq=False):
    """One response. `tasks` owns the task that writes it as a stream; `headers` are added.

    `new_stream` makes the stream, if it is one that its client can come back to.
    """

    _send: Send
    tasks: asyncio.TaskGroup
    _headers: list[tuple[bytes, bytes]] | None = None
    _new_stream: Callable[[], Stream] | None = None
    _reader: StreamReader | None = None
    _writer: asyncio.Task[None] | None = None
    _done: bool = False
    stream: Stream | None = None
    """What the response says, if it has begun as a stream."""
    lost: bool = False
    """Whether the client is known to have left."""

    def open(self) -> Stream | None:
        """The response as a stream, begun if needed; None if it is done or its client has left."""
        if self.stream is None and not self._done and not self.lost:
            self.follow(Stream(lossy=True) if self._new_stream is None else self._new_stream())
        return self.stream

    def follow(
        self, stream: Stream, after: int | None = None, first: bytes = b""
    ) -> asyncio.Task[None]:
        """Write a stream, from its beginning or after an event, until it is done or left."""
        self.stream = stream
        stream.begun = True
        self._reader = reader = stream.attach(after)
        if after is None and stream.primed:
            first = stream.first()
        self._writer = self.tasks.create_task(self._write(reader, first))
        return self._writer

    def say(self, message: dict[str, Any], weight: Weight) -> None:
        """Say something before the answer; it is not waited for."""
        stream = self.open()
        if stream is not None:
            stream.put(_encode(message), weight=weight)

    async def flushed(self) -> None:
        """Wait until all that was said is written, or nobody reads it any more."""
        if self.stream is not None:
            await self.stream.flushed(0)

    async def answer(self, message: Any, status: int = OK) -> None:
        """Say the last word: as the last event of the stream, or alone where there is none."""
        self._done = True
        body = _encode(message)
        if self.stream is not None:
            self.stream.put(body, last=True)
            await self._written()
            return
        # Where nothing stands between, the server takes all of it at once.
        write_whole = getattr(self._send, "write_whole", None)
        if write_whole is not None:
            lines = JSON_LINE
            for header in self._headers or ():
                lines += b"%b: %b\r\n" % header
            if write_whole(status, lines, body):
                return
        headers = [JSON_TYPE, (b"content-length", b"%d" % len(body)), *(self._headers or ())]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def end(self) -> None:
        """End without an answer: nobody wants one any more."""
        if self.stream is None:
            self.follow(Stream())
        self.abandon()
        await self._written()

    def left(self) -> bool:
        """Its client has left; whether it can come back for the rest."""
        self.lost = True
        if self._reader is not None:
            self._reader.leave()
        return self.stream is not None and self.stream.resumable

    def abandon(self) -> None:
        """Write nothing more, whatever waits."""
        self._done = True
        if self.stream is not None:
            self.stream.discard()

    async def _written(self) -> None:
        if self._writer is not None:
            await self._writer

    async def _write(self, reader: StreamReader, first: bytes) -> None:
        try:
            await write_events(self._send, reader, first, self._headers or ())
        except Exception as error:  # noqa: BLE001 - the client is gone; others are still there
            self.lost = True
            logger.debug("a stream was not written", extra={"error": type(error).__name__})
        finally:
            reader.leave()


class WatchedRequest(Struct, eq=False):
    """One request; `left` is called when its client leaves."""

    receive: Receive
    left: Callable[[], object]
    reply: HttpReply | None
    """Opened as a stream after a while, so that nobody takes us for dead."""
    due: float
    """When it has taken longer than most."""
    leaving: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None

    async def watch(self) -> None:
        """Call `left` when the client has left."""
        await until_gone(self.receive)
        if self.reply is not None:
            self.reply.lost = True
        self.left()


class DisconnectWatch(Entity):
    """Watches requests for disconnects: new ones in order of arrival, and long ones.

    `tasks` owns whoever waits for clients to leave.
    """

    tasks: asyncio.TaskGroup
    _new: dict[WatchedRequest, None] = {}
    _timer: asyncio.TimerHandle | None = None

    def begin(
        self, receive: Receive, left: Callable[[], object], reply: HttpReply | None = None
    ) -> WatchedRequest:
        """Watch a request until `end`; `receive` is where its client is heard to leave."""
        loop = asyncio.get_running_loop()
        watched = WatchedRequest(receive, left, reply, loop.time() + WATCH_SECONDS)
        self._new[watched] = None
        if self._timer is None:
            self._timer = loop.call_at(watched.due, self._look)
        return watched

    def end(self, watched: WatchedRequest) -> None:
        """A request is over."""
        self._new.pop(watched, None)
        if watched.leaving is not None:
            watched.leaving.cancel()
            if watched.timer is not None:
                watched.timer.cancel()

    def _look(self) -> None:
        """See which of the new ones take longer than most; looks again while there are others."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for watched in tuple(self._new):
            if watched.due > loop.time():
                self._timer = loop.call_at(watched.due, self._look)
                return
            del self._new[watched]
            watched.leaving = self.tasks.create_task(watched.watch())
            if watched.reply is not None:
                patience = OPEN_SECONDS - WATCH_SECONDS
                watched.timer = loop.call_later(patience, watched.reply.open)


async def until_gone(receive: Receive) -> None:
    """Wait until a client has closed its connection; one that cannot be read is gone too."""
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody is there
        logger.debug("a client was lost", extra={"error": type(error).__name__})


async def leave_with(receive: Receive, leave: Callable[[], object]) -> None:
    """Call `leave` when a client has closed its connection."""
    await until_gone(receive)
    leave()


async def has_left(receive: Receive) -> bool:
    """Whether the client has closed its connection. The body of the request must have been read."""
    try:
        async with asyncio.timeout(0):
            message = await receive()
    except TimeoutError:
        return False
    return bool(message["type"] == "http.disconnect")
