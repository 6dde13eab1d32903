"""The descriptors of pipes: each is closed once, by whoever it belongs to at the time."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from typing import IO, Self, cast


class Ends:
    """Pipes to a process that is about to start.

    On leaving, the ends that are the process's are closed here, and those of ours that no loop has.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._given: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pipe(self, *, we_read: bool = True) -> tuple[int, int]:
        """A pipe: the end of the process, and ours."""
        read, write = os.pipe()
        mine, its = (read, write) if we_read else (write, read)
        self._stack.callback(os.close, its)
        self._stack.callback(self._close, mine)
        return its, mine

    async def read(self, fd: int, protocol: asyncio.BaseProtocol) -> None:
        """Have the loop read one of our ends."""
        self._given.add(fd)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, given(fd, "rb"))

    async def write(self, fd: int, protocol: asyncio.BaseProtocol) -> None:
        """Have the loop write to one of our ends."""
        self._given.add(fd)
        await asyncio.get_running_loop().connect_write_pipe(lambda: protocol, given(fd, "wb"))

    def _close(self, fd: int) -> None:
        if fd not in self._given:
            os.close(fd)


def given(fd: int, mode: str) -> IO[bytes]:
    """A descriptor for the loop to connect, which has it from then on, also where that fails.

    asyncio closes what it is given, uvloop the descriptor itself. To close it once more would close
    whatever has its number by then.
    """
    by_itself = type(asyncio.get_running_loop()).__module__.partition(".")[0] == "uvloop"
    return cast("IO[bytes]", os.fdopen(fd, mode, 0, closefd=not by_itself))
