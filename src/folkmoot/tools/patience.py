"""Waiting for something that may come too late for the one who asked."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from folkmoot.core.errors import TokenInvalid

if TYPE_CHECKING:
    from folkmoot.tools.model import Caller

T = TypeVar("T")


async def patiently(caller: Caller, work: Coroutine[Any, Any, T]) -> T | None:
    """What a call that waits comes to, or None when its caller leaves first.

    Time has passed: what authenticated the caller must still do so.
    """
    found = await unless(caller.leaving, work)
    if caller.confirm is not None and not await caller.confirm():
        raise TokenInvalid
    return found


async def unless(event: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work comes to, or None when the event comes first; then the work is cancelled."""
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        waiting.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
