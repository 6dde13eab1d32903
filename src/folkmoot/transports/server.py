"""Serves HTTP on sockets that already listen, stops in order, and keeps its memory small."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from folkmoot.transports.accept import Listener, TurnedAway
from folkmoot.transports.bodies import nobody, nowhere
from folkmoot.transports.connections import OpenConnections
from folkmoot.transports.limits import (
    COLLECT_AFTER_OBJECTS,
    COLLECT_AFTER_YOUNG,
    COLLECT_SECONDS,
    DATE_SECONDS,
    DRAIN_SECONDS,
    HEAD_SECONDS,
    LARGE_BUFFER_BYTES,
    LISTEN_BACKLOG,
)
from folkmoot.transports.listen import close
from folkmoot.transports.protocol import HubProtocols

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
    from collections.abc import Callable

    from starlette.types import ASGIApp, Scope

    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.transports.bodies import Identify


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
        open_connections = OpenConnections(
            max_connections,
            self._away,
            per_address=per_address,
            per_account=per_account,
            address_of=address_of,
            locate=locate,
            identify=identify,
            metrics=metrics,
        )
        self._protocols = HubProtocols(app, open_connections)
        self._listen = partial(
            Listener,
            protocol=self._protocols,
            most=max(max_connections, LISTEN_BACKLOG),
            address_of=address_of,
            turned_away=self._away.count,
            tls=tls,
            handshake_seconds=None if tls is None else HEAD_SECONDS,
        )
        self._listeners: list[Listener] = []
        self._shutdown_seconds = shutdown_seconds
        self._listening = asyncio.Event()
        self._stopping = asyncio.Event()
        self._forced = False

    async def serve(self) -> None:
        """Serve until `stop`, then finish what is in flight within the grace time."""
        try:
            self._listeners = [self._listen(each) for each in self._sockets]
            self._listening.set()
            while not self._stopping.is_set():
                self._protocols.tell_date()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), DATE_SECONDS)
            await self._finish()
        finally:
            await self._clear()

    def _close(self) -> None:
        for listener in self._listeners:
            listener.close()
        close(self._sockets)

    async def _finish(self) -> None:
        """Accept nothing more, and wait for what is in flight, within the grace time."""
        self._close()
        self._protocols.finish()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._shutdown_seconds):
                while self._protocols.is_busy and not self._forced:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(DRAIN_SECONDS)
                for listener in self._listeners:
                    await listener.wait_closed()

    async def _clear(self) -> None:
        """Leave nothing open, also when the serving itself was cancelled."""
        self._close()
        self._away.log()
        await self._protocols.cancel()
        for transport in self._protocols.transports():
            transport.abort()

    async def listening(self) -> None:
        """Wait until requests are answered."""
        await self._listening.wait()

    def stop(self, *, force: bool = False) -> None:
        """Stop accepting; with `force`, do not wait for what is in flight either."""
        self._stopping.set()
        self._forced = self._forced or force
