"""uvicorn's connection with limits it does not have: on the size and the time of a request's head.

Without them a thousand connections that never finish their first line would be a full house.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

HEAD_SECONDS = 20.0
HEAD_BYTES = 65_536
CROWD = 2
"""How many times as many connections may be open as are served; those are told when they ask."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class HubProtocol(HttpToolsProtocol):
    """One HTTP connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._patience: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the head of the first request, unless even waiting for it costs too much."""
        super().connection_made(transport)
        if self.limit_concurrency and len(self.connections) > CROWD * self.limit_concurrency:
            transport.abort()
        else:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._relax()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Refuse a head that grows without end."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """A further request begins on the connection."""
        super().on_message_begin()
        self._in_head = True
        self._expect()

    def on_headers_complete(self) -> None:
        """The head is here; from now on the application decides how long things may take."""
        self._in_head = False
        self._head_bytes = 0
        self._relax()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Do not wait long for the rest of a body that was answered before it was complete."""
        super().on_response_complete()
        if self.cycle.more_body:
            self._expect()

    def _expect(self) -> None:
        self._relax()
        self._patience = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _relax(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _unsupported_upgrade_warning(self) -> None:
        self.logger.debug("a request asked for an upgrade that is not served here")
