"""What is not the same on two tapes, call by call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from folkmoot.cli.output import aligned, say
from folkmoot.cli.tape.paper import Paper, cut
from folkmoot.cli.tape.words import label, lapse, number
from folkmoot.cli.text import escape_json, one_line, say_data
from folkmoot.proxy.tape.compare import (
    AnswerChange,
    ComparedLatency,
    ComparedTape,
    compare,
    latencies,
)
from folkmoot.proxy.tape.diff import Difference
from folkmoot.proxy.tape.reader import follow_lines

MOST: Final = 20
"""Places that are told of one call; all of them are in the JSON."""
LONGEST: Final = 200
BEFORE: Final = 15
"""Characters that are shown before two long texts begin to differ."""
NOTICED: Final = 0.001
"""Seconds below which nobody notices how long an answer took."""
SIMILAR: Final = 1.1
SAME, UNKNOWN = "the same", "-"

WORDS: Final = {
    "answer": "the answer differs",
    "outcome": "ends differently",
    "arguments": "the arguments differ",
    "only_a": "only in A",
    "only_b": "only in B",
    "tool_added": "the tool was added",
    "tool_removed": "the tool was removed",
    "tool_changed": "the tool's description changed",
}


class Answer(msgspec.Struct, frozen=True):
    """What the command says to a program."""

    same: bool
    changes: list[AnswerChange]
    latencies: list[ComparedLatency]


def tell_differences(a: Path, b: Path, ignore: Sequence[str], *, as_json: bool) -> bool:
    """Tell in what two tapes differ; whether they are the same."""
    first, second = ComparedTape(follow_lines(a)), ComparedTape(follow_lines(b))
    changes = list(compare(first, second, ignore))
    took = latencies(first, second)
    if as_json:
        say_data(Answer(not changes, changes, took))
        return not changes
    if changes:
        tell(changes)
    else:
        say("The tapes are equal.", err=True)
    tell_latencies(took)
    return not changes


def tell_latencies(took: Sequence[ComparedLatency]) -> None:
    """How long calls took on either tape, the greatest change first; it is no difference."""
    rows = [
        (
            label(each.method, each.name),
            lapse(each.a),
            lapse(each.b),
            factor(each.a, each.b),
            number(each.calls, "call"),
        )
        for each in took[:MOST]
    ]
    if not rows:
        return
    say("Latencies (medians in A and B):", err=True)
    for row in aligned(rows):
        say(f"  {row}", err=True)
    if len(took) > MOST:
        say(f"  and {len(took) - MOST:,} more; --json has all", err=True)


def factor(a: float, b: float) -> str:
    """How much slower or faster B is, where that can be told."""
    if min(a, b) <= 0 or max(a, b) < NOTICED:
        return UNKNOWN
    times = b / a if b >= a else a / b
    return SAME if times < SIMILAR else f"{times:.1f}x {'slower' if b >= a else 'faster'}"


def tell(changes: Sequence[AnswerChange]) -> None:
    """Each change with its places, and how many there are."""
    paper = Paper()
    for change in changes:
        for line in told(change, paper):
            paper.put(line)
    paper.flush()
    say(f"{number(len(changes), 'difference')}.", err=True)


def told(change: AnswerChange, paper: Paper) -> Iterator[str]:
    """A change in lines."""
    tool = change.what.startswith("tool_")
    what = one_line(change.name) if tool else label(change.method, change.name)
    words = WORDS[change.what]
    if change.what == "outcome":
        words = f"{change.outcome_a} in A, {change.outcome_b} in B"
    numbers = "/".join(str(seq) for seq in (change.a, change.b) if seq is not None)
    where = f"  ({numbers})" if numbers else ""
    a, b = change.seconds_a, change.seconds_b
    if a is not None and b is not None and factor(a, b) not in (SAME, UNKNOWN):
        where += f"  {lapse(a)} {paper.glyphs.to_server} {lapse(b)}"
    yield paper.fitted([(what, "bold"), (f": {words}", "yellow"), (where, "dim")])
    if change.params is not UNSET:
        yield paper.fitted([("    ", ""), (shown(change.params, paper.glyphs.cut), "")])
    for place in change.differences[:MOST]:
        yield from place_told(place, paper)
    if len(change.differences) > MOST:
        yield f"    and {number(len(change.differences) - MOST, 'place')} more; --json has all"


def place_told(place: Difference, paper: Paper) -> Iterator[str]:
    """A place, and what stands there on either tape."""
    yield paper.fitted([("    ", ""), (one_line(place.path), "cyan")])
    start, mark = where_it_begins(place.recorded, place.live), paper.glyphs.cut
    for name, value, style in (("A", place.recorded, "red"), ("B", place.live, "green")):
        text = f"{mark}{shown(value[start:], mark)}" if start else shown(value, mark)
        yield paper.fitted([(f"      {name}  ", "dim"), (text, style)])


def where_it_begins(a: Any, b: Any) -> int:
    """Where to begin to show two texts that are the same for long: a little before they differ."""
    if not isinstance(a, str) or not isinstance(b, str):
        return 0
    pairs = enumerate(zip(a, b, strict=False))
    alike = next((at for at, (ours, theirs) in pairs if ours != theirs), min(len(a), len(b)))
    return alike - BEFORE if alike > 2 * BEFORE else 0


def shown(value: Any, mark: str) -> str:
    """A value in a line; the mark says that it was cut."""
    if value is UNSET:
        return "(nothing)"
    text = msgspec.json.encode(value).decode()
    return escape_json(cut(text, LONGEST, mark))
