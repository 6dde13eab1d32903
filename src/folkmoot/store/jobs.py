"""Jobs that callers on the loop hand to threads, and the answers that come back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import apsw

from folkmoot.core import errors as e
from folkmoot.core.ports import Unit
from folkmoot.store.sqlite import translate

if TYPE_CHECKING:
    from folkmoot.store.tx import Published

T = TypeVar("T")


class Job(NamedTuple):
    """A unit or query, and the caller who waits for it."""

    unit: Unit[Any]
    caller: asyncio.Future[Any]


class Answer(NamedTuple):
    """What a job came to: a result, or the error to raise at its caller."""

    caller: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None
    events: tuple[Published, ...] = ()
    """What is published before the caller has the answer, and also where there is none."""


def answer_all(jobs: Iterable[Job], error: e.FolkmootError) -> list[Answer]:
    """The same error for each caller, as separate objects, since tracebacks grow."""
    return [Answer(job.caller, error=type(error)(error.message, **error.data)) for job in jobs]


def deliverable(error: BaseException) -> BaseException:
    """A unit's exception for its caller, wrapped if it would end the caller's loop."""
    if isinstance(error, apsw.Error):
        return translate(error)
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"A unit of the store raised {type(error).__name__}.")
    wrapped.__cause__ = error
    return wrapped


class JobQueue:
    """A bounded queue from the loop to threads: full means refused at once, closed means drained.

    Neither side ever waits for the other's lock: putting never blocks the loop, and answers that
    come close together cross back in one wake-up.
    """

    def __init__(
        self, limit: int, noun: str, publish: Callable[[Published], None] = lambda _: None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._publish = publish
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.take = self._jobs.get
        """Waits, in a thread, for the next job; nothing once the queue is closed and empty.

        With a time to wait, raises `queue.Empty` when it is over.
        """
        self.take_more = self._jobs.get_nowait
        """The next job if one waits already; raises `queue.Empty` otherwise."""
        self._limit = limit
        self._noun = noun
        self.closed = False
        self._answers: deque[Answer] = deque()
        self._waking = False

    @property
    def depth(self) -> int:
        """How many jobs wait."""
        return self._jobs.qsize()

    def require_open(self) -> None:
        """Raise if no more jobs are accepted."""
        if self.closed:
            raise e.StoreClosed("The database is closed.")

    def ask(self, unit: Unit[T]) -> asyncio.Future[T]:
        """Put a job in; its answer is to be awaited."""
        if self.closed:
            self.require_open()
        if self._jobs.qsize() >= self._limit:
            raise e.StoreOverloaded(
                f"More than {self._limit:,} {self._noun} are waiting.", setting="store.queue"
            )
        caller: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(Job(unit, caller))
        return caller

    def answer(self, answers: Iterable[Answer]) -> None:
        """Hand answers to their callers, from a thread."""
        self._answers.extend(answers)
        if not self._waking:
            self._waking = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                self._answers.clear()  # The loop is gone, and with it everyone who waited.

    def _deliver(self) -> None:
        self._waking = False
        while self._answers:
            caller, result, error, events = self._answers.popleft()
            for event in events:
                self._publish(event)
            if caller.done():
                continue
            if error is None:
                caller.set_result(result)
            else:
                caller.set_exception(error)

    def refuse(self) -> None:
        """Accept no more jobs."""
        self.closed = True

    def end(self, threads: int = 1) -> None:
        """End each thread after the accepted jobs."""
        self.refuse()
        for _ in range(threads):
            self._jobs.put(None)
