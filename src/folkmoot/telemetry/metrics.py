"""Prometheus metrics of one hub, in a registry of its own. Every label has a bounded set of values.

A label is never taken from a request as it came: routes are templates, methods are known ones.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections import Counter as Counts
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from folkmoot.telemetry.lines import dropped
from folkmoot.telemetry.parts import log_families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.metrics_core import Metric

    from folkmoot.core.ports import Clock

OTHER_ROUTE = "other"
OTHER_METHOD = "OTHER"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

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


class Metrics:
    """What the hub counts, and how it is read."""

    def __init__(self, *, version: str, clock: Clock) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self.registry)
        build = Gauge(
            "folkmoot_build_info",
            "Always 1; the labels tell the version of Folkmoot and of Python.",
            ("version", "python"),
            registry=self.registry,
        )
        build.labels(version, platform.python_version()).set(1)
        started = clock.monotonic()
        Gauge(
            "folkmoot_uptime_seconds", "Seconds since the hub started.", registry=self.registry
        ).set_function(lambda: clock.monotonic() - started)
        self._answered: Counts[tuple[str, str, int]] = Counts()
        self._durations: dict[str, Durations] = {}
        self.watch(self._requests)
        self.in_flight = 0
        """HTTP requests being answered at this moment."""
        Gauge(
            "folkmoot_http_requests_in_flight",
            "HTTP requests being answered at this moment.",
            registry=self.registry,
        ).set_function(lambda: self.in_flight)
        self.turned_away = Counter(
            "folkmoot_http_turned_away",
            "Connections and requests that were refused because the hub was full.",
            registry=self.registry,
        )
        self.shed = Counter(
            "folkmoot_http_connections_shed",
            "Idle or slow connections without an account that were closed to make room.",
            registry=self.registry,
        )
        self.bodies_refused = Counter(
            "folkmoot_http_bodies_refused",
            "Request bodies that were refused before they were decoded, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.watch(lambda: log_families(dropped.lines))

    def request_done(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count one answered request; `route` is the template it matched, if any."""
        label = OTHER_ROUTE if route is None else route
        known = method if method in METHODS else OTHER_METHOD
        self._answered[known, label, status] += 1
        durations = self._durations.get(label)
        if durations is None:
            durations = self._durations[label] = Durations()
        durations.counts[bisect_left(BUCKETS, seconds)] += 1
        durations.total += seconds

    def _requests(self) -> Iterator[Metric]:
        """The requests that were answered, as metrics."""
        labels = ("method", "route", "status")
        counted = CounterMetricFamily("folkmoot_http_requests", COUNTED, labels=labels)
        for (method, route, status), number in self._answered.items():
            counted.add_metric((method, route, str(status)), number)
        yield counted
        name = "folkmoot_http_request_duration_seconds"
        measured = HistogramMetricFamily(name, MEASURED, labels=("route",))
        bounds = [*map(repr, BUCKETS[:-1]), "+Inf"]
        for route, durations in self._durations.items():
            below = list(zip(bounds, accumulate(durations.counts), strict=True))
            measured.add_metric((route,), below, durations.total)
        yield measured

    def watch_bodies(self, held: Callable[[], int]) -> None:
        """Read how many bytes of request bodies the hub holds, when the metrics are asked for."""
        Gauge(
            "folkmoot_http_body_bytes",
            "Bytes of the bodies of all requests in progress.",
            registry=self.registry,
        ).set_function(held)

    def watch(self, families: Callable[[], Iterable[Metric]]) -> None:
        """Read numbers that another part keeps, each time the metrics are asked for."""
        self.registry.register(_Watch(families))

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """The metrics and their content type, as OpenMetrics where `accept` asks for it."""
        try:
            encode, content_type = choose_encoder(accept)
            return encode(self.registry), content_type
        except (TypeError, ValueError):
            # The library compares the version that was asked for without looking at it first.
            encode, content_type = choose_encoder("")
            return encode(self.registry), content_type


class _Watch(Collector):
    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """What the watched part says at this moment."""
        return self._families()
