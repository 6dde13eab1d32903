"""Task groups whose errors come out as themselves, and other ways to wait for something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct

T = TypeVar("T")


class BackgroundTasks(Struct, eq=False):
    """The tasks of one `background_tasks`."""

    tasks: asyncio.TaskGroup
    _started: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin one."""
        task = self.tasks.create_task(work)
        self._started.add(task)
        task.add_done_callback(self._started.discard)
        return task

    def __len__(self) -> int:
        return len(self._started)

    def end(self) -> None:
        """Cancel all tasks; leaving `background_tasks` then waits for them."""
        for task in tuple(self._started):
            task.cancel()


@asynccontextmanager
async def group(tasks: asyncio.TaskGroup | None = None) -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that waits for its tasks; an error of the block is raised ungrouped."""
    failure: Exception | None = None
    async with tasks or asyncio.TaskGroup() as entered:
        try:
            yield entered
        except Exception as error:  # noqa: BLE001 - raised again, outside of the group
            failure = error
    if failure is not None:
        raise failure


@asynccontextmanager
async def background_tasks() -> AsyncIterator[BackgroundTasks]:
    """Have tasks run while entered."""
    async with group() as tasks:
        running = BackgroundTasks(tasks)
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


async def waited(event: asyncio.Event, seconds: float) -> bool:
    """Wait for something, so long at most; whether it has come."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def uninterrupted(
    work: Coroutine[Any, Any, T], failed: Callable[[BaseException], None] | None = None
) -> T:
    """Await work that must not stop halfway; a cancellation takes effect when it is done.

    `failed` is told the error of work whose caller was cancelled, since nobody else hears of it.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    failure = None if task.cancelled() else task.exception()
    if failure is not None and failed is not None:
        failed(failure)
    raise cancelled


class Eager(Generic[T]):
    """Starts an awaitable eagerly: it runs until it first waits; the rest of it can be awaited.

    Most are done by then, so that no timeout or watcher need be set up. It must be made and awaited
    by one task, with nothing awaited in between. Python has eager tasks from 3.12 on.
    """

    __slots__ = ("_steps", "_waits_for", "done", "result")

    result: T

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._steps: Any = awaitable.__await__()
        self._waits_for: Any = None
        self.done = False
        try:
            # As in `step`, without the cost of another call.
            self._waits_for = next(self._steps)
        except StopIteration as end:
            self.result = end.value
            self.done = True

    def close(self) -> None:
        """Give up what has not happened yet, instead of awaiting it."""
        self._steps.close()

    def call_when_woken(self, woken: Callable[[asyncio.Future[Any]], None]) -> bool:
        """Have `woken` called once what it waits for is there; whether that is a future at all.

        Until then no task is needed. `step` goes on then, or a task that awaits the rest.
        """
        future = self._waits_for
        if not asyncio.isfuture(future):
            return False
        # As a task does: the future was yielded, and the one who got it waits for it.
        future._asyncio_future_blocking = False
        future.add_done_callback(woken)
        return True

    def step(self) -> bool:
        """Go on, outside of any task, until it waits again; whether it is done."""
        try:
            self._waits_for = next(self._steps)
        except StopIteration as end:
            self.result = end.value
            self.done = True
        return self.done

    async def rest(self) -> T:
        """The rest of it, as a coroutine for a task."""
        future = self._waits_for
        if asyncio.isfuture(future):
            future._asyncio_future_blocking = True
        return await self

    def __await__(self) -> Generator[Any, Any, T]:
        while not self.done:
            try:
                yield self._waits_for
            except BaseException as error:  # noqa: BLE001 - it is told, and decides
                self._throw(error)
            else:
                self.result = yield from self._steps
                self.done = True
        return self.result

    def _throw(self, error: BaseException) -> None:
        try:
            self._waits_for = self._steps.throw(error)
        except StopIteration as end:
            self.result = end.value
            self.done = True
