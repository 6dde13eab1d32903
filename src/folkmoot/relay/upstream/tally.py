"""Tally: what is counted of the requests to one server."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

LATEST: Final = 128
"""How many answers the median is of."""
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds: the buckets in which answers are counted by how long they took."""
CANCELLED: Final = "cancelled"


class Tally:
    """Counts requests by what came of them, and answers by how long they took."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._took: deque[float] = deque(maxlen=LATEST)
        self.calls = 0
        self.errors = 0
        self.last_error = ""
        self.outcomes: Counter[str] = Counter()
        self.buckets = [0] * (len(BOUNDS) + 1)
        """Answers by how long they took; the last is for what took longer than any bound."""
        self.seconds = 0.0

    def begin(self) -> float:
        """A request is made; when."""
        self.calls += 1
        return self._monotonic()

    def answered(self, began: float, outcome: str) -> None:
        """It has its answer."""
        took = self._monotonic() - began
        self._took.append(took)
        self.seconds += took
        self.buckets[bisect_left(BOUNDS, took)] += 1
        self.outcomes[outcome] += 1

    def failed(self, why: str, code: str) -> None:
        """It has none."""
        self.errors += 1
        self.last_error = why
        self.outcomes[code] += 1

    def cancelled(self) -> None:
        """Whoever asked waits no more."""
        self.outcomes[CANCELLED] += 1

    @property
    def median_ms(self) -> float | None:
        """How long the latest answers took."""
        return round(median(self._took) * 1000, 3) if self._took else None
