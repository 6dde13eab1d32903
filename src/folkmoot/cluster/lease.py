"""The lease of a node: whether it may still act, by its own clock.

A lease is a row with a time by the database's clock. The node measures from *before* it sent the
renewing statement, on a clock that also runs while the machine sleeps, so its own view of the lease
ends before that of everybody else. Times here are seconds on that clock.
"""

from __future__ import annotations

import math
import time
from typing import Final

from folkmoot.cluster.limits import LEASE_MARGIN

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Seconds that also pass while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


class Lease:
    """What a node knows of its own lease."""

    def __init__(self, seconds: float, margin: float = LEASE_MARGIN) -> None:
        self._seconds = seconds - margin
        self.until = -math.inf
        self.term = 0
        """Rises when the lease may have lapsed: what was owned before may be another's now."""

    def holds(self, now: float, term: int | None = None) -> bool:
        """Whether the node surely may act; with a term, whether it could ever since."""
        return now < self.until and term in (None, self.term)

    def renewed(self, sent: float, now: float) -> None:
        """The statement that was about to be sent at a time was answered."""
        if now >= self.until:
            # Whether the database had it in time is not known.
            self.term += 1
        self.until = max(self.until, sent + self._seconds)

    def ended(self) -> None:
        """The database says that the lease is over."""
        self.until = -math.inf
