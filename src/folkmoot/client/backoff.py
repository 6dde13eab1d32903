"""How long to wait before the next attempt to come back."""

from __future__ import annotations

import random

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """Each attempt waits twice as long as the one before, up to a bound, less a random part.

    The random part keeps a thousand clients of a restarted hub from coming back all at once.
    """

    first: float = 0.25
    """Seconds before the first attempt, at most."""
    most: float = 30.0
    """Seconds before any attempt, at most."""
    steady: float = 5.0
    """A connection that held this long counts as a good one: the next wait is short again."""

    def delay(self, attempt: int) -> float:
        """Seconds to wait before an attempt; the first is number 0."""
        longest = min(self.most, self.first * 2.0 ** min(attempt, 64))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret
