"""HTTP/1.1 over one connection to a server, and the answers that it brings.

A connection carries one exchange at a time, and is used again only after an answer that was whole.
What a server says unasked, or beyond its answer, ends the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from httptools import HttpParserError, HttpResponseParser
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.transport import ConnectionInfo, Headers
from folkmoot.mcp.client.headers import TOKEN, text_of
from folkmoot.mcp.framing import MAX_PIECES, PORTION, Portions, dense_parts
from folkmoot.mcp.wire import EVENT_STREAM, JSON

if TYPE_CHECKING:
    from folkmoot.mcp.client.pool import HttpConnections
    from folkmoot.mcp.client.url import HttpUrl

HEAD_BYTES: Final = 65_536
"""Of a head, and of whatever else is no body."""
MOST_HEADERS: Final = 100
PAUSE_SECONDS: Final = 0.01
"""How long nothing is read of a server that sends many tiny pieces at once."""
MOST_HELD: Final = 262_144
"""Bytes of an answer that wait to be read before the server has to wait."""
PIECE: Final = 262_144
"""A longer body is written in such pieces, so that others have their turn."""
MOST_NAMES: Final = 1_024
NO_TYPE: Final = "application/octet-stream"
FINAL: Final = 200
"""The least status of an answer that no other follows."""


class HttpFailure(Exception):
    """Why there is no answer, in words that say why the server cannot be reached."""

    def __init__(self, words: str, *, unsent: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.unsent = unsent
        """Whether nothing of the request has left."""


class NotHttp(HttpFailure):
    """The server speaks something else, or more than is read; the words say what of the answer."""


class ServerSilent(HttpFailure):
    """The server says nothing for longer than it may."""


class HttpAnswer(Struct, eq=False):
    """An answer to a request. Its body comes in pieces, for as long as the server sends any."""

    connection: HttpConnection | None
    """What it comes over, until it is whole."""
    status: int
    content_type: str
    came_over: ConnectionInfo | None
    _pairs: list[tuple[bytes, bytes]]
    parts: list[bytes]
    """Of its body, as far as they came and were not read."""
    whole: bool = False
    error: HttpFailure | None = None
    """Why nothing more comes, if it is not whole."""
    waiter: asyncio.Future[None] | None = None

    @property
    def headers(self) -> Headers:
        pairs = [(name.decode("latin-1"), text_of(value)) for name, value in self._pairs]
        return Headers(tuple(pairs))

    @property
    def is_message(self) -> bool:
        """Whether it is one message, and all of it is here."""
        return self.whole and self.content_type == JSON

    async def read(self) -> bytes:
        """The next part of the body, or nothing at its end."""
        while not self.parts:
            if self.error is not None:
                raise self.error
            if self.whole:
                return b""
            self.waiter = asyncio.get_running_loop().create_future()
            try:
                await self.waiter
            finally:
                self.waiter = None
        parts, self.parts = self.parts, []
        if self.connection is not None:
            self.connection.hold(held=False)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Its body, piece by piece; those of a stream have few lines each."""
        while part := await self.read():
            if self.content_type != EVENT_STREAM:
                yield part
                continue
            for piece in dense_parts(part):
                yield piece
                if len(piece) < len(part):
                    await asyncio.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """Want no more of it; a connection on which more would come is closed."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def fail(self, error: HttpFailure) -> None:
        """Nothing more of it comes, though it is not whole."""
        self.error, self.connection = error, None
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class HttpConnection(asyncio.Protocol):
    """One connection to a server."""

    def __init__(self, pool: HttpConnections) -> None:
        self.info: ConnectionInfo | None = None
        """What can be told of it, if it is to be described."""
        self.idle_since = 0.0
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self._parser = HttpResponseParser(self)
        self._asked: asyncio.Future[HttpAnswer] | None = None
        """Who waits for the head of an answer."""
        self._answer: HttpAnswer | None = None
        self._pairs: list[tuple[bytes, bytes]] = []
        self._no_body = 0
        """Bytes that came since the last piece of a body."""
        self._to_the_end = False
        """Whether the end of the connection is that of the answer."""
        self.usable = True
        self._unread = 0
        """Bytes of the answer that came since it was read last."""
        self._held = False
        self._unparsed = Portions()
        self._pieces = 0
        """Pieces of bodies that were parsed in this turn."""
        self._heard = 0.0
        self._patience: float | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._writable: asyncio.Future[None] | None = None

    async def ask(self, head: bytes, body: bytes | None, patience: float | None) -> HttpAnswer:
        """Send a request; the answer, once its head has come.

        `patience` bounds each silence of the server, in seconds.
        """
        asked: asyncio.Future[HttpAnswer] = self._loop.create_future()
        self._asked = asked
        self._pairs = []
        self._heard = self._loop.time()
        if patience != self._patience:
            self._cancel_timer()
            self._patience = patience
        if patience is not None and self._silence is None:
            # It outlives the answer: to look once in vain is cheaper than a timer for each.
            self._silence = self._loop.call_later(patience, self._look, patience)
        try:
            if body is None or len(body) <= PIECE:
                self.transport.write(head if body is None else head + body)
            else:
                await self._write(head, body, asked)
            return await asked
        except BaseException:
            self.close()
            raise

    async def _write(self, head: bytes, body: bytes, asked: asyncio.Future[HttpAnswer]) -> None:
        # Whoever answers before all is told may be told the rest, but nothing after it.
        self.usable = False
        self.transport.write(head)
        for start in range(0, len(body), PIECE):
            if asked.done():
                return
            self.transport.write(body[start : start + PIECE])
            if self._writable is not None:
                await asyncio.wait((self._writable, asked), return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(0)
        self.usable = not asked.done()

    def hold(self, *, held: bool) -> None:
        """Have the server wait, or go on, while its answer is read."""
        self._unread = 0
        if held is not self._held and not self.transport.is_closing():
            self._held = held
            self._heard = self._loop.time()
            if held:
                self.transport.pause_reading()
            elif self._unparsed:
                self._loop.call_soon(self._parse_on)
            else:
                self.transport.resume_reading()

    def close(self) -> None:
        """Close the connection, and end the exchange on it."""
        self.usable = False
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer."""
        if self._asked is None and self._answer is None:
            self.close()
            return
        self._heard = self._loop.time()
        if len(data) <= PORTION and not self._unparsed:
            self._parse(data)
        else:
            self._unparsed.add(data)
            self._parse_on()

    def _parse_on(self) -> None:
        """Parse what came, until it is time for others or the reader of the answer is behind."""
        self._pieces, unparsed = 0, self._unparsed
        while unparsed and not self._held and not self.transport.is_closing():
            if self._asked is None and self._answer is None:
                self.close()
            elif self._pieces > MAX_PIECES:
                self._heard = self._loop.time()
                self.transport.pause_reading()
                self._loop.call_later(PAUSE_SECONDS, self._parse_on)
                return
            else:
                before = self._pieces
                self._parse(unparsed.take())
                unparsed.fit(self._pieces - before)
        if self.transport.is_closing():
            unparsed.drop()
        elif not unparsed and not self._held:
            self.transport.resume_reading()

    def _parse(self, data: bytes) -> None:
        self._no_body += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError:
            self._fail(NotHttp("it is not HTTP"))
            return
        if self._no_body > HEAD_BYTES:
            self._fail(NotHttp(f"its head is larger than {HEAD_BYTES:,} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waiting exchange: complete if its body ends with the connection, else failed."""
        self.usable = False
        self._cancel_timer()
        self._pool.lost(self)
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        if self._to_the_end and exc is None and self._answer is not None:
            self.on_message_complete()
            return
        begun = self._answer is not None
        self._fail(HttpFailure("its answer broke off" if begun else "it broke the connection"))

    def pause_writing(self) -> None:
        """The server reads more slowly than we write."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """The server has read most of it."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def on_message_begin(self) -> None:
        """An answer begins; after an unrequested one, the connection is not used again."""
        if self._asked is None:
            self.usable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; after the body nobody reads them."""
        if self._asked is not None:
            self._pairs.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        status: int = self._parser.get_status_code()
        asked = self._asked
        if status < FINAL or asked is None:
            # Its bytes still count: a server may not announce an answer for ever.
            self._pairs = []
            return
        self._no_body = 0
        if len(self._pairs) > MOST_HEADERS:
            self._fail(NotHttp(f"it has more than {MOST_HEADERS} headers"))
            return
        names = frozenset([name for name, _ in self._pairs])
        self._to_the_end = names.isdisjoint((b"content-length", b"transfer-encoding"))
        kinds = [value for name, value in self._pairs if name == b"content-type"]
        kind = kinds[0].partition(b";")[0].strip().lower().decode("latin-1") if kinds else NO_TYPE
        self._answer = HttpAnswer(self, status, kind, self.info, self._pairs, [])
        self._asked, self._unread = None, 0
        if asked.done():
            self.close()
        else:
            asked.set_result(self._answer)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._no_body = 0
        self._pieces += 1
        answer = self._answer
        if answer is None:
            return
        answer.parts.append(body)
        self._unread += len(body)
        if self._unread > MOST_HELD and answer.connection is not None:
            self.hold(held=True)
        if answer.waiter is not None and not answer.waiter.done():
            answer.waiter.set_result(None)

    def on_message_complete(self) -> None:
        """The answer is whole, and the connection free for another."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        self._no_body = 0
        self.usable = self.usable and self._parser.should_keep_alive()
        if self._held:
            self.hold(held=False)
        answer.whole, answer.connection = True, None
        if answer.waiter is not None and not answer.waiter.done():
            answer.waiter.set_result(None)
        if self.usable:
            self.idle_since = self._loop.time()
            self._pool.idle.append(self)
            if self._pool.sweep is None:
                self._pool.look_soon()
        else:
            self.transport.close()

    def _fail(self, error: HttpFailure) -> None:
        self._cancel_timer()
        asked, self._asked = self._asked, None
        answer, self._answer = self._answer, None
        if asked is not None and not asked.done():
            asked.set_exception(error)
        if answer is not None:
            answer.fail(error)
        self.close()

    def _look(self, patience: float) -> None:
        """See whether the server was silent for too long; whoever has to wait is not."""
        left = self._heard + patience - self._loop.time()
        if self._asked is None and self._answer is None:
            self._silence = None
        elif left > 0 or self._held:
            self._silence = self._loop.call_later(max(left, patience / 10), self._look, patience)
        else:
            self._fail(ServerSilent("it says nothing"))

    def _cancel_timer(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None


def head_of(
    method: str, url: HttpUrl, headers: Sequence[tuple[str, str]], body: bytes | None
) -> bytes:
    """The head of a request; raises where a header cannot be written."""
    first = f"{method} {url.target} HTTP/1.1\r\nhost: {url.authority}"
    last = "\r\n" if body is None else f"content-length: {len(body)}\r\n\r\n"
    text = "\r\n".join((first, *map(": ".join, headers), last))
    ends = len(headers) + (3 if body is None else 4)
    written = text.count("\n") == ends and text.count("\r") == ends and "\0" not in text
    if written and (_written.issuperset(map(_name_of, headers)) or _checked(headers)):
        try:
            return text.encode()
        except UnicodeEncodeError:
            pass
    raise HttpFailure("a header for it cannot be written", unsent=True)


_name_of: Final = itemgetter(0)
_written: Final = {"accept", "authorization", "content-type", "user-agent"}
"""Names of headers that are known to be ones; those of a few clients and settings join them."""


def _checked(headers: Sequence[tuple[str, str]]) -> bool:
    names = [name for name, _ in headers]
    if not all(map(TOKEN.fullmatch, names)):
        return False
    if len(_written) < MOST_NAMES:
        _written.update(names)
    return True


async def read_whole(answer: HttpAnswer, most: int) -> bytes:
    """The body of an answer; one that is larger than accepted is not read to its end."""
    size, parts = 0, answer.parts if answer.whole else []
    if parts:
        size, answer.parts = sum(map(len, parts)), []
    while size <= most and not (answer.whole and not answer.parts):
        part = await answer.read()
        parts.append(part)
        size += len(part)
    if size > most:
        raise e.ServerAnswerInvalid(
            f"The server's answer has more than the {most:,} bytes that are accepted.",
            status=answer.status,
        )
    return parts[0] if len(parts) == 1 else b"".join(parts)
