"""Messages in lines over pipes: read in big pieces, written once per turn of the event loop.

A pipe or a socket is the loop's. Files and terminals, which no event loop can wait for, are read
and written by a thread each; those stand where asyncio's pipe transports stand and tell their
protocol the same things. Their threads are daemons, since nothing can end the reading of a
terminal.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import IO, Any, Final, TypeVar, cast

from folkmoot.core import errors as e
from folkmoot.mcp.framing import LineSplitter

T = TypeVar("T")

HIGH: Final = 1024 * 1024
LOW: Final = HIGH // 4
"""Reading stops while more bytes wait than the first, and goes on below the second."""
AT_ONCE: Final = 256 * 1024
"""More than so many bytes do not wait for the end of the turn."""
LOG_LINE: Final = 64 * 1024
"""A longer line of a log is passed on in pieces."""
CHUNK: Final = 64 * 1024
WRITING_HIGH: Final = 64 * 1024
WRITING_LOW: Final = 16 * 1024
"""Whoever writes to a thread waits while more bytes are unwritten than the first."""


class PipeReader(asyncio.Protocol):
    """Feeds a pipe to a `LineSplitter`; nothing is dropped, the other side waits instead."""

    def __init__(self, lines: LineSplitter) -> None:
        self.ended = False
        self.over = asyncio.Event()
        """Set once nothing more comes."""
        self._lines = lines
        self._paused = False
        self._quiet = True
        self._came = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._quiet = False
        self._lines.feed(data)
        self._came.set()
        if self._lines.waiting > HIGH and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """The other side says nothing more."""
        self.end()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._transport = None
        self.end()

    def end_after(self, seconds: float) -> None:
        """End once nothing came for so long; while reading is paused, there may be more."""
        self._quiet = False
        self._end_if_quiet(seconds)

    def _end_if_quiet(self, seconds: float) -> None:
        if self._quiet and not self._paused:
            self.end()
        elif not self.ended:
            self._quiet = True
            asyncio.get_running_loop().call_later(seconds, self._end_if_quiet, seconds)

    def end(self) -> None:
        """Wait for nothing more."""
        if not self.ended:
            # The last line may lack its end.
            self._lines.feed(b"\n")
        self.ended = True
        self.over.set()
        self._came.set()

    async def more(self) -> None:
        """Wait until there is more to take, or nothing more comes."""
        if not self.ended:
            self._came.clear()
            await self._came.wait()

    def go_on(self) -> None:
        """Something was taken: read on if enough was."""
        if self._paused and self._lines.waiting < LOW and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self.end()


class PipeWriter(asyncio.BaseProtocol):
    """Writes lines to a pipe, those of one turn of the loop together."""

    def __init__(self, on_lost: Callable[[], None] | None = None) -> None:
        self.closed = False
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0
        self._free = asyncio.Event()
        self._free.set()
        self._gone = asyncio.Event()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def pause_writing(self) -> None:
        """The other side reads more slowly than we write."""
        self._free.clear()

    def resume_writing(self) -> None:
        """The other side has caught up."""
        self._free.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Nobody reads any more, or all is written and closed."""
        self.closed = True
        self._transport = None
        self._parts.clear()
        self._free.set()
        self._gone.set()
        if self._on_lost is not None:
            self._on_lost()

    def write(self, line: bytes) -> None:
        """Have a line leave with the others of this turn."""
        if self.closed:
            raise e.TransportClosed("The server no longer reads its input.")
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts += (line, b"\n")
        self._size += len(line)
        if self._size > AT_ONCE:
            self._flush()

    @property
    def free(self) -> bool:
        """Whether more may be written at once."""
        return self._free.is_set()

    async def room(self) -> None:
        """Wait until not too much is unwritten."""
        await self._free.wait()

    def _flush(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts and not self.closed and self._transport is not None:
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Write what is left, and close our end."""
        self._flush()
        self.closed = True
        self._free.set()
        if self._transport is not None:
            self._transport.close()

    async def finish(self, seconds: float) -> None:
        """Write what is left, for so long at most, and close our end."""
        self.close()
        if self._transport is None:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        except TimeoutError:
            self.abort()

    def abort(self) -> None:
        """Close our end and drop the unwritten rest."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()


class LogReader(asyncio.Protocol):
    """Passes on a log line by line."""

    def __init__(self, tell: Callable[[bytes], None]) -> None:
        self._tell = tell
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        """Pass on the lines that are whole."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tell(line)
        if len(self._rest) > LOG_LINE:
            self._tell(self._rest)
            self._rest = b""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Pass on the last line, if it had no end."""
        if self._rest:
            self._tell(self._rest)
            self._rest = b""


async def read_from(fd: int, reader: asyncio.Protocol) -> None:
    """Read from a descriptor without owning it."""
    if _loop_can_wait_for(fd):
        file = given(os.dup(fd), "rb")
        await asyncio.get_running_loop().connect_read_pipe(lambda: reader, file)
    else:
        reader.connection_made(cast("Any", ThreadReader(fd, reader)))


async def write_to(fd: int, writer: asyncio.BaseProtocol) -> None:
    """Write to a descriptor without owning it."""
    if _loop_can_wait_for(fd):
        file = given(os.dup(fd), "wb")
        await asyncio.get_running_loop().connect_write_pipe(lambda: writer, file)
    else:
        writer.connection_made(cast("Any", ThreadWriter(fd, writer)))


def given(fd: int, mode: str) -> IO[bytes]:
    """A descriptor for the loop to connect, which has it from then on, also where that fails.

    asyncio closes what it is given, uvloop the descriptor itself. To close it once more would close
    whatever has its number by then.
    """
    by_itself = type(asyncio.get_running_loop()).__module__.partition(".")[0] == "uvloop"
    return cast("IO[bytes]", os.fdopen(fd, mode, 0, closefd=not by_itself))


def _loop_can_wait_for(fd: int) -> bool:
    """Pipes and sockets; to make a terminal non-blocking would do so for all who share it."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class ThreadReader:
    """Reads a descriptor. One chunk is on its way at a time, and none while reading is paused."""

    def __init__(self, fd: int, protocol: asyncio.Protocol) -> None:
        self._fd = fd
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._go = threading.Event()
        self._go.set()
        self._paused = self._closed = False
        threading.Thread(target=self._run, name="folkmoot-stdin", daemon=True).start()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._go.set()

    def close(self) -> None:
        """Hear nothing more of it."""
        self._closed = True
        self._go.set()

    def _run(self) -> None:
        while self._go.wait() and not self._closed:
            self._go.clear()
            try:
                chunk = _read(self._fd)
            except OSError:
                chunk = b""
            if not _tell(self._loop, self._take, chunk) or not chunk:
                return

    def _take(self, chunk: bytes) -> None:
        if self._closed:
            return
        if chunk:
            self._protocol.data_received(chunk)
            if not self._paused:
                self._go.set()
        else:
            self._protocol.eof_received()


class ThreadWriter:
    """Writes a descriptor, in order."""

    def __init__(self, fd: int, protocol: asyncio.BaseProtocol) -> None:
        self._fd = os.dup(fd)
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._size = 0
        self._paused = self._closing = False
        threading.Thread(target=self._run, name="folkmoot-stdout", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Queue data for the writing thread."""
        self._size += len(data)
        self._queue.put(data)
        if self._size > WRITING_HIGH and not self._paused:
            self._paused = True
            self._protocol.pause_writing()

    def is_closing(self) -> bool:
        """Whether nothing more is taken."""
        return self._closing

    def close(self) -> None:
        """Take nothing more; what was given is still written."""
        if not self._closing:
            self._closing = True
            self._queue.put(None)

    def abort(self) -> None:
        """The same: a write that has begun cannot be called back."""
        self.close()

    def _run(self) -> None:
        error: OSError | None = None
        try:
            while (data := self._queue.get()) is not None:
                _write(self._fd, data)
                if not _tell(self._loop, self._written, len(data)):
                    return
        except OSError as broken:
            error = broken
        finally:
            os.close(self._fd)
        _tell(self._loop, self._lost, error)

    def _written(self, count: int) -> None:
        self._size -= count
        if self._paused and self._size <= WRITING_LOW:
            self._paused = False
            self._protocol.resume_writing()

    def _lost(self, error: OSError | None) -> None:
        self._closing = True
        self._protocol.connection_lost(error)


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[T], None], told: T) -> bool:
    """Have the loop do something, unless it is closed."""
    try:
        loop.call_soon_threadsafe(what, told)
    except RuntimeError:
        return False
    return True


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            # Whoever shares a terminal with us may have set it so.
            select.select([fd], [], [])


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            select.select([], [fd], [])
