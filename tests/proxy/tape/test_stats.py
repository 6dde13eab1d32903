"""A tape in numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.proxy.tape import follow_lines, stats
from folkmoot.proxy.tape.stats import Stats, distribution, statistics_of
from tests.proxy.tape.studio import TO_CLIENT, conversation, recording


def numbers(path: Path) -> Stats:
    return statistics_of(follow_lines(path)).stats()


def test_messages_calls_and_failures_are_counted(tmp_path):
    found = numbers(conversation(tmp_path / "a.jsonl"))
    assert (found.messages, found.to_server, found.to_client) == (20, 10, 10)
    assert (found.calls, found.answered, found.unanswered, found.notifications) == (9, 8, 1, 3)
    assert (found.errors, found.tool_errors) == (2, 1)
    assert (found.verdicts, found.sessions) == ({"block": 1, "modify": 1}, 1)
    assert found.seconds == pytest.approx(2.725)
    assert found.bytes > 1_000


def test_calls_are_told_apart_by_method_name_and_side(tmp_path):
    with recording(tmp_path / "t.jsonl") as studio:
        for number in range(3):
            studio.tool(number, "echo", "x", took=0.01 * (number + 1))
        studio.tool(3, "add", "x", failed=True)
        studio.call(1, "ping", direction=TO_CLIENT)
        studio.call(4, "ping")
    found = numbers(tmp_path / "t.jsonl").by_call
    assert [(c.method, c.name, c.from_client, c.calls, c.tool_errors) for c in found] == [
        ("tools/call", "echo", True, 3, 0),
        ("tools/call", "add", True, 1, 1),
        ("ping", "", False, 1, 0),
        ("ping", "", True, 1, 0),
    ]


def test_a_tape_without_calls_has_no_latency(tmp_path):
    with recording(tmp_path / "t.jsonl"):
        pass
    found = numbers(tmp_path / "t.jsonl")
    assert (found.messages, found.latency, found.distribution, found.slowest) == (0, None, (), ())


@pytest.mark.parametrize(
    ("took", "latency"),
    [
        ([0.5], (0.5, 0.5, 0.5, 0.5)),
        ([0.5, 1.0, 1.5], (1.0, 1.5, 1.5, 1.5)),
        ([0.5, 1.0, 1.5, 2.0], (1.0, 2.0, 2.0, 2.0)),
        ([number / 1000 for number in range(1, 101)], (0.050, 0.090, 0.099, 0.100)),
    ],
)
def test_percentiles_are_latencies_that_were_measured(tmp_path, took, latency):
    with recording(tmp_path / "t.jsonl") as studio:
        for number, seconds in enumerate(took):
            studio.tool(number, "echo", "x", took=seconds)
    found = numbers(tmp_path / "t.jsonl")
    told = found.latency
    assert (told.p50, told.p90, told.p99, told.max) == pytest.approx(latency)
    slowest = [(call.seconds, call.request) for call in found.slowest]
    last = [(each, 2 * number + 1) for number, each in enumerate(took)][:-6:-1]
    assert slowest == [pytest.approx(each) for each in last]


def test_the_distribution_has_a_bar_for_every_span_between_the_first_and_the_last():
    bars = distribution([0.0015, 0.0015, 0.003, 0.04])
    assert [(bar.above, bar.below, bar.count) for bar in bars] == [
        (0.001, 0.002, 2), (0.002, 0.005, 1), (0.005, 0.01, 0), (0.01, 0.02, 0), (0.02, 0.05, 1),
    ]  # fmt: skip
    assert distribution([0.0])[0].above == 0.0
    assert distribution([1e9])[0].below is None
    assert sum(bar.count for bar in distribution([0.0, 0.001, 0.5, 1e9])) == 4


def test_made_up_names_do_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(stats, "MOST_NAMES", 3)
    with recording(tmp_path / "t.jsonl") as studio:
        for number in range(10):
            studio.tool(number, f"tool-{number}", "x")
    found = numbers(tmp_path / "t.jsonl").by_call
    assert {(each.method, each.name, each.calls) for each in found} == {
        ("others", "", 7), *(("tools/call", f"tool-{n}", 1) for n in range(3)),
    }  # fmt: skip
