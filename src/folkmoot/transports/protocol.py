"""uvicorn's connection, which can become a WebSocket, with limits that uvicorn does not have.

Much of this is not documented by uvicorn, so whatever is used of it is in this file, its version is
bounded, and `tests/test_dependencies.py` tells what another version does otherwise.

There are limits on heads, trailers, slow readers and numbers: without them a thousand connections
that never finish their first line, or never read an answer, would be a full house.
"""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from msgspec import Struct
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from folkmoot.core import errors as e
from folkmoot.mcp.framing import MAX_PIECES, PORTION, Portions
from folkmoot.transports.bodies import Discarding
from folkmoot.transports.connections import FORWARD_PATH, METERED, PEER, Metered
from folkmoot.transports.limits import (
    CANCEL_SECONDS,
    HEAD_SECONDS,
    KEEP_ALIVE_SECONDS,
    LINGER_SECONDS,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_JOINED_BYTES,
    MAX_LINGER_BYTES,
    MAX_TINY_CHUNKS,
    MAX_WAITING_REQUESTS,
    MIN_READ_BYTES_A_SECOND,
    STOP_WRITE_SECONDS,
    TINY_CHUNK_BYTES,
    WRITE_SECONDS,
)
from folkmoot.transports.websocket.endpoint import EXTENSION
from folkmoot.transports.websocket.link import WebSocketConnection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Message
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from folkmoot.transports.connections import ConnectionPeer, OpenConnections
    from folkmoot.transports.websocket.limits import LinkLimits
    from folkmoot.transports.websocket.reader import Unfinished

HEAD: Final = "folkmoot.head"
"""The member of a request's scope that is the `JoinedWrites` of its answer."""


def _refusal(error: e.RequestError) -> bytes:
    """The answer to a request that no application gets."""
    body = msgspec.json.encode(error.as_http())
    head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return STATUS_LINE[error.http] + head % len(body) + body


_HEAD_TOO_LONG: Final = _refusal(
    e.HeadTooLarge(f"The request's head is larger than {MAX_HEAD_BYTES:,} bytes.")
)
_TOO_MANY_CHUNKS: Final = _refusal(
    e.BodyTooLarge(
        f"The request's body comes in more than {MAX_TINY_CHUNKS:,} chunks of less than "
        f"{TINY_CHUNK_BYTES} bytes; send larger ones."
    )
)
_TOO_MANY_HEADERS: Final = _refusal(
    e.HeadTooLarge(f"The request has more than {MAX_HEADERS} headers.")
)


BLANKS: Final = (b" ", b"\t")
CONTINUE: Final = b"HTTP/1.1 100 "
LENGTH: Final = b"\r\ncontent-length: "
STATUS: Final = slice(9, 12)
"""Where the status is in the first line of a head."""
SWITCHED: Final = 101
INVALID: Final = "Invalid HTTP request received."


class HeadLines:
    """Lines that every head has at its end, unless it says something else of the same."""

    def __init__(self, *headers: tuple[bytes, bytes]) -> None:
        self._lines = [(b"\r\n%b:" % name, b"%b: %b\r\n" % (name, it)) for name, it in headers]
        self.all = self.missing_in(b"")

    def missing_in(self, head: bytes) -> bytes:
        """Those that a head has not itself."""
        return b"".join([line for begins, line in self._lines if begins not in head])


NO_LINES: Final = HeadLines()


class JoinedWrites(Struct, eq=False):
    """The connection for uvicorn, joining the writes of one answer.

    The head leaves with the first part of the body, in one packet instead of two. A head that
    announces no length is that of a stream, whose first part may be long in coming: it leaves at
    once.
    """

    transport: asyncio.Transport
    lines: HeadLines = NO_LINES
    last: bytes = b""
    head: bytes = b""
    """The head, until it has left."""
    status: int = 0
    """That of the answer, once it has begun."""

    def write(self, data: bytes) -> None:
        """Take the head, or a part of the body."""
        if self.status:
            if self.head:
                if len(data) <= MAX_JOINED_BYTES:
                    data, self.head = self.head + data, b""
                else:
                    self.flush()
            self.transport.write(data)
        elif data.startswith(CONTINUE):
            self.transport.write(data)
        else:
            self.status = int(data[STATUS])
            if self.last:
                data = b"%b%b%b\r\n" % (data[:-2], self.lines.missing_in(data), self.last)
            if LENGTH in data:
                self.head = data
            else:
                self.transport.write(data)

    def flush(self) -> None:
        """Let the head leave by itself, if it has not left."""
        if self.head:
            head, self.head = self.head, b""
            self.transport.write(head)

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self.transport.is_closing()

    def close(self) -> None:
        """Close the connection behind what was taken."""
        if not self.transport.is_closing():
            self.flush()
        self.transport.close()


class DirectReceive(Struct, eq=False):
    """How an application receives its request, if nothing stands between it and the connection."""

    _cycle: RequestResponseCycle

    def __call__(self) -> Awaitable[Message]:
        """The next part of the request."""
        return self._cycle.receive()  # type: ignore[return-value]

    def take_body(self) -> bytes | None:
        """The body of the request, if all of it is here already."""
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.message_event.clear()
        return body


class DirectSend(Struct, eq=False):
    """How an application answers, if nothing stands between it and the connection."""

    _cycle: RequestResponseCycle
    _joined: JoinedWrites

    def __call__(self, message: Message) -> Awaitable[None]:
        """Send the head, or a part of the body."""
        return self._cycle.send(message)  # type: ignore[arg-type]

    def write_whole(self, status: int, headers: bytes, body: bytes) -> bool:
        """Write an answer at once and end it, as sending its head and its body would.

        False where it must be sent: its client is gone or reads slowly, or the connection ends
        with it. The headers are whole lines, known to be right, and have neither the length nor
        what is added to every head.
        """
        cycle, joined = self._cycle, self._joined
        if cycle.response_started or cycle.disconnected or not cycle.keep_alive:
            return False
        if cycle.flow.write_paused or len(body) > MAX_JOINED_BYTES:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        joined.status = status
        for header in cycle.default_headers:
            headers += b"%b: %b\r\n" % header
        parts = (STATUS_LINE[status], headers, len(body), joined.lines.all, joined.last, body)
        joined.transport.write(b"%b%bcontent-length: %d\r\n%b%b\r\n%b" % parts)
        cycle.message_event.set()
        cycle.on_response()
        return True


class _Flow(FlowControl):
    """uvicorn's flow control, which would read on whenever an application waits for anything."""

    def __init__(self, protocol: HubProtocol) -> None:
        super().__init__(protocol.transport)
        self._protocol: HubProtocol | None = protocol

    def resume_reading(self) -> None:
        """Read on, unless something that was read has to be parsed or answered first."""
        if self.read_paused and self._protocol is not None and self._protocol.parsed_all():
            super().resume_reading()

    def forget_protocol(self) -> None:
        """Nothing is read any more. The two hold each other, which would keep both for long."""
        self._protocol = None


class HubProtocol(HttpToolsProtocol):
    """One HTTP connection, until a request on it is answered with a WebSocket.

    Such a request reaches the application like any other; while that decides, nothing is read.
    What was read is parsed in portions, so that many tiny parts of it hold nobody up, and not
    before the requests that came earlier are answered or being answered.
    """

    flow: _Flow
    _after_head = b""
    _asked = False
    """Whether the request asks for a WebSocket."""
    _upgrading = False
    _stopping = False

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        open_connections: OpenConnections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._open = open_connections
        self._peer: ConnectionPeer
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._write_seconds = WRITE_SECONDS
        self._unsent = 0
        self._head_bytes = 0
        self._discarded = 0
        self._body_left = 0
        self._lingers = False
        self._in_head = True
        self._unparsed = Portions()
        self._parsing = False
        """Whether the connection waits for its turn to parse on."""
        self._pieces = 0
        """Parts of bodies that were parsed in this turn."""
        self._tiny_chunks = 0
        self._overfull = False
        """Whether more requests came than may wait, so that no more are read."""
        self._who = ""
        """Whose time is used: that of an account or address."""
        self._answering: RequestResponseCycle | None = None
        self._joining: JoinedWrites | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the head of the first request."""
        super().connection_made(transport)
        self.flow = _Flow(self)
        self._since = self.loop.time()
        self._peer = self._open.opened(self, self.client[0] if self.client else "")
        self._who = self._peer.address
        self._start_timer()

    @property
    def waiting_since(self) -> float | None:
        """Since when the connection is idle, half received or streaming; None while served."""
        cycle = self._answering
        if cycle is None or cycle.response_started or cycle.more_body:
            return self._since
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and let whatever still answers on it know."""
        self._open.closed(self._peer)
        self._cancel_timer()
        self._written()
        # uvicorn tells the newest request alone, which may still wait for an older one's answer.
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        self.pipeline.clear()
        self._unparsed.drop()
        super().connection_lost(exc)
        self.flow.forget_protocol()

    def data_received(self, data: bytes) -> None:
        """Take part of a request, or what follows one that asks for a WebSocket."""
        if self._overfull:
            return
        if self._upgrading:
            self._after_head += data
        elif self._unparsed or self.pipeline:
            self._unparsed.add(data)
        elif len(data) <= max(PORTION, self._body_left):
            self._parse(data)
        else:
            self._unparsed.add(data)
            self._parse_on()

    def parsed_all(self) -> bool:
        """Whether there is nothing to do before more is read; what is to parse gets its turn."""
        if self.pipeline or self._upgrading or self._overfull:
            return False
        if self._unparsed and not self._parsing:
            self._parsing = True
            self._open.turns.queue(self._who, self._parse_on)
        return not self._unparsed

    def _parse_on(self) -> None:
        """Parse what was read until it is time for others, or for the application."""
        self._parsing = False
        self._pieces, began, unparsed = 0, monotonic(), self._unparsed
        while unparsed and self._pieces <= MAX_PIECES and not self._is_held():
            before = self._pieces
            self._parse(unparsed.take())
            unparsed.fit(self._pieces - before)
        self._open.turns.charge(self._who, monotonic() - began)
        if self.transport.is_closing():
            unparsed.drop()
        elif unparsed:
            self.flow.pause_reading()
            if not self._is_held():
                self.parsed_all()
        elif not self._is_held():
            self.flow.resume_reading()

    def _is_held(self) -> bool:
        """Whether the application has to take something before more is parsed."""
        cycle: RequestResponseCycle | None = self.cycle
        is_full = cycle is not None and len(cycle.body) > HIGH_WATER_LIMIT
        return is_full or bool(self.pipeline) or self.transport.is_closing()

    def _parse(self, data: bytes) -> None:
        """Parse a portion. A head, or trailers, that grow without end are refused."""
        self._unset_keepalive_if_required()
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            if self._upgrading:
                # Kept for the WebSocket; no more is read until there is one.
                self._after_head = data[upgrade.args[0] :] + self._unparsed.drop()
                self.flow.pause_reading()
        except HttpParserError:
            if self._overfull:
                self._end_with_waiting()
                return
            if len(self.headers) > MAX_HEADERS:
                self._refuse_head(_TOO_MANY_HEADERS)
            else:
                self.logger.warning(INVALID)
                self.send_400_response(INVALID)
        if (
            self._lingers
            and self._body_left > 0
            and self.cycle.response_complete
            and not self._unparsed
        ):
            self.transport.set_protocol(Discarding(self, self._body_left))
            return
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head(_HEAD_TOO_LONG)
        if self._in_head and self._timer is None and not (self.pipeline or self._unparsed):
            # Most heads come whole, and need not be waited for. While requests wait we do not read.
            self._start_timer()
        if self._writing is None and self.transport.is_closing():
            self._watch()

    def _refuse_head(self, answer: bytes) -> None:
        if self._in_head and (self._answering is None or self._answering.response_complete):
            self.transport.write(answer)
        self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer, of which there are only so many."""
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            # Raised for the parser, which nothing else stops.
            raise RuntimeError

    def on_message_begin(self) -> None:
        """A further request begins on the connection."""
        super().on_message_begin()
        self._in_head = True
        self._since = self.loop.time()
        if self._timer is not None:
            self._cancel_timer()

    def on_headers_complete(self) -> None:
        """The head is here; from now on the application decides how long things may take."""
        if len(self.pipeline) >= MAX_WAITING_REQUESTS:
            # Raised for the parser, which nothing else stops.
            self._overfull = True
            raise RuntimeError
        self._tiny_chunks = 0
        self._in_head = False
        self._head_bytes = 0
        self._discarded = 0
        if self._timer is not None:
            self._cancel_timer()
        self._body_left = 0
        for place, (name, value) in enumerate(self.headers):
            if value.endswith(BLANKS):
                self._strip_blanks(place)
            if name == b"content-length":
                # The parser has refused what is no number.
                self._body_left = int(value)
        self._asked = self.parser.should_upgrade() and self._get_upgrade() == b"websocket"
        if self._asked:
            self.scope["extensions"] = {EXTENSION: {"protocol": self}}
        super().on_headers_complete()
        # Trailers are taken like headers, and nobody reads them.
        self.headers = []
        if self._asked:
            # Whatever follows the head is meant for a WebSocket and cannot be a request.
            self.cycle.keep_alive = False

    def _strip_blanks(self, place: int) -> None:
        """The parser leaves the blanks after a value, which are no part of it."""
        name, value = self.headers[place]
        value = value.rstrip(b" \t")
        self.headers[place] = name, value
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, which has a limit of its own."""
        self._head_bytes = 0
        size = len(body)
        self._body_left -= size
        self._pieces += 1
        if size < TINY_CHUNK_BYTES:
            self._tiny_chunks += 1
            if self._tiny_chunks > MAX_TINY_CHUNKS:
                self._refuse_chunks()
                return
        if self.cycle.response_complete:
            # Some clients read their answer only after they have sent all.
            self._discarded += len(body)
            if self._discarded > MAX_LINGER_BYTES and not self._lingers:
                self._lingers = self._open.linger(self._peer)
                if not self._lingers:
                    self.transport.close()
        super().on_body(body)

    def _refuse_chunks(self) -> None:
        if not self.transport.is_closing():
            if self._answering is self.cycle and not self.cycle.response_started:
                self.transport.write(_TOO_MANY_CHUNKS)
            self.transport.close()

    def _end_with_waiting(self) -> None:
        """Answer the requests that wait, and read nothing after them."""
        self._unparsed.drop()
        self._in_head = False
        newest, _ = self.pipeline[0]
        newest.keep_alive = False
        self.flow.pause_reading()

    def read_on(self) -> None:
        """Take the next request, now that the body of an answered one was thrown away."""
        # The one that was in use waits for that body.
        self.parser = HttpRequestParser(self)
        self._body_left, self._lingers = 0, False
        self.on_message_complete()
        self.transport.set_protocol(self)

    def on_message_complete(self) -> None:
        """The request is whole; or the head of one that asks for a WebSocket is."""
        self._head_bytes = 0
        super().on_message_complete()
        self._upgrading = self._asked

    def on_response_complete(self) -> None:
        """Do not wait long for the rest of a body that was answered before it was complete."""
        if self._joining is not None and self._joining.head:
            # The answer to HEAD has no body that its head could have left with.
            self._joining.flush()
        if self._answering is not None:
            # What came of a body that nobody read.
            self._answering.body = bytearray()
        super().on_response_complete()
        if self.cycle.more_body:
            self._start_timer(LINGER_SECONDS)
        if self.transport.is_closing():
            if self._writing is None:
                self._watch()
        elif self._upgrading:
            # This was a request before the one for a WebSocket.
            self._unset_keepalive_if_required()
        else:
            self.flow.resume_reading()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that asks for nothing."""
        super().timeout_keep_alive_handler()
        self._close_slow()

    def pause_writing(self) -> None:
        """The client reads more slowly than we write."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """The client has read most of it."""
        super().resume_writing()
        self._written()
        self._close_slow()

    def shutdown(self) -> None:
        """Finish the request in flight, then close.

        A WebSocket that is being opened closes at once.
        """
        self._stopping = True
        super().shutdown()
        self._write_seconds = STOP_WRITE_SECONDS
        self._watch()

    def switch(
        self,
        answer: bytes,
        limits: LinkLimits,
        unfinished: Unfinished,
        opened: Callable[[WebSocketConnection], None],
        left: Callable[[WebSocketConnection], None],
    ) -> None:
        """Answer the handshake and give the connection to a link, unless the client has left.

        `opened` gets the link before anything that the client sent.
        """
        if self.transport.is_closing():
            return
        # From here on uvicorn has nothing to answer, and no time limit of its own.
        self.cycle.disconnected = True
        self._cancel_timer()
        self._written()
        self._unset_keepalive_if_required()
        # The parser and this protocol hold each other, which would keep both for long.
        self.parser = None  # type: ignore[assignment]
        self.flow.forget_protocol()
        connections, open_connections, peer = self.connections, self._open, self._peer

        def leave(link: WebSocketConnection) -> None:
            connections.discard(link)
            open_connections.closed(peer)
            left(link)

        link = WebSocketConnection(
            self.transport,
            limits,
            leave=leave,
            turns=open_connections.turns,
            unfinished=unfinished,
            owner=peer.account or peer.address,
            paused=self.flow.write_paused,
        )
        connections.discard(self)
        connections.add(link)  # type: ignore[arg-type]
        peer.connection = link
        self.transport.set_protocol(link)
        self.transport.write(answer)
        if self._joining is not None:
            # For whoever counts and logs requests.
            self._joining.status = SWITCHED
        opened(link)
        if self._after_head:
            link.data_received(self._after_head)
        if link.reading:
            link.resume_reading()
        if self._stopping:
            link.shutdown()

    def _should_upgrade(self) -> bool:
        return self._upgrading

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        peer = self._peer
        cycle.scope[PEER] = peer  # type: ignore[typeddict-unknown-key]
        app = self._open.app_for(peer, cycle.scope["path"], app)  # type: ignore[arg-type, assignment]
        joined = self._joining = JoinedWrites(self.transport)
        cycle.transport = joined  # type: ignore[assignment]
        cycle.scope[HEAD] = joined  # type: ignore[typeddict-unknown-key]
        who = self._who = self._open.whose(peer, cycle.scope)  # type: ignore[arg-type]

        def direct(scope: Any, *_: object) -> Any:
            return app(scope, DirectReceive(cycle), DirectSend(cycle, joined))  # type: ignore[arg-type]

        request = Metered(cycle.run_asgi(direct), self._open.turns, who)
        if cycle.scope["path"] == FORWARD_PATH:
            cycle.scope[METERED] = request  # type: ignore[typeddict-unknown-key]
        self._open.turns.begin(who, partial(self._answer, request))

    def _answer(self, request: Metered) -> None:
        task = self.loop.create_task(request)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _close_slow(self) -> None:
        """A connection closes once everything is read, which some never do."""
        if self._writing is None and self.transport.is_closing():
            self._watch()

    def _watch(self) -> None:
        self._written()
        self._unsent = self.transport.get_write_buffer_size()
        if self._unsent:
            self._writing = self.loop.call_later(self._write_seconds, self._check_reader)

    def _check_reader(self) -> None:
        read = self._unsent - self.transport.get_write_buffer_size()
        if read < self._write_seconds * MIN_READ_BYTES_A_SECOND:
            self.transport.abort()
        else:
            self._watch()

    def _written(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _start_timer(self, seconds: float | None = None) -> None:
        self._cancel_timer()
        seconds = HEAD_SECONDS if seconds is None else seconds
        self._timer = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class HubProtocols:
    """Makes the connections to one application, and has those that are open."""

    def __init__(self, app: ASGIApp, open_connections: OpenConnections) -> None:
        self.open_connections = open_connections
        self._state = ServerState()
        self._config = Config(
            app,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        self._config.load()

    def __call__(self) -> HubProtocol:
        """The protocol of another connection."""
        return HubProtocol(self._config, self._state, {}, open_connections=self.open_connections)

    def tell_date(self) -> None:
        """Say in every answer what time it is now."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]

    @property
    def is_busy(self) -> bool:
        """Whether a connection is open, or a request is being answered."""
        return bool(self._state.connections or self._state.tasks)

    def finish(self) -> None:
        """Let each connection end when its request is answered."""
        for connection in list(self._state.connections):
            connection.shutdown()

    async def cancel(self) -> None:
        """Cancel what is being answered, and wait a moment for what that leads to."""
        for task in (left := list(self._state.tasks)):
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_SECONDS)

    def transports(self) -> list[asyncio.Transport]:
        """Those of the connections that are open."""
        return [each.transport for each in self._state.connections]
