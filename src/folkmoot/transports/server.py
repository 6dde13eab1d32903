"""Runs uvicorn on sockets that already listen, stops it in order, and keeps its memory small."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import uvicorn

from folkmoot.transports.accept import Listener, TurnedAway
from folkmoot.transports.bodies import nobody, nowhere
from folkmoot.transports.connections import OpenConnections
from folkmoot.transports.limits import (
    CANCEL_SECONDS,
    COLLECT_AFTER_OBJECTS,
    COLLECT_AFTER_YOUNG,
    COLLECT_SECONDS,
    DATE_SECONDS,
    DRAIN_SECONDS,
    HEAD_SECONDS,
    KEEP_ALIVE_SECONDS,
    LARGE_BUFFER_BYTES,
    LISTEN_BACKLOG,
)
from folkmoot.transports.listen import close
from folkmoot.transports.protocol import HubProtocol

MMAP_THRESHOLD: Final = -3
"""The number that `mallopt` of the GNU C library knows this option by."""


def return_large_buffers() -> None:
    """Have the C library give large buffers back to the system as soon as they are freed.

    That of GNU does so by itself until the first of a size was freed. From then on those of that
    size lie among small ones, and a hub that had many large requests at once keeps their memory.
    Other C libraries have no such option.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BUFFER_BYTES)


@asynccontextmanager
async def collecting_seldom(seconds: float = COLLECT_SECONDS) -> AsyncIterator[None]:
    """Look through all objects for garbage once in so many seconds, instead of every few.

    A full collection stops everything, for longer the more a hub holds: a tenth of a second with
    250,000 objects. What is here from the start stays, and is never looked through again.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER_OBJECTS, thresholds[1], COLLECT_AFTER_YOUNG)

    async def collect() -> None:
        while True:
            await asyncio.sleep(seconds)
            gc.collect()

    try:
        async with asyncio.TaskGroup() as tasks:
            collecting = tasks.create_task(collect())
            yield
            collecting.cancel()
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Generator

    from starlette.types import ASGIApp, Scope

    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.transports.bodies import Identify

    Protocols: TypeAlias = Callable[[], asyncio.Protocol]


class _Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers, which would raise the signal again after the stop."""

    def __init__(
        self, config: uvicorn.Config, listener: Callable[[socket.socket, Protocols], Listener]
    ) -> None:
        super().__init__(config)
        self.servers: list[Listener] = []  # type: ignore[assignment]
        self.listening = asyncio.Event()
        self.stopping = asyncio.Event()
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

    async def main_loop(self) -> None:
        """Keep the time until the stop, which uvicorn would notice a tenth of a second later."""
        while not self.stopping.is_set():
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), DATE_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and wait for what is in flight, within the grace time.

        uvicorn would wait a tenth of a second, or several, also when there is nothing.
        """
        for server in self.servers:
            server.close()
        close(sockets or [])
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self._is_busy() and not self.force_exit:  # noqa: ASYNC110 - uvicorn has no event
                    await asyncio.sleep(DRAIN_SECONDS)
                for server in self.servers:
                    await server.wait_closed()

    def _is_busy(self) -> bool:
        return bool(self.server_state.connections or self.server_state.tasks)


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
        locate: Callable[[Scope], str] = nowhere,
        identify: Identify = nobody,
        metrics: Metrics | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._sockets = sockets
        self._away = TurnedAway(metrics)
        house = OpenConnections(
            max_connections,
            self._away,
            per_address=per_address,
            per_account=per_account,
            address_of=address_of,
            locate=locate,
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
            most=max(max_connections, LISTEN_BACKLOG),
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
        self._away.log()
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
        self._uvicorn.stopping.set()
        self._uvicorn.force_exit = self._uvicorn.force_exit or force
