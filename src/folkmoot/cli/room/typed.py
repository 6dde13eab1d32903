"""Lines from the standard input while something else goes on, whatever the input is.

A pipe, a file and a terminal are waited for in different ways, and a file in none; so a thread of
its own reads, and is left behind when nobody wants more.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from threading import Semaphore, Thread
from typing import Final

from folkmoot.core.errors import MessageTooLarge

CHUNK: Final = 65_536
MAX_LINE: Final = 4 * 1024 * 1024
AHEAD: Final = 64
"""Chunks that are read before those in front of them are wanted."""
_END: Final = b""


async def typed_lines(descriptor: int) -> AsyncIterator[str]:
    """The lines of a descriptor without their ends, and without those that are empty."""
    rest = b""
    async for chunk in _chunks(descriptor):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if text := _text(line):
                yield text
        if len(rest) > MAX_LINE:
            raise MessageTooLarge("A line of the standard input is longer than 4 MiB.")
    if text := _text(rest):
        yield text


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    room = Semaphore(AHEAD)

    def read() -> None:
        while True:
            room.acquire()
            try:
                # Not through `sys.stdin`: its lock would be held when the program ends.
                chunk = os.read(descriptor, CHUNK)
            except OSError:
                chunk = _END
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:
                # The loop is closed: nobody wants more.
                return
            if chunk == _END:
                return

    Thread(target=read, name="standard input", daemon=True).start()
    while (chunk := await chunks.get()) != _END:
        yield chunk
        room.release()
