"""Writes lines from a thread of its own, so that whoever logs never waits for a slow reader.

A pipe that nobody reads fills up and then blocks its writer: here that is this thread alone. What
does not fit into the queue meanwhile is dropped, counted, and told in a line once there is room.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, TextIO

from folkmoot.telemetry.limits import (
    FLUSH_SECONDS,
    LOG_BATCH_BYTES,
    MAX_QUEUED_LOG_BYTES,
    PAUSE_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Dropped:
    """How many lines this process has dropped."""

    lines = 0


dropped = Dropped()


class LineWriter:
    """A bounded queue of lines before a file descriptor, for as long as the process lives."""

    def __init__(self, descriptor: int, note: Callable[[int], str]) -> None:
        self._descriptor = descriptor
        self._note = note
        """Makes the line that tells how many were dropped."""
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        # Reentrant: a record may be logged by whatever the collector ends while this is held.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._busy = False
        self._hurry = False
        self._thread: threading.Thread | None = None

    def put(self, line: str) -> None:
        """Have the line written soon; never waits for the reader."""
        if self._process != os.getpid():
            # After a fork: the thread and what it holds stayed with the parent.
            self._begin()
        data = line.encode("utf-8", "backslashreplace")
        with self._lock:
            if self._size + len(data) > MAX_QUEUED_LOG_BYTES:
                self._drop(1)
                return
            if self._lost:
                self._tell_lost()
            self._queue.append(data)
            self._size += len(data)
            if self._thread is None:
                self._start()
            if not self._busy:
                self._changed.notify_all()

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until everything is written, for a bounded time; answers whether it is."""
        if self._process != os.getpid():
            return True
        ends = time.monotonic() + seconds
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            while self._queue or self._busy or self._lost:
                left = ends - time.monotonic()
                if left <= 0 or self._thread is None:
                    return False
                self._changed.wait(left)
        return True

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="folkmoot-log", daemon=True)
        try:
            # A thread that begins while the interpreter ends never runs, and its start never ends.
            if not sys.is_finalizing():
                thread.start()
                self._thread = thread
                return
        except RuntimeError:
            pass
        # Too late in the life of the process, or too many threads: write here if that is possible
        # at once, so that the last words come out.
        self._write_here()

    def _write_here(self) -> None:
        while self._queue:
            data = self._next_batch()
            if self._writable(0):
                self._write(data)
            else:
                self._drop(data.count(b"\n"))

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue:
                    self._busy = self._hurry = False
                    self._changed.notify_all()
                    self._changed.wait()
                data = self._next_batch()
                self._busy = True
            self._write(data)
            with self._changed:
                if self._lost and not self._queue:
                    self._tell_lost()
                if not self._hurry and self._size < LOG_BATCH_BYTES:
                    # While it is busy only whoever is in a hurry wakes it.
                    self._changed.wait(PAUSE_SECONDS)

    def _next_batch(self) -> bytes:
        """The next lines, as many as make a good write."""
        taken = [self._queue.popleft()]
        size = len(taken[0])
        while self._queue and size + len(self._queue[0]) <= LOG_BATCH_BYTES:
            taken.append(self._queue.popleft())
            size += len(taken[-1])
        self._size -= size
        return b"".join(taken)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                self._writable(None)
            except OSError:
                # Nobody is there, or the disk is full: there is no one to tell but the metrics.
                dropped.lines += bytes(left).count(b"\n")
                return

    def _writable(self, milliseconds: int | None) -> bool:
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLOUT)
        return bool(waiting.poll(milliseconds))

    def _drop(self, lines: int) -> None:
        dropped.lines += lines
        self._lost += lines

    def _tell_lost(self) -> None:
        lost, self._lost = self._lost, 0
        data = self._note(lost).encode("utf-8", "backslashreplace")
        self._queue.append(data)
        self._size += len(data)


def descriptor_of(stream: TextIO) -> int | None:
    """A descriptor of our own for what a stream writes to, if it is a file of the system.

    Of our own, because the number of a stream that was closed soon belongs to another file.
    """
    try:
        return os.dup(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return None
