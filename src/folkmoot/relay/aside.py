"""Tasks that run beside something, and end when it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


class Aside:
    """The tasks of one `aside`."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._started: list[asyncio.Task[None]] = []

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin one."""
        self._started.append(self._tasks.create_task(work))

    def end(self) -> None:
        """End all of them."""
        for task in self._started:
            task.cancel()


@asynccontextmanager
async def group() -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks that are ended by whoever entered; what fails there comes out as itself, ungrouped."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised again, outside of the group
            failure = error
    if failure is not None:
        raise failure


@asynccontextmanager
async def aside() -> AsyncIterator[Aside]:
    """Have tasks run while entered."""
    async with group() as tasks:
        running = Aside(tasks)
        try:
            yield running
        finally:
            running.end()
