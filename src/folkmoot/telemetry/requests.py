"""HTTP requests as they are counted: a few additions each, made into metrics when somebody asks."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

BUCKETS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 60.0, float("inf")),
)
COUNTED: Final = "HTTP requests answered, by method, route template and status."
MEASURED: Final = "Seconds from the head of a request to the end of its answer, by route template."


class Durations:
    """How long the requests of one route took."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * len(BUCKETS)
        self.total = 0.0


class Requests:
    """All that were answered."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._durations: dict[str, Durations] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one more."""
        self._counts[method, route, status] += 1
        durations = self._durations.get(route)
        if durations is None:
            durations = self._durations[route] = Durations()
        durations.counts[bisect_left(BUCKETS, seconds)] += 1
        durations.total += seconds

    def families(self) -> Iterator[Metric]:
        """The metrics."""
        labels = ("method", "route", "status")
        counted = CounterMetricFamily("folkmoot_http_requests", COUNTED, labels=labels)
        for (method, route, status), number in self._counts.items():
            counted.add_metric((method, route, str(status)), number)
        yield counted
        name = "folkmoot_http_request_duration_seconds"
        measured = HistogramMetricFamily(name, MEASURED, labels=("route",))
        bounds = [*map(repr, BUCKETS[:-1]), "+Inf"]
        for route, durations in self._durations.items():
            below = list(zip(bounds, accumulate(durations.counts), strict=True))
            measured.add_metric((route,), below, durations.total)
        yield measured
