"""Turns: whose request begins next while the hub is busy.

The hub answers everyone in one thread. While it has time, a request begins as soon as its head has
come. Under load requests wait, and those begin first whose account, or whose address for strangers,
used the least processor time in the last seconds: whoever sends much waits behind whoever asks a
little, but for no longer than about a second. A part of those who wait begins in each turn of the
loop, so that others which arrive meanwhile are noticed soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from time import monotonic
from types import TracebackType
from typing import Any, Final

BEGUN_AT_ONCE: Final = 2
"""How many requests begin in one turn of the loop, at least."""
PART: Final = 4
"""One in so many of those that wait begins in a turn: the more wait, the faster they begin."""
FORGET_SECONDS: Final = 1.0
"""After so long half of what was used is forgotten."""
LITTLE: Final = 0.001
"""Seconds that are not worth remembering."""


class Turns:
    """The requests of one server that wait to begin; there are no more than connections."""

    def __init__(self) -> None:
        self.used: dict[str, float] = {}
        """Seconds of the loop's time that each account or address used lately."""
        self._waiting: list[tuple[float, int, Callable[[], object]]] = []
        self._number = 0
        self._begun = 0
        self._is_turning = False
        self._forgotten = 0.0

    def begin(self, who: str, start: Callable[[], object]) -> None:
        """Call `start` now, or as soon as it is its turn."""
        if self._begun < BEGUN_AT_ONCE and not self._waiting:
            self._begun += 1
            start()
        else:
            self._number += 1
            # Waiting makes up for what was used, so that nobody waits for ever.
            heappush(self._waiting, (monotonic() + self.used.get(who, 0.0), self._number, start))
        if not self._is_turning:
            self._is_turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._forget()
        waiting = self._waiting
        self._begun = min(len(waiting), max(BEGUN_AT_ONCE, len(waiting) // PART))
        for _ in range(self._begun):
            heappop(waiting)[2]()
        if self._begun:
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._is_turning = False

    def _forget(self) -> None:
        now = monotonic()
        if now - self._forgotten >= FORGET_SECONDS:
            self._forgotten = now
            self.used = {who: spent / 2 for who, spent in self.used.items() if spent > LITTLE}


class Metered(Coroutine[Any, Any, None]):
    """A coroutine whose time is counted as its account's or address's, step by step."""

    __slots__ = ("_inner", "_turns", "_who")

    def __init__(self, inner: Coroutine[Any, Any, None], turns: Turns, who: str) -> None:
        self._inner = inner
        self._turns = turns
        self._who = who

    def send(self, value: Any) -> Any:
        """Go on until the coroutine waits again."""
        began = monotonic()
        try:
            return self._inner.send(value)
        finally:
            used = self._turns.used
            used[self._who] = used.get(self._who, 0.0) + monotonic() - began

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        error: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        """Go on with an error, as when the task is cancelled."""
        if isinstance(kind, BaseException):
            return self._inner.throw(kind)
        return self._inner.throw(kind, error, traceback)

    def close(self) -> None:
        """Give the coroutine up."""
        self._inner.close()

    def __await__(self) -> Any:
        """A task drives it step by step; nothing else awaits it."""
        return self._inner.__await__()
