"""HTTP connections that can become WebSockets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from folkmoot.transports.protocol import HubProtocol
from folkmoot.transports.websocket.link import Link

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.transports.websocket.limits import LinkLimits
    from folkmoot.transports.websocket.reader import Unfinished

EXTENSION = "folkmoot.websocket"
"""The ASGI extension under which a request for a WebSocket carries its `protocol`."""


class UpgradingProtocol(HubProtocol):
    """One HTTP connection, until a request on it is answered with a WebSocket.

    Such a request reaches the application like any other; while that decides, nothing is read.
    """

    _chunk = b""
    _after_head = b""
    _asked = False
    _upgrading = False
    _stopping = False

    def data_received(self, data: bytes) -> None:
        """Take part of a request, or what follows one that asks for a WebSocket."""
        if self._upgrading:
            self._after_head += data
            return
        self._chunk = data
        super().data_received(data)
        self._chunk = b""

    def on_headers_complete(self) -> None:
        """Let the application have the connection, if it is asked for."""
        self._asked = self.parser.should_upgrade() and self._get_upgrade() == b"websocket"
        if self._asked:
            self.scope["extensions"] = {EXTENSION: {"protocol": self}}
        super().on_headers_complete()
        if self._asked:
            # Whatever follows the head is meant for a WebSocket and cannot be a request.
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """The head of the request for an upgrade is whole."""
        super().on_message_complete()
        self._upgrading = self._asked

    def _should_upgrade(self) -> bool:
        return self._upgrading

    def handle_websocket_upgrade(self) -> None:
        """Keep what came with the head for the WebSocket, and take no more until there is one."""
        raised = sys.exception()
        if raised is not None:
            self._after_head = self._chunk[raised.args[0] :]
        self.flow.pause_reading()

    def on_response_complete(self) -> None:
        """A request before the one for an upgrade was answered."""
        super().on_response_complete()
        if self._upgrading and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self.flow.pause_reading()

    def shutdown(self) -> None:
        """Finish what is in flight; a WebSocket that is being opened closes at once."""
        self._stopping = True
        super().shutdown()

    def switch(
        self,
        answer: bytes,
        limits: LinkLimits,
        unfinished: Unfinished,
        opened: Callable[[Link], None],
        left: Callable[[Link], None],
    ) -> bool:
        """Answer the handshake and give the connection to a link; False when the client left.

        `opened` gets the link before anything that the client sent.
        """
        if self.transport.is_closing():
            return False
        # From here on uvicorn has nothing to answer, and no time limit of its own.
        self.cycle.disconnected = True
        self._relax()
        self._written()
        self._unset_keepalive_if_required()
        # The parser and this protocol hold each other, which would keep both for long.
        self.parser = None  # type: ignore[assignment]
        connections, house, peer = self.connections, self._house, self._peer

        def leave(link: Link) -> None:
            connections.discard(link)
            house.closed(peer)
            left(link)

        link = Link(
            self.transport,
            limits,
            leave=leave,
            unfinished=unfinished,
            owner=peer.account or peer.address,
            paused=self.flow.write_paused,
        )
        connections.discard(self)
        connections.add(link)  # type: ignore[arg-type]
        peer.connection = link
        self.transport.set_protocol(link)
        self.transport.write(answer)
        opened(link)
        if self._after_head:
            link.data_received(self._after_head)
        if link.reading:
            link.resume_reading()
        if self._stopping:
            link.shutdown()
        return True
