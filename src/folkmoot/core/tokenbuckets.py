"""Token buckets: the one way in which rates are limited. A burst passes, a flood does not.

A bucket holds so many tokens and is filled again in so many seconds: steadily, or all at once when
they are over. Filled all at once, it counts a window that opens with the first token taken; then
all calls must give the same seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from folkmoot.core.limits import MAX_RATE_KEYS

K = TypeVar("K")

ROUNDING: Final = 1e-6
"""Seconds that clocks and divisions are off by."""


class Bucket(Struct, gc=False):
    """What was left in a bucket at a moment; less than nothing is a debt."""

    level: float
    at: float


class TokenBuckets(Struct, Generic[K], eq=False):
    """A token bucket for each key; the keys longest unused are forgotten when there are many."""

    max_keys: int = MAX_RATE_KEYS
    at_once: bool = False
    _buckets: OrderedDict[K, Bucket] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._buckets)

    def find(self, key: K) -> Bucket | None:
        """The bucket of a key, if something was taken from it."""
        return self._buckets.get(key)

    def restore(self, key: K, bucket: Bucket) -> None:
        """Put a bucket back, after all that opened earlier."""
        self._buckets[key] = bucket

    def take(
        self,
        key: K,
        tokens: float,
        seconds: float,
        now: float,
        amount: float = 1.0,
        *,
        overdraw: bool = False,
    ) -> float:
        """Take an amount and answer 0, or answer in how many seconds there will be enough.

        More than a bucket holds is given when it is full, and leaves a debt. With `overdraw` the
        amount is taken in any case.
        """
        bucket = self._buckets.get(key)
        # A window that is over but for rounding is over: else all who come in that moment get in.
        if bucket is None or (self.at_once and seconds - (now - bucket.at) <= ROUNDING):
            bucket = self._opened(key, tokens, seconds, now)
        level = bucket.level
        if not self.at_once:
            # A clock that was set back earns nothing, and locks nobody out.
            if now > bucket.at:
                level += (now - bucket.at) * tokens / seconds
            if level > tokens:
                level = tokens
            bucket.level, bucket.at = level, now
            self._buckets.move_to_end(key)
        if level >= amount or level >= tokens:
            bucket.level = level - amount
            return 0.0
        if self.at_once:
            wait = seconds - (now - bucket.at)
        else:
            wait = ((min(tokens, amount)) - level) * seconds / tokens
        # What is missing by rounding is not worth a wait.
        if overdraw or wait <= ROUNDING:
            bucket.level = level - amount
        return wait if wait > ROUNDING else 0.0

    def take_whole(self, key: K, tokens: float, seconds: float, now: float, amount: float) -> bool:
        """Take an amount only where the bucket, filled steadily, holds all of it now."""
        bucket = self._buckets.get(key) or self._opened(key, tokens, seconds, now)
        level = bucket.level + max(now - bucket.at, 0.0) * tokens / seconds
        if min(level, tokens) < amount:
            return False
        bucket.level, bucket.at = min(level, tokens) - amount, now
        self._buckets.move_to_end(key)
        return True

    def give_back(self, key: K, tokens: float, amount: float = 1.0) -> None:
        """Put an amount back that turned out not to count."""
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.level += amount
            if bucket.level >= tokens:
                del self._buckets[key]

    def _opened(self, key: K, tokens: float, seconds: float, now: float) -> Bucket:
        buckets = self._buckets
        if self.at_once:
            # Windows are equally long, so they close in the order in which they opened.
            while buckets and seconds - (now - next(iter(buckets.values())).at) <= ROUNDING:
                buckets.popitem(last=False)
        if len(buckets) >= self.max_keys:
            buckets.popitem(last=False)
        bucket = buckets[key] = Bucket(tokens, now)
        return bucket
