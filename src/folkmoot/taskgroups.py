"""Task groups whose errors come out as themselves, and what a task does that others can end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Self

from msgspec import Struct


class Aside:
    """The tasks of one `aside`."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._started: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin one."""
        task = self._tasks.create_task(work)
        self._started.add(task)
        task.add_done_callback(self._started.discard)

    def end(self) -> None:
        """End all of them."""
        for task in tuple(self._started):
            task.cancel()


@asynccontextmanager
async def group(tasks: asyncio.TaskGroup | None = None) -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks that are ended by whoever entered; what fails there comes out as itself, ungrouped."""
    failure: Exception | None = None
    async with tasks or asyncio.TaskGroup() as entered:
        try:
            yield entered
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


class Interruptible(Struct, eq=False, kw_only=True):
    """What the current task does while this is entered. `stop` ends it, and its reason is raised.

    Whoever else cancels the task still means the task, as with a timeout.
    """

    _task: asyncio.Task[Any] | None = None
    _cancelling: int = 0
    _why: Exception | None = None

    def __enter__(self) -> Self:
        self._task = task = asyncio.current_task()
        if task is not None:
            self._cancelling = task.cancelling()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task, self._task = self._task, None
        why = self._why
        if (
            why is not None
            and task is not None
            and task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise why

    def stop(self, why: Exception) -> None:
        """Have it end now, wherever it waits, unless it has ended or is about to."""
        if self._task is not None and self._why is None:
            self._why = why
            self._task.cancel()
