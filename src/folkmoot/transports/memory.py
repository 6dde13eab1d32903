"""Memory of a process that serves for long: large buffers and garbage."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

MMAP_THRESHOLD: Final = -3
"""The number that `mallopt` of the GNU C library knows this option by."""
LARGE_BYTES: Final = 131_072
COLLECT_SECONDS: Final = 60.0
COLLECT_SOONER: Final = 100
"""A full collection is due after so many of the younger generation, each of which comes after
thousands of new objects; Python would do one after ten.
"""


def return_large_buffers() -> None:
    """Have the C library give large buffers back to the system as soon as they are freed.

    That of GNU does so by itself until the first of a size was freed. From then on those of that
    size lie among small ones, and a hub that had many large requests at once keeps their memory.
    Other C libraries have no such option.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BYTES)


@asynccontextmanager
async def collecting_seldom(seconds: float = COLLECT_SECONDS) -> AsyncIterator[None]:
    """Look through all objects for garbage once in so many seconds, instead of every few.

    A full collection stops everything, for longer the more a hub holds: a tenth of a second with
    250,000 objects. What is here from the start stays, and is never looked through again.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(thresholds[0], thresholds[1], COLLECT_SOONER)

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
