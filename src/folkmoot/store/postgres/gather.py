"""Gathering: what is asked while a statement runs goes into the next one.

A statement costs a round trip however much it asks for, so many callers at the same moment should
share one. Nobody waits for company: whoever comes first is asked for at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from folkmoot.core import errors as e

K = TypeVar("K")
V = TypeVar("V")

MAX_GATHERED = 1_000
"""Callers that one statement answers; further ones wait for the next."""

Ask: TypeAlias = Callable[[list[K]], Awaitable[Sequence[V]]]
"""Answers some questions, each in its place."""
Start: TypeAlias = Callable[[Coroutine[Any, Any, None]], Any]
"""Begins something that goes on to its end, whoever leaves meanwhile."""


class Gatherer(Struct, Generic[K, V], eq=False):
    """Asks for many callers at once, one statement after the other."""

    ask: Ask[K, V]
    start: Start
    most_waiting: int
    _waiting: list[tuple[K, asyncio.Future[V]]] = []
    _running: bool = False

    async def get(self, question: K) -> V:
        """What is answered to a question by a statement that begins after this call."""
        if len(self._waiting) >= self.most_waiting:
            raise e.StoreOverloaded(
                f"More than {self.most_waiting:,} reads are waiting.", setting="store.queue"
            )
        answer: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if not self._running:
            self._running = True
            self.start(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                asked = self._waiting[:MAX_GATHERED]
                del self._waiting[:MAX_GATHERED]
                try:
                    answers = await self.ask([question for question, _ in asked])
                except Exception as error:  # noqa: BLE001 - it is each caller's
                    for _, waiting in asked:
                        if not waiting.done():
                            waiting.set_exception(error)
                    continue
                for (_, waiting), answer in zip(asked, answers, strict=True):
                    # Whoever left is not told.
                    if not waiting.done():
                        waiting.set_result(answer)
        finally:
            self._running = False
