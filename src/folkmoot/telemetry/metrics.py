"""Prometheus metrics of one hub, in a registry of its own. Every label has a bounded set of values.

A label is never taken from a request as it came: routes are templates, methods are known ones.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from folkmoot.telemetry.lines import dropped
from folkmoot.telemetry.parts import log_families
from folkmoot.telemetry.requests import Requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client.metrics_core import Metric

    from folkmoot.core.ports import Clock

OTHER_ROUTE = "other"
OTHER_METHOD = "OTHER"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


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
        self._requests = Requests()
        self.watch(self._requests.families)
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
        self._requests.count(known, label, status, seconds)

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
