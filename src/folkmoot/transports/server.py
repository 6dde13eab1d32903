"""Runs uvicorn on sockets that already listen, and stops it in order."""

from __future__ import annotations

import asyncio
import contextlib
import math
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import uvicorn

from folkmoot.transports.accept import Listener
from folkmoot.transports.away import TurnedAway
from folkmoot.transports.bodies import nobody
from folkmoot.transports.connections import Connections
from folkmoot.transports.listen import BACKLOG, close
from folkmoot.transports.protocol import HEAD_SECONDS, HubProtocol

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Generator

    from starlette.types import ASGIApp

    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.transports.bodies import Identify

    Protocols: TypeAlias = Callable[[], asyncio.Protocol]

CANCEL_SECONDS = 2.0
KEEP_ALIVE_SECONDS = 20
"""How long a connection may be idle between requests. Clients drop theirs after 4 to 15 seconds; a
hub that closes first, or in the same moment, breaks a request that is just being sent.
"""


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers, which would raise the signal again after the stop."""

    def __init__(
        self, config: uvicorn.Config, listener: Callable[[socket.socket, Protocols], Listener]
    ) -> None:
        super().__init__(config)
        self.servers: list[Listener] = []  # type: ignore[assignment]
        self.listening = asyncio.Event()
        self._listener = listener

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals belong to the composition root."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve the sockets, and say so.

        uvicorn would accept one connection in a turn of the loop, and would leave a client that
        begins TLS and falls silent a whole minute.
        """
        await self.lifespan.startup()
        made: Protocols = partial(
            self.config.http_protocol_class,  # type: ignore[call-arg]
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        self.servers = [self._listener(each, made) for each in sockets or []]
        self.started = True
        self.listening.set()


class HttpServer:
    """The HTTP side of a running hub."""

    def __init__(
        self,
        app: ASGIApp,
        sockets: list[socket.socket],
        *,
        max_connections: int,
        shutdown_seconds: float,
        per_address: int = 0,
        per_account: int = 0,
        address_of: Callable[[str], str] = str,
        identify: Identify = nobody,
        metrics: Metrics | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._sockets = sockets
        self._away = TurnedAway(metrics)
        house = Connections(
            max_connections,
            self._away,
            per_address=per_address,
            per_account=per_account,
            address_of=address_of,
            identify=identify,
            metrics=metrics,
        )
        config = uvicorn.Config(
            app,
            http=partial(HubProtocol, house=house),  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=math.ceil(shutdown_seconds),
        )
        listener = partial(
            Listener,
            most=max(max_connections, BACKLOG),
            address_of=address_of,
            turned_away=self._away.count,
            tls=tls,
            handshake_seconds=None if tls is None else HEAD_SECONDS,
        )
        self._uvicorn = _Uvicorn(config, listener)

    async def serve(self) -> None:
        """Serve until `stop`, then finish what is in flight within the grace time."""
        try:
            await self._uvicorn.serve(self._sockets)
        finally:
            await self._clear()

    async def _clear(self) -> None:
        """Leave nothing open, also when the serving itself was cancelled."""
        for server in self._uvicorn.servers:
            server.close()
        close(self._sockets)
        self._away.tell()
        state = self._uvicorn.server_state
        left = list(state.tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_SECONDS)
        for connection in list(state.connections):
            connection.transport.abort()

    async def listening(self) -> None:
        """Wait until requests are answered."""
        await self._uvicorn.listening.wait()

    def stop(self, *, force: bool = False) -> None:
        """Stop accepting; with `force`, do not wait for what is in flight either."""
        self._uvicorn.should_exit = True
        self._uvicorn.force_exit = self._uvicorn.force_exit or force
