"""Files and terminals, which no event loop can wait for: a thread reads or writes each.

Both stand where asyncio's pipe transports stand and tell their protocol the same things. Their
threads are daemons, since nothing can end the reading of a terminal.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")

CHUNK = 64 * 1024
HIGH, LOW = 64 * 1024, 16 * 1024


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
        """Read nothing more for now."""
        self._paused = True

    def resume_reading(self) -> None:
        """Read on."""
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
        """Write this after what was given before."""
        self._size += len(data)
        self._queue.put(data)
        if self._size > HIGH and not self._paused:
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
        if self._paused and self._size <= LOW:
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
