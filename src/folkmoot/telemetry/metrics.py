"""Prometheus metrics of one hub, in a registry of its own. Every label has a bounded set of values.

A label is never taken from a request as it came: routes are templates, methods are known ones.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from folkmoot.telemetry.lines import dropped
from folkmoot.telemetry.parts import log_families

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client.metrics_core import Metric

    from folkmoot.core.ports import Clock

OTHER_ROUTE = "other"
OTHER_METHOD = "OTHER"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


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
        self._requests = Counter(
            "folkmoot_http_requests",
            "HTTP requests answered, by method, route template and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._durations = Histogram(
            "folkmoot_http_request_duration_seconds",
            "Seconds from the head of a request to the end of its answer, by route template.",
            ("route",),
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "folkmoot_http_requests_in_flight",
            "HTTP requests being answered at this moment.",
            registry=self.registry,
        )
        self.turned_away = Counter(
            "folkmoot_http_turned_away",
            "Connections and requests beyond `http.max_connections`.",
            registry=self.registry,
        )
        # To find a metric by its labels costs more than to count.
        self._counted: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.watch(lambda: log_families(dropped.lines))

    def request_done(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count one answered request; `route` is the template it matched, if any."""
        label = OTHER_ROUTE if route is None else route
        known = method if method in METHODS else OTHER_METHOD
        counted = self._counted.get((known, label, status))
        if counted is None:
            requests = self._requests.labels(known, label, str(status))
            counted = self._counted[known, label, status] = requests, self._durations.labels(label)
        counted[0].inc()
        counted[1].observe(seconds)

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
