"""What came of a server's calls: counted since it was added, and minute by minute for an hour."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from folkmoot.gateway.limits import HISTORY_MINUTES, MAX_LATEST_ANSWERS

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

MINUTE: Final = 60


class ServerHistory(Struct, frozen=True, kw_only=True):
    """The calls of one server; every list has a value for each minute, the oldest first."""

    namespace: str
    calls: list[int]
    """Calls that ended."""
    errors: list[int]
    """How many of them got no answer."""
    refused: list[int]
    """How many were answered with an error."""
    mean_ms: list[float | None]
    """How long answers took; null where there were none."""
    slowest_ms: list[float | None]


class Slot:
    """One minute."""

    __slots__ = ("answers", "calls", "errors", "minute", "refused", "seconds", "slowest")

    def __init__(self) -> None:
        self.minute = -1
        self.clear(-1)

    def clear(self, minute: int) -> None:
        """Begin a minute."""
        self.minute = minute
        self.calls = self.errors = self.refused = self.answers = 0
        self.seconds = self.slowest = 0.0


class CallHistory:
    """A ring of minutes of a fixed size. To note a call costs the same however many there were."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._slots = [Slot() for _ in range(HISTORY_MINUTES)]

    def answered(self, now: float, seconds: float, *, good: bool) -> None:
        slot = self._slot(now)
        slot.calls += 1
        slot.answers += 1
        slot.seconds += seconds
        if seconds > slot.slowest:
            slot.slowest = seconds
        if not good:
            slot.refused += 1

    def failed(self) -> None:
        slot = self._slot(self._monotonic())
        slot.calls += 1
        slot.errors += 1

    def view(self, namespace: str) -> ServerHistory:
        """The latest minutes, the present one last."""
        last = int(self._monotonic()) // MINUTE
        slots = [self._at(minute) for minute in range(last - HISTORY_MINUTES + 1, last + 1)]
        return ServerHistory(
            namespace=namespace,
            calls=[slot.calls for slot in slots],
            errors=[slot.errors for slot in slots],
            refused=[slot.refused for slot in slots],
            mean_ms=[mean_ms(slot) for slot in slots],
            slowest_ms=[round(slot.slowest * 1000, 1) if slot.answers else None for slot in slots],
        )

    def _slot(self, now: float) -> Slot:
        minute = int(now) // MINUTE
        slot = self._slots[minute % HISTORY_MINUTES]
        if slot.minute != minute:
            slot.clear(minute)
        return slot

    def _at(self, minute: int) -> Slot:
        slot = self._slots[minute % HISTORY_MINUTES]
        return slot if slot.minute == minute else EMPTY


EMPTY: Final = Slot()


def mean_ms(slot: Slot) -> float | None:
    """How long the answers of a minute took."""
    return round(slot.seconds / slot.answers * 1000, 1) if slot.answers else None


BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Seconds: the buckets in which answers are counted by how long they took."""
CANCELLED: Final = "cancelled"
BAD: Final = frozenset({"error", "tool_error", "invalid"})


class CallTally:
    """Counts requests by what came of them, and answers by how long they took."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self.history = CallHistory(clock)
        self._took: deque[float] = deque(maxlen=MAX_LATEST_ANSWERS)
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
        """Count an answered call."""
        now = self._monotonic()
        took = now - began
        self.history.answered(now, took, good=outcome not in BAD)
        self._took.append(took)
        self.seconds += took
        self.buckets[bisect_left(BOUNDS, took)] += 1
        self.outcomes[outcome] += 1

    def failed(self, why: str, code: str) -> None:
        self.errors += 1
        self.history.failed()
        self.last_error = why
        self.outcomes[code] += 1

    def cancelled(self) -> None:
        """Whoever asked waits no more."""
        self.outcomes[CANCELLED] += 1

    @property
    def median_ms(self) -> float | None:
        """How long the latest answers took."""
        return round(median(self._took) * 1000, 3) if self._took else None
