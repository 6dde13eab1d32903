from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from folkmoot.telemetry.metrics import (
    BACKEND_COUNTERS,
    BACKEND_GAUGES,
    MAX_MEASURED,
    METHODS,
    STORE_COUNTERS,
    STORE_GAUGES,
    Metrics,
    backend_families,
    bus_families,
    forwarding_families,
    store_families,
    websocket_families,
)
from tests.clocks import StillClock


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="1.2.3", clock=StillClock())


def values(metrics: Metrics) -> dict[str, float]:
    text, _ = metrics.exposition("")
    found = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_uptime_build_and_process_are_told():
    clock = StillClock()
    metrics = Metrics(version="1.2.3", clock=clock)
    clock.seconds += 5
    found = values(metrics)
    assert found["folkmoot_uptime_seconds"] == 5
    assert found["process_resident_memory_bytes"] > 0
    assert any("version=1.2.3" in name for name in found if name.startswith("folkmoot_build_info"))


def test_two_hubs_in_one_process_count_apart():
    one, two = Metrics(version="0", clock=StillClock()), Metrics(version="0", clock=StillClock())
    one.request_done("GET", "/", 200, 0.1)
    name = "folkmoot_http_requests_total{method=GET,route=/,status=200}"
    assert values(one)[name] == 1
    assert name not in values(two)


def test_backends_have_times_and_outcomes_of_their_own_up_to_a_number(metrics):
    bounds = (0.1, 1.0)
    numbers: dict[str, Any] = dict.fromkeys((*BACKEND_GAUGES, *BACKEND_COUNTERS), 0)
    more: dict[str, Any] = {"state": "up", "buckets": (3, 2, 1), "seconds": 4.5}
    backends = [
        {"namespace": f"ns{number}", "outcomes": {"ok": 5, "backend_timeout": 1}, **numbers, **more}
        for number in range(MAX_MEASURED + 7)
    ]
    metrics.watch(lambda: backend_families(backends, bounds))
    found = values(metrics)
    times = "folkmoot_backend_call_seconds"
    assert found[f"{times}_bucket{{le=0.1,namespace=ns0}}"] == 3
    assert found[f"{times}_bucket{{le=+Inf,namespace=ns0}}"] == 6
    assert found[f"{times}_count{{namespace=ns0}}"] == 6
    assert found[f"{times}_sum{{namespace=ns0}}"] == 4.5
    outcomes = "folkmoot_backend_outcomes_total"
    assert found[f"{outcomes}{{namespace=ns0,outcome=backend_timeout}}"] == 1
    assert found[f"{outcomes}{{namespace=other,outcome=ok}}"] == 35
    assert found[f"{times}_count{{namespace=other}}"] == 42
    assert sum(name.startswith(f"{times}_count") for name in found) == MAX_MEASURED + 1


@pytest.mark.parametrize("method", ["GETT", "sk_" + "a" * 64, "\n", ""])
def test_an_unknown_method_is_counted_as_other(metrics, method):
    metrics.request_done(method, None, 405, 0.1)
    assert values(metrics)["folkmoot_http_requests_total{method=OTHER,route=other,status=405}"] == 1
    assert "OTHER" not in METHODS


def test_durations_fall_into_buckets(metrics):
    for seconds in (0.0005, 0.003, 70.0):
        metrics.request_done("GET", "/health", 200, seconds)
    found = values(metrics)
    name = "folkmoot_http_request_duration_seconds_bucket{{le={},route=/health}}"
    assert [found[name.format(le)] for le in ("0.001", "0.005", "60.0", "+Inf")] == [1, 2, 2, 3]


def test_openmetrics_is_spoken_when_asked_for(metrics):
    plain, plain_type = metrics.exposition("text/plain")
    fancy, fancy_type = metrics.exposition("application/openmetrics-text; version=1.0.0")
    assert plain_type.startswith("text/plain")
    assert fancy_type.startswith("application/openmetrics-text")
    assert fancy.endswith(b"# EOF\n")
    assert not plain.endswith(b"# EOF\n")


VERSIONS = ("abc", "1.x", "", ".", "-1", "9" * 5000, "1.0.0; escaping=no", "2.x")


@pytest.mark.parametrize("kind", ["application/openmetrics-text", "text/plain"])
def test_a_version_that_is_none_is_answered_all_the_same(metrics, kind):
    for version in VERSIONS:
        content, _ = metrics.exposition(f"{kind}; version={version}")
        assert b"folkmoot_build_info" in content


def test_numbers_of_the_store_and_the_bus_are_read_when_asked(metrics):
    numbers: dict[str, object] = dict.fromkeys((*STORE_COUNTERS, *STORE_GAUGES), 0)
    numbers |= {"batch_sizes": (3, 1), "units": 5}
    metrics.watch(lambda: store_families({**numbers, "batch_bounds": (1, 2)}))
    metrics.watch(lambda: bus_families(4))
    found = values(metrics)
    assert found["folkmoot_store_units_total"] == 5
    assert found["folkmoot_store_batch_units_bucket{le=1.0}"] == 3
    assert found["folkmoot_store_batch_units_count"] == 4
    assert (found["folkmoot_store_batch_units_sum"], found["folkmoot_bus_subscriptions"]) == (5, 4)
    assert "folkmoot_bus_dropped_frames_total{reason=forged}" not in found
    numbers["units"] = 6
    assert values(metrics)["folkmoot_store_units_total"] == 6


def test_nodes_tell_what_they_dropped_forwarded_and_refused(metrics):
    metrics.watch(lambda: bus_families(0, {"forged": 3}))
    metrics.watch(lambda: forwarding_families(4, 1))
    found = values(metrics)
    assert found["folkmoot_bus_dropped_frames_total{reason=forged}"] == 3
    assert found["folkmoot_forwarded_requests_total"] == 4
    assert found["folkmoot_forwarded_requests_refused_total"] == 1


def test_every_metric_is_documented(metrics):
    page = Path(__file__).parents[2].joinpath("docs/operations/observability.md").read_text()
    numbers: dict[str, object] = dict.fromkeys((*STORE_COUNTERS, *STORE_GAUGES), 0)
    metrics.watch(lambda: store_families({**numbers, "batch_bounds": (1,), "batch_sizes": (0,)}))
    metrics.watch(lambda: bus_families(0))
    for family in metrics.registry.collect():
        if family.name.startswith("folkmoot_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            assert name in page or f"…{name.removeprefix('folkmoot_store')}" in page


def test_a_close_code_that_a_client_invented_is_counted_as_other(metrics):
    closed = {1000: 3, 4008: 1, 3123: 2, 4999: 5}
    metrics.watch(lambda: websocket_families(7, 18, closed))
    found = values(metrics)
    assert (found["folkmoot_websocket_links"], found["folkmoot_websocket_opened_total"]) == (7, 18)
    ended = {name: value for name, value in found.items() if "websocket_closed_total" in name}
    assert ended == {
        "folkmoot_websocket_closed_total{code=1000}": 3,
        "folkmoot_websocket_closed_total{code=4008}": 1,
        "folkmoot_websocket_closed_total{code=other}": 7,
    }
