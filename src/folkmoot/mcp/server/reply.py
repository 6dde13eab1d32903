"""Reply: the response to one POST: its answer alone, or a stream of events that ends with it.

Most requests are answered at once, and cost no more than their answer. Only what is said before it,
or a long silence, makes the response a stream. The response to a GET is a stream from the start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.mcp.server.responses import JSON_TYPE, write_events
from folkmoot.mcp.server.streams import Stream, Weight

if TYPE_CHECKING:
    import asyncio

    from starlette.types import Send

    from folkmoot.mcp.server.streams import Reader

Headers = list[tuple[bytes, bytes]]

OK: Final = 200
OPEN_SECONDS: Final = 5.0
"""After so long a silence the response begins, so that nobody in between takes us for dead."""

logger = logging.getLogger("folkmoot.mcp")

_encode = msgspec.json.Encoder().encode


class Reply:
    """One response. `tasks` owns whoever writes it as a stream; `headers` are added to its head.

    `new_stream` makes the stream, if it is one that its client can come back to.
    """

    __slots__ = (
        "_done",
        "_headers",
        "_new_stream",
        "_reader",
        "_send",
        "_writer",
        "lost",
        "stream",
        "tasks",
    )

    def __init__(
        self,
        send: Send,
        tasks: asyncio.TaskGroup,
        headers: Headers | None = None,
        new_stream: Callable[[], Stream] | None = None,
    ) -> None:
        self._send = send
        self.tasks = tasks
        self._headers = headers
        self._new_stream = new_stream
        self._reader: Reader | None = None
        self._writer: asyncio.Task[None] | None = None
        self._done = False
        self.stream: Stream | None = None
        """What the response says, if it has begun as a stream."""
        self.lost = False
        """Whether the client is known to have left."""

    def open(self) -> Stream | None:
        """The stream that the response is; it begins if it has not. None if nobody hears it."""
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
        # All of it is here: with its length it leaves in one piece.
        headers = [JSON_TYPE, (b"content-length", b"%d" % len(body))]
        if self._headers:
            headers += self._headers
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

    async def _write(self, reader: Reader, first: bytes) -> None:
        try:
            await write_events(self._send, reader, first, self._headers or ())
        except Exception as error:  # noqa: BLE001 - the client is gone; others are still there
            self.lost = True
            logger.debug("a stream was not written", extra={"error": type(error).__name__})
        finally:
            reader.leave()
