"""Rate limits: counters in memory, one for each limit and key.

A window opens with the first event of its key and holds until it is over, so that the time to wait
is always known. A bucket fills at its rate and holds ten seconds' worth, so that a burst passes and
a flood does not. Each limit keeps a bounded number of keys; the oldest make room for new ones.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from folkmoot.core.errors import FolkmootError, RateLimited

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from folkmoot.core.ports import Clock

K = TypeVar("K")

MINUTE, HOUR, DAY = 60, 3_600, 86_400
MOST_KEYS = 100_000
SLOWED_SECONDS = 2.0
"""How long an attempt waits that a limit slows; many wait at the same time, so nobody queues."""

BURST_SECONDS = 10
"""So many seconds' worth of a rate may come at once."""

ROUNDING = 1e-6
"""Seconds that clocks and divisions are off by."""

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
            seconds = max(1, math.ceil(limit.seconds - (now - window.opened)))
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


class TokenBuckets(Generic[K]):
    """A token bucket for each key; the keys longest unused go first when there are many.

    A bucket holds a burst and fills again at a rate, so a burst passes and a flood does not.
    """

    __slots__ = ("_full_at", "_most_keys")

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._full_at: OrderedDict[K, float] = OrderedDict()
        """When the bucket of a key will be full again: what is missing from it, as a time."""

    def take(self, key: K, burst: float, seconds_each: float, now: float) -> int:
        """Take a token and answer 0, or answer in how many seconds there will be one."""
        # A clock that was set back earns nothing, and locks nobody out.
        full_at = min(max(self._full_at.pop(key, now), now), now + burst * seconds_each)
        wait = full_at - now - (burst - 1) * seconds_each
        # What is missing of a token by rounding is not worth a second.
        if wait > ROUNDING:
            self._full_at[key] = full_at
            return max(1, math.ceil(wait - ROUNDING))
        if len(self._full_at) >= self._most_keys:
            self._full_at.popitem(last=False)
        self._full_at[key] = full_at + seconds_each
        return 0


class Rate(Struct, frozen=True):
    """So many messages and so many bytes a second."""

    messages: int
    bytes: int
    settings: tuple[str, str] = ("", "")
    """The settings that the two come from, which their errors name."""


class Bucket(Struct, gc=False):
    """What an account may still send at a moment."""

    messages: float
    bytes: float
    at: float


class Buckets:
    """One bucket for each account that sent something; the oldest go first when there are many."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, account: str, rate: Rate, size: int, now: float) -> None:
        """Count a message of so many bytes, or raise `RateLimited` with the time to wait."""
        bucket = self._buckets.get(account)
        if bucket is None:
            bucket = self._buckets[account] = Bucket(math.inf, math.inf, now)
            if len(self._buckets) > MOST_KEYS:
                self._buckets.popitem(last=False)
        messages, amount, passed = bucket.messages, bucket.bytes, now - bucket.at
        most_bytes = rate.bytes * BURST_SECONDS
        # A clock that was set back earns nothing, and locks nobody out.
        if passed > 0:
            messages += passed * rate.messages
            amount += passed * rate.bytes
        if messages > rate.messages * BURST_SECONDS:
            messages = rate.messages * BURST_SECONDS
        if amount > most_bytes:
            amount = most_bytes
        # One message larger than the bucket passes when the bucket is full, and leaves a debt.
        needed = min(most_bytes, size)
        bucket.at = now
        if messages < 1 or amount < needed:
            bucket.messages, bucket.bytes = messages, amount
            wait = max((1 - messages) / rate.messages, (needed - amount) / rate.bytes)
            seconds = max(1, math.ceil(wait))
            sentence = f"You are sending too much too fast. Try again in {in_words(seconds)}."
            setting = rate.settings[0 if messages < 1 else 1]
            raise RateLimited(sentence + named(setting), retry_after=seconds)
        bucket.messages, bucket.bytes = messages - 1, amount - size


def named(setting: str) -> str:
    """What the error of a limit says after its sentence: the setting that can be raised."""
    return f" Setting: {setting}." if setting else ""


def in_words(seconds: int) -> str:
    """A time to wait, as people say it: never less than it is."""
    size, unit = next((size, unit) for size, unit in UNITS if seconds >= 2 * size or size == 1)
    count = math.ceil(seconds / size)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
