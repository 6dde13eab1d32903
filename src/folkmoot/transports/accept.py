"""Accepts connections, many in one turn of the event loop, and counts those that find no room."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import field

from folkmoot.core.entity import Entity
from folkmoot.transports.limits import (
    ACCEPT_PAUSE_SECONDS,
    ADDRESS_SHARE,
    MAX_ACCEPTED_PER_TURN,
    MAX_BEGUN_PER_TURN,
    REJECTED_LOG_SECONDS,
)

if TYPE_CHECKING:
    import ssl

    from folkmoot.telemetry.metrics import Metrics


class TurnedAway(Entity):
    """Connections answered 503, or not at all, because the hub was full."""

    metrics: Metrics | None = None
    _untold: int = 0
    _timer: asyncio.TimerHandle | None = None

    def count(self) -> None:
        """One more found no room."""
        if self.metrics is not None:
            self.metrics.turned_away.inc()
        self._untold += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(REJECTED_LOG_SECONDS, self.log)

    def log(self) -> None:
        """Log how many there were since the last time, if any."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._untold:
            logger.warning("connections were turned away", extra={"count": self._untold})
            self._untold = 0


logger = logging.getLogger("folkmoot.http")

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Listener(Entity):
    """A listening socket whose connections are served by a protocol.

    `most` bounds the connections that are accepted and not served yet, be it that they wait or that
    their TLS handshake does; further ones are closed. So are those that `admits` does not admit.
    """

    listening: socket.socket
    protocol: Callable[[], asyncio.Protocol]
    most: int
    address_of: Callable[[str], str]
    turned_away: Callable[[], None]
    admits: Callable[[socket.socket], bool] | None = None
    tls: ssl.SSLContext | None = None
    handshake_seconds: float | None = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _queues: dict[str, deque[socket.socket]] = {}
    """What waits to be begun, by address; the address whose turn is next stands first."""
    _queued: int = 0
    _beginning: dict[asyncio.Task[None], socket.socket] = {}
    _next_turn: asyncio.Handle | None = None
    _pause: asyncio.TimerHandle | None = None
    _closed: bool = False

    def __post_init__(self) -> None:
        self._loop.add_reader(self.listening, self._accept)

    def close(self) -> None:
        """Accept no more, and let go of what was not begun."""
        if self._closed:
            return
        self._closed = True
        if self._pause is None:
            self._loop.remove_reader(self.listening)
        else:
            self._pause.cancel()
        if self._next_turn is not None:
            self._next_turn.cancel()
        self.listening.close()
        for queue in self._queues.values():
            for connection in queue:
                connection.close()
        self._queues.clear()
        self._queued = 0
        if self.tls is not None:
            for task in self._beginning:
                task.cancel()

    async def wait_closed(self) -> None:
        """Wait for the handshakes that were under way."""
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _accept(self) -> None:
        for _ in range(MAX_ACCEPTED_PER_TURN):
            try:
                connection, peer = self.listening.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self._rest(error)
                    break
                # The client has left before it was accepted.
                continue
            if self.admits is not None and not self.admits(connection):
                connection.close()
                continue
            self._enqueue(connection, self.address_of(peer[0]) if peer else "")
        if self._next_turn is None:
            self._begin_some()

    def _enqueue(self, connection: socket.socket, address: str) -> None:
        queue = self._queues.get(address)
        if self._queued + len(self._beginning) >= self.most or (
            queue is not None and len(queue) >= self.most // ADDRESS_SHARE
        ):
            self.turned_away()
            connection.close()
            return
        connection.setblocking(False)  # noqa: FBT003
        self._queued += 1
        if queue is None:
            self._queues[address] = deque((connection,))
        else:
            queue.append(connection)

    def _begin_some(self) -> None:
        """Begin a few connections, and go on in the next turn of the loop if there are more."""
        for _ in range(min(MAX_BEGUN_PER_TURN, self._queued)):
            address = next(iter(self._queues))
            queue = self._queues.pop(address)
            connection = queue.popleft()
            self._queued -= 1
            task = self._loop.create_task(self._begin(connection))
            self._beginning[task] = connection
            task.add_done_callback(self._begun)
            if queue:
                self._queues[address] = queue
        self._next_turn = self._loop.call_soon(self._begin_some) if self._queued else None

    async def _begin(self, connection: socket.socket) -> None:
        try:
            transport, _ = await self._loop.connect_accepted_socket(
                self.protocol,
                connection,
                ssl=self.tls,
                ssl_handshake_timeout=self.handshake_seconds,
            )
        except OSError as error:
            # A client that left, or a handshake that failed.
            logger.debug("a connection was not begun", extra={"error": str(error)})
        else:
            if self._closed:
                # It was begun after everyone else was told to finish.
                transport.close()

    def _begun(self, task: asyncio.Task[None]) -> None:
        connection = self._beginning.pop(task)
        if task.cancelled():
            connection.close()

    def _rest(self, error: OSError) -> None:
        """Leave further connections in the system's queue for a moment."""
        logger.warning("no connection can be accepted", extra={"error": str(error)})
        self._loop.remove_reader(self.listening)
        self._pause = self._loop.call_later(ACCEPT_PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self.listening, self._accept)
