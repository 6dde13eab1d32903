"""The table of metrics in `operations/observability.md`, read from the registry of a hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from docs.pages.markdown import code, table
from folkmoot.clock import SystemClock
from folkmoot.core.ports import StoreStats
from folkmoot.store.writer import BATCH_BOUNDS
from folkmoot.telemetry.metrics import (
    Metrics,
    backend_families,
    bus_families,
    event_families,
    mcp_families,
    quota_families,
    room_families,
    store_families,
    tool_families,
    websocket_families,
)

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

OURS = "folkmoot_"


def families() -> list[Metric]:
    """Every metric of a hub, each with at least one sample."""
    metrics = Metrics(version="0", clock=SystemClock())
    metrics.request_done("GET", "/", 200, 0.1)
    empty = {field.name: 0 for field in msgspec.structs.fields(StoreStats)}
    sizes = {"batch_bounds": BATCH_BOUNDS, "batch_sizes": [0 for _ in BATCH_BOUNDS]}
    metrics.watch(lambda: store_families({**empty, **sizes}))
    metrics.watch(lambda: bus_families(0))
    metrics.watch(lambda: quota_families({"mail": (0, 0)}, {"mail": 0}, {"mail_bytes": 0}, 0))
    metrics.watch(lambda: backend_families((), ()))
    metrics.watch(lambda: mcp_families({"stateless": 0}, 0))
    metrics.watch(lambda: tool_families({("msg/send", "ok"): 0}))
    metrics.watch(lambda: event_families(0, 0, 0, {"mail.received": 0}))
    metrics.watch(lambda: room_families(0, 0, 0))
    metrics.watch(lambda: websocket_families(0, 0, {1000: 0}))
    return [family for family in metrics.registry.collect() if family.name.startswith(OURS)]


def shown() -> str:
    """Name, type, labels and meaning of every metric of ours."""
    rows = ([code(name(f)), f.type, labels(f), f.documentation] for f in families())
    return table(["Metric", "Type", "Labels", "Meaning"], rows)


def name(family: Metric) -> str:
    """The name under which it is queried."""
    return f"{family.name}_total" if family.type == "counter" else family.name


def labels(family: Metric) -> str:
    """Its labels, without the bounds of a histogram's buckets."""
    found = {label for sample in family.samples for label in sample.labels} - {"le"}
    return ", ".join(map(code, sorted(found)))


BLOCKS = {"metrics": shown}
