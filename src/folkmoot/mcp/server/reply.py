"""Reply: the response to one POST: its answer alone, or a stream of events that ends with it.

Most requests are answered at once, and cost no more than their answer. Only what is said before it,
or a long silence, makes the response a stream. The GET stream of a session is one without an
answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from folkmoot.mcp.wire import EVENT_STREAM

if TYPE_CHECKING:
    from starlette.types import Message, Send

Headers = list[tuple[bytes, bytes]]

OK: Final = 200
JSON_TYPE: Final = (b"content-type", b"application/json")
EVENT_HEADERS: Final[Headers] = [
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]
PING: Final = b": ping\r\n\r\n"

OPEN_SECONDS: Final = 5.0
"""After so long a silence the response begins, so that nobody in between takes us for dead."""
PING_SECONDS: Final = 15.0
MOST_SAID: Final = 256
MOST_BYTES: Final = 1024 * 1024
"""What may wait for a client that reads slowly; for more, the oldest is dropped."""

logger = logging.getLogger("folkmoot.mcp")

_encode = msgspec.json.Encoder().encode


class Weight(Enum):
    """What is dropped first when a client does not keep up."""

    PROGRESS = 0
    LOG = 1
    QUESTION = 2
    """Never dropped; there are few, and someone waits for the answer."""


class Saying(NamedTuple):
    """Something that waits to be written."""

    weight: Weight
    event: bytes


def event_of(message: Any) -> bytes:
    """A message as one event of a stream."""
    return b"event: message\r\ndata: " + _encode(message) + b"\r\n\r\n"


class Reply:
    """One response. `tasks` owns whoever writes it as a stream; `headers` are added to its head."""

    __slots__ = (
        "_bytes",
        "_done",
        "_drained",
        "_headers",
        "_news",
        "_said",
        "_send",
        "_writer",
        "lost",
        "tasks",
    )

    def __init__(
        self, send: Send, tasks: asyncio.TaskGroup, headers: Headers | None = None
    ) -> None:
        self._send = send
        self.tasks = tasks
        self._headers = headers
        self._said: deque[Saying] | None = None
        self._bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._news: asyncio.Event | None = None
        self._drained: asyncio.Event | None = None
        self._done = False
        self.lost = False
        """Whether the client is known to have left."""

    @property
    def is_stream(self) -> bool:
        """Whether the response has begun as a stream."""
        return self._writer is not None

    def open(self) -> None:
        """Begin the response as a stream, if it has not begun."""
        if self._writer is None and not self._done:
            self._said = self._said or deque()
            self._news, self._drained = asyncio.Event(), asyncio.Event()
            self._writer = self.tasks.create_task(self._write(self._said, self._news))

    def say(self, message: dict[str, Any], weight: Weight) -> None:
        """Say something before the answer; it is not waited for."""
        if self._done:
            return
        event = event_of(message)
        if weight is not Weight.QUESTION and len(event) > MOST_BYTES:
            return
        while self._is_full(len(event)) and self._drop():
            pass
        self._add(Saying(weight, event))

    async def flushed(self) -> None:
        """Wait until all that was said is written, or nobody reads it any more."""
        if self._writer is not None and self._drained is not None and not self._writer.done():
            await self._drained.wait()

    async def answer(self, message: Any, status: int = OK) -> None:
        """Say the last word: as the last event of the stream, or alone where there is none."""
        if self._writer is not None:
            self._add(Saying(Weight.QUESTION, event_of(message)))
            self._done = True
            self._wake()
            await self._writer
            return
        self._done = True
        body = _encode(message)
        # All of it is here: with its length it leaves in one piece.
        headers = [JSON_TYPE, (b"content-length", b"%d" % len(body))]
        if self._headers:
            headers += self._headers
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def end(self) -> None:
        """End without an answer: nobody wants one any more."""
        self.open()
        self._done = True
        if self._said is not None:
            self._said.clear()
        self._wake()
        if self._writer is not None:
            await self._writer

    def abandon(self) -> None:
        """Write nothing more, whatever waits."""
        self._done = True
        if self._writer is not None:
            self._writer.cancel()

    def _add(self, saying: Saying) -> None:
        self.open()
        if self._said is not None and self._drained is not None:
            self._said.append(saying)
            self._bytes += len(saying.event)
            self._drained.clear()
        self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()

    def _is_full(self, more: int) -> bool:
        return self._said is not None and (
            len(self._said) >= MOST_SAID or self._bytes + more > MOST_BYTES
        )

    def _drop(self) -> bool:
        """Have something be dropped; whether there was anything that may be."""
        said = self._said or deque()
        for weight in (Weight.PROGRESS, Weight.LOG):
            for place, saying in enumerate(said):
                if saying.weight is weight:
                    self._bytes -= len(saying.event)
                    del said[place]
                    return True
        return False

    async def _write(self, said: deque[Saying], news: asyncio.Event) -> None:
        headers = [*EVENT_HEADERS, *(self._headers or ())]
        try:
            await self._send({"type": "http.response.start", "status": OK, "headers": headers})
            while said or not self._done:
                if said:
                    fresh = b"".join(saying.event for saying in said)
                    said.clear()
                    self._bytes = 0
                    await self._send(part(fresh))
                    continue
                self._let_go()
                news.clear()
                if not await in_time(news):
                    await self._send(part(PING))
            await self._send(part(b"", more=False))
        except Exception as error:  # noqa: BLE001 - the client is gone; others are still there
            self.lost = True
            logger.debug("a stream was not written", extra={"error": type(error).__name__})
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._drained is not None:
            self._drained.set()


async def in_time(news: asyncio.Event) -> bool:
    """Wait for something to write; whether there was any in time."""
    try:
        async with asyncio.timeout(PING_SECONDS):
            await news.wait()
    except TimeoutError:
        return False
    return True


def part(body: bytes, *, more: bool = True) -> Message:
    """A part of a response."""
    return {"type": "http.response.body", "body": body, "more_body": more}
