"""Standard input and output as the front uses them: read with a brake, written in few writes."""

from __future__ import annotations

import asyncio
import os
import stat
from typing import TYPE_CHECKING, Final, Protocol

from folkmoot.mcp.client.ends import given
from folkmoot.mcp.server.threads import ThreadReader, ThreadWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.mcp.lines import Lines

WAITING: Final = 256 * 1024
"""So many bytes may wait to be looked at before reading pauses."""
UNSENT: Final = 256 * 1024
"""So many bytes may wait to be written before the sender waits."""


class _Reading(Protocol):
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...


class _Writing(Protocol):
    def write(self, data: bytes) -> None: ...
    def is_closing(self) -> bool: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class Incoming(asyncio.Protocol):
    """What comes in. It is read only as fast as someone takes it."""

    def __init__(self, lines: Lines) -> None:
        self.ended = False
        self.end = asyncio.Event()
        self._lines = lines
        self._reading: _Reading | None = None
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None

    async def open(self, fd: int) -> None:
        """Begin to read."""
        if _loop_can_wait_for(fd):
            loop = asyncio.get_running_loop()
            await loop.connect_read_pipe(lambda: self, given(os.dup(fd), "rb"))
        else:
            self._reading = ThreadReader(fd, self)

    async def more(self) -> None:
        """Wait until there is something new to take, or nothing will come any more."""
        if self._paused and self._reading is not None and not self.ended:
            self._paused = False
            self._reading.resume_reading()
        if not self.ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def close(self) -> None:
        """Read nothing more."""
        if self._reading is not None:
            self._reading.close()
        self._end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Reading has begun."""
        self._reading = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Keep a chunk, and read no more while too much waits."""
        self._lines.feed(data)
        if self._lines.waiting > WAITING and not self._paused and self._reading is not None:
            self._paused = True
            self._reading.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The last line may lack its end."""
        if not self.ended:
            self._lines.feed(b"\n")
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Nothing will come any more."""
        self.eof_received()

    def _end(self) -> None:
        self.ended = True
        self.end.set()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Outgoing(asyncio.BaseProtocol):
    """What goes out: the lines of one turn of the loop leave in one write."""

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self.lost = False
        self._on_lost = on_lost
        self._writing: _Writing | None = None
        self._pending: list[bytes] = []
        self._size = 0
        self._paused = False
        self._waiters: list[asyncio.Future[None]] = []
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, fd: int) -> None:
        """Be ready to write."""
        if _loop_can_wait_for(fd):
            loop = asyncio.get_running_loop()
            await loop.connect_write_pipe(lambda: self, given(os.dup(fd), "wb"))
        else:
            self._writing = ThreadWriter(fd, self)

    @property
    def full(self) -> bool:
        """Whether whoever writes should wait."""
        return self._paused or self._size > UNSENT

    def write(self, line: bytes) -> None:
        """Write a line with this turn's others."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pending += (line, b"\n")
        self._size += len(line) + 1

    async def drained(self) -> None:
        """Wait until not too much is unwritten, or nobody reads any more."""
        while self.full and not self.lost:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    async def close(self, seconds: float) -> None:
        """Write what is left, for so long at most."""
        self._flush()
        if self._writing is None or self.lost:
            return
        self._writing.close()
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._gone)
        except TimeoutError:
            self._writing.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Writing may begin."""
        self._writing = transport  # type: ignore[assignment]

    def pause_writing(self) -> None:
        """The other side is slow."""
        self._paused = True

    def resume_writing(self) -> None:
        """The other side has read on."""
        self._paused = False
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Nobody reads any more, or all is written and closed."""
        self.lost = True
        self._pending.clear()
        self._size = 0
        if not self._gone.done():
            self._gone.set_result(None)
        self._wake()
        self._on_lost()

    def _flush(self) -> None:
        if self._pending and self._writing is not None and not self._writing.is_closing():
            self._writing.write(b"".join(self._pending))
        self._pending.clear()
        self._size = 0
        if not self._paused:
            self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _loop_can_wait_for(fd: int) -> bool:
    """Pipes and sockets; to make a terminal non-blocking would do so for all who share it."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
