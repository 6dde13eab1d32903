"""Line: what one POST hears until its answer: nothing, or a stream of events that ends with it.

Most calls are answered at once, and cost no more than their answer. Only what is said before it,
or a long silence, makes the response a stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from folkmoot.mcp.wire import EVENT_STREAM, SESSION_HEADER

if TYPE_CHECKING:
    from starlette.types import Message, Send

    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.sessions import Session

OK: Final = 200
JSON_HEADERS: Final = [(b"content-type", b"application/json")]
EVENT_HEADERS: Final = [
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


def event_headers(session: Session) -> list[tuple[bytes, bytes]]:
    """The headers of a stream in a session, as the SDK writes them."""
    return [*EVENT_HEADERS, (SESSION_HEADER.encode(), session.id.encode())]


def event_of(message: Any) -> bytes:
    """A message as one event of a stream."""
    return b"event: message\r\ndata: " + _encode(message) + b"\r\n\r\n"


class Line:
    """The response to one POST. `tasks` owns whoever writes it, if there is anyone to."""

    def __init__(self, exchange: Exchange, send: Send, tasks: asyncio.TaskGroup) -> None:
        self._exchange = exchange
        self._send = send
        self.tasks = tasks
        self._said: deque[Saying] = deque()
        self._bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._news: asyncio.Event | None = None
        self._done = False

    @property
    def is_stream(self) -> bool:
        """Whether the response has begun as a stream."""
        return self._writer is not None

    def open(self) -> None:
        """Begin the response as a stream, if it has not begun."""
        if self._writer is None and not self._done:
            self._news = asyncio.Event()
            self._writer = self.tasks.create_task(self._write())

    def say(self, message: dict[str, Any], weight: Weight) -> None:
        """Say something before the answer; it is not waited for."""
        if self._done:
            return
        event = event_of(message)
        if weight is not Weight.QUESTION and len(event) > MOST_BYTES:
            return
        while self._is_full(len(event)) and self._drop():
            pass
        self._said.append(Saying(weight, event))
        self._bytes += len(event)
        self.open()
        self._wake()

    async def answer(self, message: Any, status: int = OK) -> None:
        """Say the last word: as the last event of the stream, or alone where there is none."""
        self._done = True
        session = self._exchange.session
        if self._writer is not None:
            self._said.append(Saying(Weight.QUESTION, event_of(message)))
            self._wake()
            await self._writer
            return
        if session is not None:
            # The form the SDK answers a session in: a stream of this one event.
            headers, body = event_headers(session), event_of(message)
            status = OK
        else:
            headers, body = JSON_HEADERS, _encode(message)
        # All of it is here: with its length it leaves in one piece.
        headers = [*headers, (b"content-length", b"%d" % len(body))]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def end(self) -> None:
        """End without an answer: nobody wants one any more."""
        self.open()
        self._done = True
        self._said.clear()
        self._wake()
        if self._writer is not None:
            await self._writer

    def abandon(self) -> None:
        """Write nothing more, whatever waits."""
        self._done = True
        if self._writer is not None:
            self._writer.cancel()

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()

    def _is_full(self, more: int) -> bool:
        return len(self._said) >= MOST_SAID or self._bytes + more > MOST_BYTES

    def _drop(self) -> bool:
        """Have something be dropped; whether there was anything that may be."""
        for weight in (Weight.PROGRESS, Weight.LOG):
            for place, saying in enumerate(self._said):
                if saying.weight is weight:
                    self._bytes -= len(saying.event)
                    del self._said[place]
                    return True
        return False

    def _event_headers(self) -> list[tuple[bytes, bytes]]:
        session = self._exchange.session
        return EVENT_HEADERS if session is None else event_headers(session)

    async def _write(self) -> None:
        try:
            await self._send(
                {"type": "http.response.start", "status": OK, "headers": self._event_headers()}
            )
            while self._said or not self._done:
                if self._said:
                    fresh = b"".join(saying.event for saying in self._said)
                    self._said.clear()
                    self._bytes = 0
                    await self._send(part(fresh))
                elif not await self._heard():
                    await self._send(part(PING))
            await self._send(part(b"", more=False))
        except Exception as error:  # noqa: BLE001 - the client is gone; others are still there
            logger.debug("a stream was not written", extra={"error": type(error).__name__})

    async def _heard(self) -> bool:
        """Wait for something to write; whether there was any in time."""
        if self._news is None:
            return False
        self._news.clear()
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


def part(body: bytes, *, more: bool = True) -> Message:
    """A part of a response."""
    return {"type": "http.response.body", "body": body, "more_body": more}
