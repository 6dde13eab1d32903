"""How benchmarks measure and what they print: the best of several rounds, as a ratio to a floor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

ROUNDS = 15
ROUND_SECONDS = 0.02


class Row(NamedTuple):
    """One thing measured: seconds a call, and how it compares."""

    name: str
    seconds: float
    goal: float | None = None
    """The ratio to the floor that it should not pass."""


def best(*functions: Callable[[], object]) -> list[float]:
    """Seconds a call of each function, the best of many short rounds.

    The rounds of the functions are interleaved, so that a busy moment of the machine meets them
    all and the ratios between them stay true.
    """
    counts = [_count(function) for function in functions]
    least = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for index, (function, count) in enumerate(zip(functions, counts, strict=True)):
            least[index] = min(least[index], _round(function, count) / count)
    return least


def table(title: str, floor: Row, rows: list[Row]) -> None:
    """Print the rows with their ratio to the floor, and whether a goal is met."""
    print(f"\n{title}")
    print(f"  {floor.name:<58} {_readable(floor.seconds):>9}   1.00 ×  (floor)")
    for row in rows:
        ratio = row.seconds / floor.seconds
        goal = "" if row.goal is None else f"  goal ≤ {row.goal:g} ×: {_verdict(ratio, row.goal)}"
        print(f"  {row.name:<58} {_readable(row.seconds):>9} {ratio:6.2f} ×{goal}")


def _verdict(ratio: float, goal: float) -> str:
    return "met" if ratio <= goal else "MISSED"


def _readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def _count(function: Callable[[], object]) -> int:
    """How many calls fill one round."""
    count = 1
    while (took := _round(function, count)) < ROUND_SECONDS / 4:
        count *= 4
    return max(1, int(count * ROUND_SECONDS / took))


def _round(function: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return time.perf_counter() - start
