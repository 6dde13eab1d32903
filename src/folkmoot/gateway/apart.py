"""Work on what a backend lists, done where it holds nobody up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE: Final = 500
"""Entries that are worked on in the loop: that takes some 10 ms."""


async def apart(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do some work on so many entries; on many, in a thread."""
    if size <= AT_ONCE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
