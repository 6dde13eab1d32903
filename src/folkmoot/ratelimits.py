"""Rate limits: counters in memory, one for each limit and key.

A window opens with the first event of its key and holds until it is over, so that the time to wait
is always known. Each limit keeps a bounded number of keys; the oldest make room for new ones.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from folkmoot.core.errors import FolkmootError, RateLimited

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from folkmoot.core.ports import Clock

MINUTE, HOUR, DAY = 60, 3_600, 86_400
MOST_KEYS = 100_000
SLOWED_SECONDS = 2.0
"""How long an attempt waits that a limit slows; many wait at the same time, so nobody queues."""

UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1, "second"))


class Limit(Struct, frozen=True):
    """So many times in so many seconds."""

    most: int
    seconds: int
    slows: bool = False
    """Whether what comes beyond is only slowed, so that it locks nobody out."""
    setting: str = ""
    """The setting that it comes from, which its error names."""


class Window(Struct):
    """What was counted since the window of one key opened."""

    opened: float
    count: int


class RateLimits:
    """Counts by limit and key. A limit that is not named here does not exist."""

    def __init__(
        self, clock: Clock, limits: Mapping[str, Limit], *, most_keys: int = MOST_KEYS
    ) -> None:
        self._clock = clock
        self._limits = dict(limits)
        self._most_keys = most_keys
        self._windows: dict[str, OrderedDict[str, Window]] = {
            name: OrderedDict() for name in self._limits
        }

    def take(self, name: str, key: str) -> float:
        """Count one more, or raise `RateLimited` when there were as many as may be.

        Answers how many seconds it has to wait, for a limit that only slows.
        """
        limit = self._limits.get(name)
        if limit is None:
            return 0.0
        windows, now = self._windows[name], self._clock.monotonic()
        self._drop_closed(windows, now - limit.seconds)
        window = windows.get(key)
        if window is None:
            if len(windows) >= self._most_keys:
                windows.popitem(last=False)
            windows[key] = window = Window(now, 0)
        if limit.slows:
            window.count += 1
            return SLOWED_SECONDS if window.count > limit.most else 0.0
        if window.count >= limit.most:
            seconds = max(1, math.ceil(window.opened + limit.seconds - now))
            sentence = f"Rate limit exceeded. Try again in {in_words(seconds)}."
            raise RateLimited(sentence + named(limit.setting), retry_after=seconds)
        window.count += 1
        return 0.0

    def give_back(self, name: str, key: str) -> None:
        """Take one back that turned out not to count."""
        windows = self._windows.get(name)
        window = windows.get(key) if windows is not None else None
        if windows is None or window is None:
            return
        window.count -= 1
        if window.count <= 0:
            del windows[key]

    @contextmanager
    def guessing(self, name: str, key: str, wrong: type[FolkmootError]) -> Iterator[None]:
        """Around an attempt that counts only if it fails with this error."""
        # Counted before, so that attempts at the same moment cannot all pass below the limit.
        self.take(name, key)
        counts = False
        try:
            yield
        except wrong:
            counts = True
            raise
        finally:
            if not counts:
                self.give_back(name, key)

    def keys(self, name: str) -> int:
        """How many keys a limit remembers."""
        return len(self._windows.get(name, ()))

    @staticmethod
    def _drop_closed(windows: OrderedDict[str, Window], before: float) -> None:
        # Windows of one limit are equally long, so they close in the order they opened.
        while windows and next(iter(windows.values())).opened <= before:
            windows.popitem(last=False)


def named(setting: str) -> str:
    """What the error of a limit says after its sentence: the setting that can be raised."""
    return f" Setting: {setting}." if setting else ""


def in_words(seconds: int) -> str:
    """A time to wait, as people say it: never less than it is."""
    size, unit = next((size, unit) for size, unit in UNITS if seconds >= 2 * size or size == 1)
    count = math.ceil(seconds / size)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
