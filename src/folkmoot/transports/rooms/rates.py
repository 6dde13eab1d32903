"""How much one connection may send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BURST_SECONDS: Final = 5
"""So many seconds' worth may come at once."""


class Rate:
    """A rate that many connections are held to, each on its own.

    A connection counts down from what it was last given, and asks for more when nothing is left:
    so the clock is read once for many messages. One that was silent for long may therefore send
    up to twice the burst at once, and none sends more than the rate for long.
    """

    __slots__ = ("_now", "burst", "per_second")

    def __init__(self, per_second: int, now: Callable[[], float]) -> None:
        self.per_second = per_second
        self.burst = per_second * BURST_SECONDS
        self._now = now

    def begin(self) -> tuple[int, float]:
        """What a new connection is given, and when."""
        return self.burst, self._now()

    def more(self, since: float) -> tuple[int, float]:
        """What a connection gets that was given something at `since`, and when it is given."""
        now = self._now()
        earned = (now - since) * self.per_second
        if earned >= self.burst:
            return self.burst, now
        whole = int(earned)
        # What is earned of the next one is not lost.
        return whole, now - (earned - whole) / self.per_second
