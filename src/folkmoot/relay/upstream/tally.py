"""Tally: what is counted of the requests to one server."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

LATEST: Final = 128
"""How many answers the median is of."""


class Tally:
    """Counts calls and errors, and keeps how long the latest answers took."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._took: deque[float] = deque(maxlen=LATEST)
        self.calls = 0
        self.errors = 0
        self.last_error = ""

    def begin(self) -> float:
        """A request is made; when."""
        self.calls += 1
        return self._monotonic()

    def answered(self, began: float) -> None:
        """It has its answer."""
        self._took.append(self._monotonic() - began)

    def failed(self, why: str) -> None:
        """It has none."""
        self.errors += 1
        self.last_error = why

    @property
    def median_ms(self) -> float | None:
        """How long the latest answers took."""
        return round(median(self._took) * 1000, 3) if self._took else None
