"""A clock for tests of what time does."""

from __future__ import annotations

NOON = 1_700_000_000


class StillClock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.seconds = float(NOON)

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds
