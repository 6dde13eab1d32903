"""Begun: what is awaited and has mostly happened already, so that no timeout need be set up."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """Runs an awaitable until it waits, if it does; the rest of it can be awaited.

    To be made and awaited by one task, with nothing awaited in between.
    """

    __slots__ = ("_steps", "_waits_for", "done", "result")

    result: T
    """What came of it, once it is done."""

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._steps: Any = awaitable.__await__()
        self._waits_for: Any = None
        self.done = False
        try:
            self._waits_for = next(self._steps)
        except StopIteration as end:
            self.result = end.value
            self.done = True

    def close(self) -> None:
        """Give up what has not happened yet, instead of awaiting it."""
        self._steps.close()

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
