"""The operator's way into a running proxy: what it holds, and how it is, on a socket of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from folkmoot import __version__
from folkmoot.datafolder.sockets import proxy_socket
from folkmoot.operations import Services
from folkmoot.operations.operator.hub import HubStatus
from folkmoot.transports.operator_app import operator_app
from folkmoot.transports.operator_socket import OperatorSocket

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock
    from folkmoot.proxy.held import HeldMessages


class ProxyOperator:
    """Listens from the start; a task group owns `serve`, and `close` comes last."""

    def __init__(self, held: HeldMessages, clock: Clock) -> None:
        started = clock.monotonic()
        self._services = Services(
            held=held,
            status=lambda: HubStatus(os.getpid(), __version__, clock.monotonic() - started, ""),
        )
        self._socket = OperatorSocket(proxy_socket())
        self._socket.listen()

    async def serve(self) -> None:
        """Answer the operator until cancelled."""
        await self._socket.serve(operator_app(self._services))

    def close(self) -> None:
        """Remove the socket; safe to call again."""
        self._socket.close()
