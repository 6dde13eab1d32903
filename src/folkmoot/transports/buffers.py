"""Large buffers: how the memory of request bodies and answers goes back to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

MMAP_THRESHOLD: Final = -3
"""The number that `mallopt` of the GNU C library knows this option by."""
LARGE_BYTES: Final = 131_072


def return_large_buffers() -> None:
    """Have the C library give large buffers back to the system as soon as they are freed.

    That of GNU does so by itself until the first of a size was freed. From then on those of that
    size lie among small ones, and a hub that had many large requests at once keeps their memory.
    Other C libraries have no such option.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BYTES)
