"""What is told of changed tools fits into an answer, and says what does not."""

from __future__ import annotations

import msgspec

from folkmoot.gateway.pin_comparison import PinDiff
from folkmoot.operations.operator.servers import shown_differences

MOST = 1024 * 1024


def changed(number: int, *lines: str) -> PinDiff:
    return PinDiff(
        namespace="abc",
        name=f"tool{number}",
        canonical=f"abc:tool{number}",
        new=False,
        pinned={},
        changed={},
        changed_hash="0",
        since=1,
        lines=list(lines),
    )


def test_as_many_differences_are_told_as_fit():
    tools = shown_differences([changed(number, "+" * 100_000) for number in range(30)])
    assert 1 < len(tools) < 30
    assert len(msgspec.json.encode(tools)) < MOST


def test_one_that_is_too_long_is_cut_and_says_so():
    (tool,) = shown_differences([changed(1, "+ first", "+ " + "\x01" * 2_000_000, "+ never")])
    assert tool.lines[0] == "+ first"
    assert tool.lines[-1].startswith("… the rest is too long to be shown")
    assert "+ never" not in tool.lines
    assert len(msgspec.json.encode(tool)) < MOST
