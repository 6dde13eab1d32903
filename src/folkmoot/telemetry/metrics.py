"""Prometheus metrics of one hub, in a registry of its own. Every label has a bounded set of values.

A label is never taken from a request as it came: routes are templates, methods are known ones.
Parts that keep their own numbers are read each time the metrics are asked for.
"""

from __future__ import annotations

import platform
from bisect import bisect_left
from collections import Counter as Counts
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from folkmoot.core.closecodes import CloseCode
from folkmoot.telemetry.limits import MAX_MEASURED
from folkmoot.telemetry.lines import dropped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
        """The answered requests, as metrics."""
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
        """The present metrics of the watched part."""
        return self._families()


STORE_COUNTERS = {
    "units": "Units of work committed.",
    "failed_units": "Units of work that raised and were undone alone.",
    "commits": "Commits; each holds the units that waited for it.",
    "failed_commits": "Commits that failed and undid all their units.",
    "commit_seconds": "Seconds spent in commits.",
    "reads": "Queries answered.",
    "failed_reads": "Queries that raised.",
    "loop_reads": "Queries answered in the event loop, because they were short.",
    "given_up_reads": "Queries begun in the event loop and then moved to a reader's thread.",
    "checkpoints": "Times the write-ahead log was copied into the database.",
    "failed_checkpoints": "Times that copying failed.",
}
STORE_GAUGES = {
    "wal_pages": "Pages in the write-ahead log.",
    "write_queue_depth": "Writes that wait for their commit.",
    "read_queue_depth": "Queries that wait for a reader.",
}

CLOSE_CODES = frozenset({1000, 1001, 1005, 1006, *CloseCode})
OTHER_CODE = "other"


def store_families(values: Mapping[str, Any]) -> list[Metric]:
    """The store's numbers, by the names of `StoreStats`."""
    found: list[Metric] = [
        CounterMetricFamily(f"folkmoot_store_{name}", text, value=values[name])
        for name, text in STORE_COUNTERS.items()
    ]
    found += [
        GaugeMetricFamily(f"folkmoot_store_{name}", text, value=values[name])
        for name, text in STORE_GAUGES.items()
    ]
    counts = list(accumulate(values["batch_sizes"]))
    bounds = values["batch_bounds"]
    buckets = [(str(float(bound)), count) for bound, count in zip(bounds, counts, strict=True)]
    found.append(
        HistogramMetricFamily(
            "folkmoot_store_batch_units",
            "Units of work in one commit.",
            buckets=[*buckets, ("+Inf", counts[-1])],
            sum_value=values["units"],
        )
    )
    return found


def gauge(name: str, text: str, value: float) -> Metric:
    """A number that goes up and down."""
    return GaugeMetricFamily(f"folkmoot_{name}", text, value=value)


def counter(name: str, text: str, value: float) -> Metric:
    """A number that only grows."""
    return CounterMetricFamily(f"folkmoot_{name}", text, value=value)


def labelled(
    family: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    text: str,
    labels: tuple[str, ...],
    values: Mapping[Any, float],
) -> Metric:
    """Numbers by their labels; a label alone stands for a tuple of one."""
    found = family(f"folkmoot_{name}", text, labels=labels)
    for key, value in values.items():
        found.add_metric(key if isinstance(key, tuple) else (key,), value)
    return found


def bus_families(subscriptions: int, dropped: Mapping[str, int] | None = None) -> list[Metric]:
    """The bus's numbers; a bus between nodes also counts the frames it dropped, by the reason."""
    found = [gauge("bus_subscriptions", "Subscriptions that are open on the bus.", subscriptions)]
    if dropped is not None:
        text = "Frames between nodes that were not accepted or not sent, by the reason."
        found.append(
            labelled(CounterMetricFamily, "bus_dropped_frames", text, ("reason",), dropped)
        )
    return found


def log_families(dropped: int) -> list[Metric]:
    """The log's numbers."""
    text = "Log lines that were dropped because nobody read them fast enough."
    return [counter("log_dropped_lines", text, dropped)]


def mcp_families(eras: Mapping[str, int], sessions: int) -> list[Metric]:
    """The numbers of `/mcp`: how many requests each era made, and how many sessions are open."""
    text = "Requests to `/mcp`, by the era of MCP that their clients speak."
    return [
        labelled(CounterMetricFamily, "mcp_requests", text, ("era",), eras),
        gauge("mcp_sessions", "Sessions of the handshake era that are open.", sessions),
    ]


def forwarding_families(forwarded: int, refused: int) -> list[Metric]:
    """The numbers of requests that nodes forward to each other."""
    text = "Requests forwarded to the node that has their session or links their server."
    refused_text = "Requests that claimed to be forwarded, without a valid mark of another node."
    return [
        counter("forwarded_requests", text, forwarded),
        counter("forwarded_requests_refused", refused_text, refused),
    ]


def event_families(
    open_streams: int, kept: int, resumed: int, told: Mapping[str, int]
) -> list[Metric]:
    """The numbers of `/v1/events`."""
    kept_text = "Streams of events that are open, or kept for a client that may come back."
    resumed_text = "Streams of events that were resumed after their connection broke."
    text = "Events told, each counted once for every stream; `reload` stands for those missed."
    return [
        gauge("event_streams", "Streams of events that a client reads.", open_streams),
        gauge("event_streams_kept", kept_text, kept),
        counter("event_streams_resumed", resumed_text, resumed),
        labelled(CounterMetricFamily, "events_told", text, ("event",), told),
    ]


def quota_families(
    used: Mapping[str, tuple[int, int]],
    near: Mapping[str, int],
    refused: Mapping[str, int],
    disk_free: int | None,
) -> list[Metric]:
    """The metrics of quotas: use and limit of each, and the accounts near a limit."""
    what = ("what",)
    amounts = {name: amount for name, (amount, _) in used.items()}
    limits = {name: limit for name, (_, limit) in used.items()}
    used_text = "Bytes that the hub stores or holds, by what it is: mail, rooms or memory_rooms."
    limit_text = "The most of it that the hub may have; 0 is no limit."
    near_text = "Accounts that use 80 % of a quota of theirs or more."
    text = "Refusals because of a quota, by its setting."
    found = [
        labelled(GaugeMetricFamily, "quota_used_bytes", used_text, what, amounts),
        labelled(GaugeMetricFamily, "quota_limit_bytes", limit_text, what, limits),
        labelled(GaugeMetricFamily, "quota_accounts_near_limit", near_text, what, near),
        labelled(CounterMetricFamily, "quota_refusals", text, ("quota",), refused),
    ]
    if disk_free is not None:
        text = "Bytes that are free on the disk of the data folder."
        found.append(gauge("disk_free_bytes", text, disk_free))
    return found


def tool_families(calls: Mapping[tuple[str, str], int]) -> list[Metric]:
    """The calls of each tool, by its canonical name and by outcome."""
    text = "Tool calls answered, by canonical name and outcome: ok or error."
    return [labelled(CounterMetricFamily, "tool_calls", text, ("tool", "outcome"), calls)]


def room_families(live: int, messages: int, deliveries: int) -> list[Metric]:
    """The numbers of the rooms."""
    text = "The same messages, each counted once for every WebSocket that it was sent to."
    return [
        gauge("rooms_live", "Rooms that are in use.", live),
        counter("room_messages", "Messages that became part of a room's history.", messages),
        counter("room_deliveries", text, deliveries),
    ]


def websocket_families(open_links: int, opened: int, closed: Mapping[int, int]) -> list[Metric]:
    """The numbers of the WebSockets; a code that is a client's own invention counts as other."""
    codes: Counts[str] = Counts()
    for code, count in closed.items():
        codes[str(code) if code in CLOSE_CODES else OTHER_CODE] += count
    text = "WebSockets that ended, by close code; 1006 is a connection that was lost."
    return [
        gauge("websocket_links", "WebSockets that are open.", open_links),
        counter("websocket_opened", "WebSockets that were opened.", opened),
        labelled(CounterMetricFamily, "websocket_closed", text, ("code",), codes),
    ]


def proxy_families(live: int, opened: int, ended: Mapping[str, int]) -> list[Metric]:
    """The numbers of a proxy's sessions."""
    text = "Sessions that ended, by reason: closed, idle, old or crowded."
    return [
        gauge("proxy_sessions", "Sessions that are open through the proxy.", live),
        counter("proxy_sessions_opened", "Sessions that were opened through the proxy.", opened),
        labelled(CounterMetricFamily, "proxy_sessions_ended", text, ("reason",), ended),
    ]


BACKEND_GAUGES = {
    "in_flight": "Requests that a backend has not answered yet.",
    "held_tools": "Tools of a backend that are held back until an operator accepts them.",
}
BACKEND_COUNTERS = {
    "calls": "Requests sent to a backend, including those of the hub itself.",
    "errors": "Requests that a backend did not answer.",
    "restarts": "Links to a backend that were open and were lost.",
    "dropped": "Messages of a backend that belonged to no request.",
}
"""The numbers of a backend by their names in its view."""


OTHER_BACKENDS = "other"


def backend_families(
    backends: Sequence[Mapping[str, Any]], bounds: Sequence[float]
) -> list[Metric]:
    """The numbers of the servers behind the hub, each given as the members of its view.

    `bounds` are those of the buckets in which answers are counted by the time they took.
    """
    up = {each["namespace"]: each["state"] == "up" for each in backends}
    label = ("namespace",)
    found = [labelled(GaugeMetricFamily, "backend_up", "Whether a backend is up.", label, up)]
    for family, table in (
        (GaugeMetricFamily, BACKEND_GAUGES),
        (CounterMetricFamily, BACKEND_COUNTERS),
    ):
        for member, text in table.items():
            values = {each["namespace"]: each[member] for each in backends}
            found.append(labelled(family, f"backend_{member}", text, label, values))
    return [*found, *_outcome_families(backends, bounds)]


def _outcome_families(
    backends: Sequence[Mapping[str, Any]], bounds: Sequence[float]
) -> list[Metric]:
    """The durations and outcomes of backends' calls, as metrics."""
    counts: dict[str, list[int]] = {}
    seconds: Counts[str] = Counts()
    outcomes: dict[str, Counts[str]] = {}
    for each in backends:
        known = each["namespace"] in counts or len(counts) < MAX_MEASURED
        name = each["namespace"] if known else OTHER_BACKENDS
        before = counts.get(name, [0] * (len(bounds) + 1))
        counts[name] = [a + b for a, b in zip(before, each["buckets"], strict=True)]
        seconds[name] += each["seconds"]
        outcomes.setdefault(name, Counts()).update(each["outcomes"])
    text = "Seconds that a backend took to answer."
    times = HistogramMetricFamily("folkmoot_backend_call_seconds", text, labels=("namespace",))
    text = "Requests to a backend, by what came of them."
    counted = CounterMetricFamily(
        "folkmoot_backend_outcomes", text, labels=("namespace", "outcome")
    )
    ends = [*map(str, bounds), "+Inf"]
    for name, found in counts.items():
        buckets = list(zip(ends, accumulate(found), strict=True))
        times.add_metric((name,), buckets, sum_value=seconds[name])
        for outcome, count in outcomes[name].items():
            counted.add_metric((name, outcome), count)
    return [times, counted]
