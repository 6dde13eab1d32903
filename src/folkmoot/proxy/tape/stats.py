"""What a tape holds in numbers: messages, calls, errors, and how long answers took.

A tape is gone through once. What is kept grows only by the eight bytes of each call's latency.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heappush, heappushpop
from math import ceil
from typing import Any, Final, TypeAlias

import msgspec

from folkmoot.core.envelope import MessageDirection
from folkmoot.proxy.tape import summaries
from folkmoot.proxy.tape.lines import CorrelationLine, EndLine, Header, Line, MessageLine
from folkmoot.proxy.tape.timeline import CONTEXTS

MOST_NAMES: Final = 1_000
OTHERS: Final = "others"
"""Where calls are counted once there are too many names to tell apart."""
SLOWEST: Final = 5
MOST_OPEN: Final = 100_000
VERDICT: Final = "verdict "
SHARES: Final = (0.5, 0.9, 0.99, 1.0)
EDGES: Final = tuple(
    step * scale for scale in (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0) for step in (1, 2, 5)
)
"""Where the bars of the distribution end, in seconds; the last one is open."""


class Latency(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long answers took, in seconds."""

    p50: float
    p90: float
    p99: float
    max: float


class Bar(msgspec.Struct, frozen=True):
    """How many answers took at least `above` and less than `below` seconds."""

    above: float
    below: float | None
    count: int


class CallStats(msgspec.Struct, frozen=True):
    """The calls of one method and name."""

    method: str
    name: str
    from_client: bool
    calls: int
    errors: int
    tool_errors: int
    latency: Latency | None


class SlowCall(msgspec.Struct, frozen=True):
    """One of the slowest calls."""

    request: int
    method: str
    name: str
    seconds: float


class Stats(msgspec.Struct, frozen=True):
    """The statistics of one tape."""

    messages: int
    to_server: int
    to_client: int
    bytes: int
    calls: int
    answered: int
    errors: int
    tool_errors: int
    notifications: int
    verdicts: dict[str, int]
    """How often interceptors said anything but to let a message pass as it was."""
    redacted: int
    sessions: int
    seconds: float
    """From the first message to the last."""
    latency: Latency | None
    distribution: tuple[Bar, ...]
    by_call: tuple[CallStats, ...]
    slowest: tuple[SlowCall, ...]

    @property
    def unanswered(self) -> int:
        """Requests that got no answer."""
        return self.calls - self.answered


NOTHING: Final = msgspec.Raw()


class _Peek(msgspec.Struct, frozen=True):
    """As much of a message as is counted by."""

    method: str | None = None
    id: msgspec.Raw = NOTHING
    params: msgspec.Raw = NOTHING


_peek = msgspec.json.Decoder(_Peek).decode
_Key: TypeAlias = tuple[str, str, bool]


class _Count:
    def __init__(self) -> None:
        self.calls = 0
        self.outcomes: Counter[str] = Counter()
        self.seconds = array("d")

    def answered(self, line: CorrelationLine) -> None:
        self.outcomes[line.outcome] += 1
        self.seconds.append(line.seconds)


class Counting:
    """Counts lines one by one."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.end: EndLine | None = None
        self._total = _Count()
        self._counts: dict[_Key, _Count] = {}
        self._open: dict[int, _Key] = {}
        self._ways: Counter[MessageDirection] = Counter()
        self._numbers: Counter[str] = Counter()
        self._slowest: list[tuple[float, int, str, str]] = []
        self._sessions: set[str] = set()
        self._times: tuple[float, float] | None = None

    def take(self, line: Line) -> None:
        if isinstance(line, MessageLine):
            self._message(line)
        elif isinstance(line, CorrelationLine):
            self._answer(line)
        elif isinstance(line, Header):
            self.header = line
        else:
            self.end = line

    def _message(self, line: MessageLine) -> None:
        now = line.timing.created_at
        first, last = self._times or (now, now)
        self._times = first, max(last, now)
        self._ways[line.direction] += 1
        self._numbers["bytes"] += len(line.message)
        self._numbers["redacted"] += sum(place.part not in CONTEXTS for place in line.redacted)
        if line.verdict is not None:
            self._numbers[f"{VERDICT}{line.verdict}"] += 1
        if line.session.id and len(self._sessions) < MOST_OPEN:
            self._sessions.add(line.session.id)
        seen = _seen(line.message)
        if seen.method is None:
            return
        if not len(seen.id):
            self._numbers["notifications"] += 1
            return
        name = summaries.name_of(seen.method, _read(seen.params)) if len(seen.params) else ""
        key = (seen.method, name, line.direction is MessageDirection.CLIENT_TO_SERVER)
        self._open[line.seq] = key
        if len(self._open) > MOST_OPEN:
            del self._open[next(iter(self._open))]
        self._total.calls += 1
        self._count(key).calls += 1

    def _count(self, key: _Key) -> _Count:
        if key not in self._counts and len(self._counts) >= MOST_NAMES:
            key = (OTHERS, "", key[2])
        return self._counts.setdefault(key, _Count())

    def _answer(self, line: CorrelationLine) -> None:
        key = self._open.pop(line.request, None) or (line.method, line.name, True)
        self._total.answered(line)
        self._count(key).answered(line)
        slow = (line.seconds, line.request, line.method, line.name)
        push = heappush if len(self._slowest) < SLOWEST else heappushpop
        push(self._slowest, slow)

    def stats(self) -> Stats:
        """The statistics so far."""
        first, last = self._times or (0.0, 0.0)
        total, numbers = self._total, self._numbers
        return Stats(
            messages=self._ways.total(),
            to_server=self._ways[MessageDirection.CLIENT_TO_SERVER],
            to_client=self._ways[MessageDirection.SERVER_TO_CLIENT],
            bytes=numbers["bytes"],
            calls=total.calls,
            answered=total.outcomes.total(),
            errors=total.outcomes["error"],
            tool_errors=total.outcomes["tool_error"],
            notifications=numbers["notifications"],
            verdicts={
                name.removeprefix(VERDICT): count
                for name, count in sorted(numbers.items())
                if name.startswith(VERDICT) and count
            },
            redacted=numbers["redacted"],
            sessions=len(self._sessions),
            seconds=last - first,
            latency=_latency(total.seconds),
            distribution=distribution(total.seconds),
            by_call=tuple(self._by_call()),
            slowest=tuple(
                SlowCall(request, method, name, seconds)
                for seconds, request, method, name in sorted(self._slowest, reverse=True)
            ),
        )

    def _by_call(self) -> Iterator[CallStats]:
        counts = sorted(self._counts.items(), key=lambda each: -each[1].calls)
        for (method, name, from_client), count in counts:
            yield CallStats(
                method,
                name,
                from_client,
                count.calls,
                count.outcomes["error"],
                count.outcomes["tool_error"],
                _latency(count.seconds),
            )


def statistics_of(lines: Iterable[Line]) -> Counting:
    """The numbers of a whole tape."""
    counting = Counting()
    for line in lines:
        counting.take(line)
    return counting


def distribution(seconds: Iterable[float]) -> tuple[Bar, ...]:
    """How many took how long, from the shortest to the longest without gaps between."""
    counts = Counter(bisect_right(EDGES, each) for each in seconds)
    if not counts:
        return ()
    edges = (0.0, *EDGES, None)
    return tuple(
        Bar(edges[number] or 0.0, edges[number + 1], counts[number])
        for number in range(min(counts), max(counts) + 1)
    )


def _latency(seconds: array[float]) -> Latency | None:
    """Percentiles by nearest rank: each is a latency that was measured."""
    if not seconds:
        return None
    ranked = sorted(seconds)
    return Latency(*(ranked[ceil(share * len(ranked)) - 1] for share in SHARES))


def _seen(message: msgspec.Raw) -> _Peek:
    try:
        return _peek(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Peek()


def _read(value: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
