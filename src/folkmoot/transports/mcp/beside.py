"""Doing something beside what a block does, for as long as the block lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have the work done meanwhile; an error of the block is raised as it is, and ends the work."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(work)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again, out of the group
            failure = error
        finally:
            working.cancel()
    if failure is not None:
        raise failure
