"""uvicorn's connection with limits it does not have: on heads, trailers, slow readers and numbers.

Without them a thousand connections that never finish their first line, or never read an answer,
would be a full house.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from folkmoot.transports.connections import PEER
from folkmoot.transports.joining import HEAD, Joining
from folkmoot.transports.turns import Metered

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.config import Config
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
    from uvicorn.server import ServerState

    from folkmoot.transports.connections import Connections, Peer

HEAD_SECONDS = 20.0
LINGER_SECONDS = 5.0
LINGER_BYTES = 65_536
"""How long and how much of a body is still read, and thrown away, once its request was answered;
a few connections may send more.
"""
HEAD_BYTES = 65_536
"""Also how much may arrive after a head that is neither body nor the next head: trailers."""
WRITE_SECONDS = 30.0
WRITE_BYTES_A_SECOND = 16_384
"""An answer may take longer than `WRITE_SECONDS` only if it is read at least this fast."""
STOP_WRITE_SECONDS = 1.0
"""The same while the hub stops."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


_take_header = HttpToolsProtocol.on_header
"""Called for every header of every request, so found only once."""


class HubProtocol(HttpToolsProtocol):
    """One HTTP connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        house: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._house = house
        self._peer: Peer
        self._since = 0.0
        self._patience: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._write_seconds = WRITE_SECONDS
        self._unsent = 0
        self._head_bytes = 0
        self._discarded = 0
        self._lingers = False
        self._in_head = True
        self._answering: RequestResponseCycle | None = None
        self._joining: Joining | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the head of the first request."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._peer = self._house.opened(self, self.client[0] if self.client else "")
        self._expect()

    @property
    def waiting_since(self) -> float | None:
        """Since when the connection is idle, half received or streaming; None while served."""
        cycle = self._answering
        if cycle is None or cycle.response_started or cycle.more_body:
            return self._since
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and let whatever still answers on it know."""
        self._house.closed(self._peer)
        self._relax()
        self._written()
        # uvicorn tells the newest request alone, which may still wait for an older one's answer.
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Refuse a head, or trailers, that grow without end."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            if self._in_head and (self._answering is None or self._answering.response_complete):
                self.transport.write(_TOO_LARGE)
            self.transport.close()
        if self._in_head and self._patience is None:
            # Most heads come whole, and need not be waited for.
            self._expect()
        self._see_off()

    def on_message_begin(self) -> None:
        """A further request begins on the connection."""
        super().on_message_begin()
        self._in_head = True
        self._since = self.loop.time()
        self._relax()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers come here too, and nobody reads them."""
        if self._in_head:
            # The parser leaves the blanks after a value, which are no part of it.
            _take_header(self, name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """The head is here; from now on the application decides how long things may take."""
        self._in_head = False
        self._head_bytes = 0
        self._discarded = 0
        self._relax()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, which has a limit of its own."""
        self._head_bytes = 0
        if self.cycle.response_complete:
            # Some clients read their answer only after they have sent all.
            self._discarded += len(body)
            if self._discarded > LINGER_BYTES and not self._lingers:
                self._lingers = self._house.linger(self._peer)
                if not self._lingers:
                    self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._head_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Do not wait long for the rest of a body that was answered before it was complete."""
        if self._joining is not None:
            # The answer to HEAD has no body that its head could have left with.
            self._joining.flush()
        if self._answering is not None:
            # What came of a body that nobody read.
            self._answering.body = bytearray()
        super().on_response_complete()
        if self.cycle.more_body:
            self._expect(LINGER_SECONDS)
        self._see_off()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that asks for nothing."""
        super().timeout_keep_alive_handler()
        self._see_off()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """The client has read most of it."""
        super().resume_writing()
        self._written()
        self._see_off()

    def shutdown(self) -> None:
        """Finish what is in flight, for a client that reads it."""
        super().shutdown()
        self._write_seconds = STOP_WRITE_SECONDS
        self._watch()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        cycle.scope[PEER] = self._peer  # type: ignore[typeddict-unknown-key]
        app = self._house.app_for(self._peer, cycle.scope["path"], app)  # type: ignore[arg-type, assignment]
        self._joining = Joining(self.transport)
        cycle.transport = self._joining  # type: ignore[assignment]
        cycle.scope[HEAD] = self._joining  # type: ignore[typeddict-unknown-key]
        peer = self._peer
        who = peer.account or peer.address
        request = Metered(cycle.run_asgi(app), self._house.turns, who)
        self._house.turns.begin(who, partial(self._answer, request))

    def _answer(self, request: Metered) -> None:
        task = self.loop.create_task(request)
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _see_off(self) -> None:
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
        if read < self._write_seconds * WRITE_BYTES_A_SECOND:
            self.transport.abort()
        else:
            self._watch()

    def _written(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _expect(self, seconds: float | None = None) -> None:
        self._relax()
        seconds = HEAD_SECONDS if seconds is None else seconds
        self._patience = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _relax(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _unsupported_upgrade_warning(self) -> None:
        self.logger.debug("a request asked for an upgrade that is not served here")
