"""Compares those who carry messages, in turns, and prints what was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple, TypeAlias

from benchmarks.proxy_load import Seen, Subject

DIRECT = "no proxy"
ALONE = "one by one"
COLUMNS = "  {:<20} {:<11} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  {:<16} {:>9} {:>9}  {}"
HEAD = (
    *("", "", "median", "p99", "added", "p99", "CPU", "calls/s"),
    *("beside", "by CPU", "added", ""),
)
LEAST_ADDED = 1e-7

Round: TypeAlias = dict[str, Seen]


class Size(NamedTuple):
    """How thoroughly to measure."""

    rounds: int
    seconds: float


class Way(NamedTuple):
    """What is on the two sides of the proxies, and what is compared with what."""

    name: str
    many: str
    """How many questions are open at once when there is more than one."""
    beside: dict[str, str]
    goals: dict[str, float]
    """The most that something may cost, as a multiple of what it is compared with."""
    rates: dict[str, float]
    """The least messages a second that something is to carry on its processor."""


class Line(NamedTuple):
    way: Way
    subject: str
    load: str
    rounds: Sequence[Round]

    def middle(self, of: Callable[[Round], float]) -> float:
        """The median of the rounds."""
        return median(map(of, self.rounds))

    def added(self, name: str) -> float:
        """What a question and its answer take longer through someone."""
        return self.middle(lambda r: r[name].p50 - r[DIRECT].p50)

    def ratios(self) -> list[float]:
        """Of what it is compared with: by processor time and, if asked alone, by what is added.

        Who is asked by many at once has them wait for each other, which shows in the rate.
        """
        other = self.way.beside.get(self.subject)
        if other is None:
            return []
        by_cpu = self.middle(lambda r: r[self.subject].cpu / r[other].cpu)
        if self.load == self.way.many:
            return [by_cpu]
        return [by_cpu, self.added(self.subject) / max(self.added(other), LEAST_ADDED)]

    def verdict(self) -> str:
        """Whether the goals are met, where there are any."""
        told, ratios = [], self.ratios()
        most, least = self.way.goals.get(self.subject), self.way.rates.get(self.subject)
        if most is not None and ratios:
            told.append(goal(f"≤ {most:g} ×", met=max(ratios) <= most))
        if least is not None and self.load == self.way.many:
            messages = 2 * self.middle(lambda r: r[self.subject].rate)
            reached = goal(f"≥ {least:,.0f}", met=messages >= least)
            told.append(f"{messages:,.0f} messages/s, {reached}")
        return "; ".join(told)

    def __str__(self) -> str:
        name, ratios = self.subject, self.ratios()
        p99 = self.middle(lambda r: r[name].p99 - r[DIRECT].p99)
        alone = name != DIRECT and self.load == ALONE
        return COLUMNS.format(
            name,
            self.load,
            micro(self.middle(lambda r: r[name].p50)),
            micro(self.middle(lambda r: r[name].p99)),
            *(micro(self.added(name)), micro(p99)) if alone else ("", ""),
            micro(self.middle(lambda r: r[name].cpu)),
            f"{self.middle(lambda r: r[name].rate):,.0f}",
            self.way.beside.get(name, ""),
            *[*(f"{ratio:.2f} ×" for ratio in ratios), "", ""][:2],
            self.verdict(),
        ).rstrip()


def micro(seconds: float) -> str:
    """Seconds as millionths."""
    return f"{seconds * 1e6:,.0f} µs" if seconds >= 1e-4 else f"{seconds * 1e6:.1f} µs"


def goal(told: str, *, met: bool) -> str:
    """A goal, and whether it is met."""
    return f"goal {told}: {'met' if met else 'MISSED'}"


def compare(way: Way, subjects: dict[str, Subject], size: Size) -> list[Round]:
    """Measure in turns, print a table, and give the rounds in which one asked alone."""
    print(f"\n{way.name}: {size.rounds} rounds of {size.seconds:g} s in turns")
    print(COLUMNS.format(*HEAD).rstrip())
    alone = rounds_of({name: one.alone for name, one in subjects.items()}, size)
    show(way, ALONE, alone)
    show(way, way.many, rounds_of({name: one.together for name, one in subjects.items()}, size))
    return alone


def rounds_of(measures: dict[str, Callable[[float], Seen]], size: Size) -> list[Round]:
    """Everyone once to warm up, then in turns."""
    for measure in measures.values():
        measure(size.seconds / 2)
    return [
        {name: measure(size.seconds) for name, measure in measures.items()}
        for _ in range(size.rounds)
    ]


def show(way: Way, load: str, rounds: Sequence[Round]) -> None:
    """Print the lines of one load."""
    for name in rounds[0]:
        print(Line(way, name, load, rounds), flush=True)
