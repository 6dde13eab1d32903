"""Metrics of the parts that keep their own numbers, read each time somebody asks."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from folkmoot.core.closecodes import CloseCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prometheus_client.metrics_core import Metric

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


def bus_families(subscriptions: int) -> list[Metric]:
    """The bus's numbers."""
    text = "Subscriptions that are open on the bus."
    return [GaugeMetricFamily("folkmoot_bus_subscriptions", text, value=subscriptions)]


def log_families(dropped: int) -> list[Metric]:
    """The log's numbers."""
    text = "Log lines that were dropped because nobody read them fast enough."
    return [CounterMetricFamily("folkmoot_log_dropped_lines", text, value=dropped)]


def mcp_families(eras: Mapping[str, int], sessions: int) -> list[Metric]:
    """The numbers of `/mcp`: how many requests each era made, and how many sessions are open."""
    text = "Requests to `/mcp`, by the era of MCP that their clients speak."
    requests = CounterMetricFamily("folkmoot_mcp_requests", text, labels=("era",))
    for era, count in eras.items():
        requests.add_metric((era,), count)
    text = "Sessions of the handshake era that are open."
    return [requests, GaugeMetricFamily("folkmoot_mcp_sessions", text, value=sessions)]


def event_families(
    open_streams: int, kept: int, resumed: int, told: Mapping[str, int]
) -> list[Metric]:
    """The numbers of `/v1/events`."""
    text = "Streams of events that a client reads."
    streams = GaugeMetricFamily("folkmoot_event_streams", text, value=open_streams)
    text = "Streams of events that are open, or kept for a client that may come back."
    known = GaugeMetricFamily("folkmoot_event_streams_kept", text, value=kept)
    text = "Streams of events that were resumed after their connection broke."
    again = CounterMetricFamily("folkmoot_event_streams_resumed", text, value=resumed)
    text = "Events told, each counted once for every stream; `reload` stands for those missed."
    counted = CounterMetricFamily("folkmoot_events_told", text, labels=("event",))
    for name, count in told.items():
        counted.add_metric((name,), count)
    return [streams, known, again, counted]


def quota_families(
    used: Mapping[str, tuple[int, int]],
    near: Mapping[str, int],
    refused: Mapping[str, int],
    disk_free: int | None,
) -> list[Metric]:
    """The numbers of the quotas: what the hub uses of each with its limit, and who is near one."""
    text = "Bytes that the hub stores or holds, by what it is: mail, rooms or memory_rooms."
    bytes_used = GaugeMetricFamily("folkmoot_quota_used_bytes", text, labels=("what",))
    text = "The most of it that the hub may have; 0 is no limit."
    bytes_allowed = GaugeMetricFamily("folkmoot_quota_limit_bytes", text, labels=("what",))
    for what, (amount, limit) in used.items():
        bytes_used.add_metric((what,), amount)
        bytes_allowed.add_metric((what,), limit)
    text = "Accounts that use 80 % of a quota of theirs or more."
    accounts = GaugeMetricFamily("folkmoot_quota_accounts_near_limit", text, labels=("what",))
    for what, count in near.items():
        accounts.add_metric((what,), count)
    text = "Refusals because of a quota, by its setting."
    refusals = CounterMetricFamily("folkmoot_quota_refusals", text, labels=("quota",))
    for quota, count in refused.items():
        refusals.add_metric((quota,), count)
    found: list[Metric] = [bytes_used, bytes_allowed, accounts, refusals]
    if disk_free is not None:
        text = "Bytes that are free on the disk of the data folder."
        found.append(GaugeMetricFamily("folkmoot_disk_free_bytes", text, value=disk_free))
    return found


def tool_families(calls: Mapping[tuple[str, str], int]) -> list[Metric]:
    """The calls of each tool, by its canonical name and by outcome."""
    text = "Tool calls answered, by canonical name and outcome: ok or error."
    counted = CounterMetricFamily("folkmoot_tool_calls", text, labels=("tool", "outcome"))
    for labels, count in calls.items():
        counted.add_metric(labels, count)
    return [counted]


def room_families(live: int, messages: int, deliveries: int) -> list[Metric]:
    """The numbers of the rooms."""
    text = "Rooms that are in use."
    rooms = GaugeMetricFamily("folkmoot_rooms_live", text, value=live)
    text = "Messages that became part of a room's history."
    accepted = CounterMetricFamily("folkmoot_room_messages", text, value=messages)
    text = "The same messages, each counted once for every WebSocket that it was sent to."
    sent = CounterMetricFamily("folkmoot_room_deliveries", text, value=deliveries)
    return [rooms, accepted, sent]


def websocket_families(open_links: int, opened: int, closed: Mapping[int, int]) -> list[Metric]:
    """The numbers of the WebSockets; a code that is a client's own invention counts as other."""
    text = "WebSockets that are open."
    links = GaugeMetricFamily("folkmoot_websocket_links", text, value=open_links)
    text = "WebSockets that were opened."
    counted = CounterMetricFamily("folkmoot_websocket_opened", text, value=opened)
    text = "WebSockets that ended, by close code; 1006 is a connection that was lost."
    ended = CounterMetricFamily("folkmoot_websocket_closed", text, labels=("code",))
    codes: Counter[str] = Counter()
    for code, count in closed.items():
        codes[str(code) if code in CLOSE_CODES else OTHER_CODE] += count
    for label, count in codes.items():
        ended.add_metric((label,), count)
    return [links, counted, ended]


def proxy_families(live: int, opened: int, ended: Mapping[str, int]) -> list[Metric]:
    """The numbers of a proxy's sessions."""
    text = "Sessions that are open through the proxy."
    sessions = GaugeMetricFamily("folkmoot_proxy_sessions", text, value=live)
    text = "Sessions that were opened through the proxy."
    counted = CounterMetricFamily("folkmoot_proxy_sessions_opened", text, value=opened)
    text = "Sessions that ended, by reason: closed, idle, old or crowded."
    gone = CounterMetricFamily("folkmoot_proxy_sessions_ended", text, labels=("reason",))
    for reason, count in ended.items():
        gone.add_metric((reason,), count)
    return [sessions, counted, gone]


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


MOST_MEASURED = 100
"""Backends that have times and outcomes of their own; those of the others are added up."""
OTHER_BACKENDS = "other"


def backend_families(
    backends: Sequence[Mapping[str, Any]], bounds: Sequence[float]
) -> list[Metric]:
    """The numbers of the servers behind the hub, each given as the members of its view.

    `bounds` are those of the buckets in which answers are counted by the time they took.
    """
    label = ("namespace",)
    up = GaugeMetricFamily("folkmoot_backend_up", "Whether a backend is up.", labels=label)
    for each in backends:
        up.add_metric((each["namespace"],), each["state"] == "up")
    found: list[Metric] = [up]
    for family, table in (
        (GaugeMetricFamily, BACKEND_GAUGES),
        (CounterMetricFamily, BACKEND_COUNTERS),
    ):
        for member, text in table.items():
            numbers = family(f"folkmoot_backend_{member}", text, labels=label)
            for each in backends:
                numbers.add_metric((each["namespace"],), each[member])
            found.append(numbers)
    return [*found, *_outcome_families(backends, bounds)]


def _outcome_families(
    backends: Sequence[Mapping[str, Any]], bounds: Sequence[float]
) -> list[Metric]:
    """How long backends took, and what came of what they were asked."""
    counts: dict[str, list[int]] = {}
    seconds: Counter[str] = Counter()
    outcomes: dict[str, Counter[str]] = {}
    for each in backends:
        known = each["namespace"] in counts or len(counts) < MOST_MEASURED
        name = each["namespace"] if known else OTHER_BACKENDS
        before = counts.get(name, [0] * (len(bounds) + 1))
        counts[name] = [a + b for a, b in zip(before, each["buckets"], strict=True)]
        seconds[name] += each["seconds"]
        outcomes.setdefault(name, Counter()).update(each["outcomes"])
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
