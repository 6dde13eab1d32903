"""A clock for tests of what time does."""

from __future__ import annotations

from folkmoot.clock import SystemClock

NOON = 1_700_000_000


class StillClock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.seconds = float(NOON)

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds


class Later(SystemClock):
    """A clock that stands still, however long a test takes, and can be set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._began = super().now(), super().monotonic()

    def now(self) -> float:
        return self._began[0] + self.ahead

    def monotonic(self) -> float:
        return self._began[1] + self.ahead


class Wrong(SystemClock):
    """A machine's clock that can be set to another time, while all goes on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead
