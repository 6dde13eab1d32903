"""The numbers of tapes, and the differences between two."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UNSET

from folkmoot.cli.commands import Note, Output
from folkmoot.cli.output import aligned, escape_json, one_line, say, size
from folkmoot.cli.show import (
    Terminal,
    cells,
    clock,
    counted,
    cut,
    label,
    lapse,
    side,
)
from folkmoot.proxy.tape.compare import (
    AnswerChange,
    ComparedLatency,
    ComparedTape,
    compare,
    latencies,
)
from folkmoot.proxy.tape.diff import Difference
from folkmoot.proxy.tape.lines import Header, TapeSide
from folkmoot.proxy.tape.reader import follow_lines
from folkmoot.proxy.tape.stats import Bar, CallStats, Stats, statistics_of

MOST_CALLS: Final = 20
BAR: Final = 40
MARGIN: Final = 12
PIPED: Final = 100
"""Columns that are used where nobody says how many there are."""


class TapeNumbers(msgspec.Struct, frozen=True):
    """The numbers of one tape, for programs."""

    file: str
    started: str
    client: TapeSide
    server: TapeSide
    ended: str | None
    stats: Stats


def numbers_of(files: Sequence[Path]) -> Output:
    told = [looked_at(file) for file in files]
    return Output(told, lambda: show_numbers(told))


def show_numbers(told: Sequence[TapeNumbers]) -> None:
    terminal = Terminal()
    for count, each in enumerate(told):
        if count:
            terminal.write("")
        for line in drawn(each, terminal):
            terminal.write(line)


def looked_at(file: Path) -> TapeNumbers:
    """The numbers of a tape. Raises `TapeUnreadable`."""
    counting = statistics_of(follow_lines(file))
    header = counting.header or Header(0, "", "", "", TapeSide("unknown"), TapeSide("unknown"))
    ended = counting.end.reason if counting.end else None
    return TapeNumbers(
        str(file), header.started, header.client, header.server, ended, counting.stats()
    )


def drawn(told: TapeNumbers, terminal: Terminal) -> Iterator[str]:
    """Everything about a tape, in lines as wide as the terminal."""
    yield terminal.truncated([(one_line(told.file), "bold")])
    yield from facts(told, terminal)
    if told.stats.by_call:
        yield ""
        yield from calls(told.stats.by_call, terminal)
    if told.stats.distribution:
        yield ""
        yield from chart(told.stats.distribution, terminal)
    if told.stats.slowest:
        yield ""
        yield from slowest(told.stats, terminal)


def facts(told: TapeNumbers, terminal: Terminal) -> Iterator[str]:
    """The totals of a tape."""
    stats, glyphs = told.stats, terminal.glyphs
    verdicts = ", ".join(f"{count:,} {one_line(name)}" for name, count in stats.verdicts.items())
    latency = stats.latency
    rows = {
        "recorded": f"{clock(told.started)} for {lapse(stats.seconds)}",
        "client": side(told.client),
        "server": side(told.server),
        "messages": f"{stats.messages:,}: {stats.to_server:,} {glyphs.to_server} "
        f"{stats.to_client:,} {glyphs.to_client}",
        "size": size(stats.bytes),
        "calls": f"{stats.calls:,}",
        "failed": ", ".join(failures(stats)) or "none",
        "notices": f"{stats.notifications:,}" if stats.notifications else "",
        "sessions": f"{stats.sessions:,}" if stats.sessions else "",
        "verdicts": verdicts,
        "redacted": counted(stats.redacted, "place") if stats.redacted else "",
        "latency": f"{lapse(latency.p50)} median, {lapse(latency.max)} at most" if latency else "",
    }
    room = max((terminal.width or PIPED) - MARGIN, 10)
    for name, value in rows.items():
        for count, line in enumerate(textwrap.wrap(value, room)):
            margin = " " * MARGIN if count else f"  {name}".ljust(MARGIN)
            yield f"{terminal.styled(margin, 'dim')}{line}"


def failures(stats: Stats) -> Iterator[str]:
    """The failures of a tape, counted by kind."""
    if stats.errors:
        yield counted(stats.errors, "error")
    if stats.tool_errors:
        yield counted(stats.tool_errors, "tool error")
    if stats.unanswered:
        yield f"{stats.unanswered:,} without answer"


HEADINGS: Final = ("calls", "failed", "p50", "p90", "p99", "max")


def calls(by_call: Sequence[CallStats], terminal: Terminal) -> Iterator[str]:
    """The numbers of each method and tool, those called most first."""
    shown = by_call[:MOST_CALLS]
    yield from listed(shown, terminal) if terminal.narrow else tabled(shown, terminal)
    if len(by_call) > len(shown):
        yield f"  and {len(by_call) - len(shown):,} more; --json has all"


def tabled(shown: Sequence[CallStats], terminal: Terminal) -> Iterator[str]:
    table = [HEADINGS, *map(columns, shown)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    names = ["", *(called(each, terminal) for each in shown)]
    room = (terminal.width or PIPED) - sum(widths) - 2 * len(widths) - 2
    longest = max(10, min(room, max(map(cells, names))))
    for name, row in zip(names, table, strict=True):
        truncated = cut(name, longest, terminal.glyphs.cut)
        padded = truncated + " " * (longest - cells(truncated))
        right = "".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        style = "dim" if not name else "red" if row[1] != "0" else ""
        yield terminal.truncated([(f"  {padded}{right}", style)])


def listed(shown: Sequence[CallStats], terminal: Terminal) -> Iterator[str]:
    """Calls below each other, where a table has no room."""
    for each in shown:
        count, failed, median, *_, most = columns(each)
        style = "red" if failed != "0" else ""
        yield terminal.truncated([(f"  {called(each, terminal)}", style), (f"  {count}", "dim")])
        said = f"p50 {median}, max {most}" + (f", {failed} failed" if failed != "0" else "")
        yield terminal.truncated([("    ", ""), (said, "dim")])


def called(each: CallStats, terminal: Terminal) -> str:
    """The name of what was called, with an arrow where the server is the caller."""
    arrow = "" if each.from_client else f"{terminal.glyphs.to_client} "
    return f"{arrow}{label(each.method, each.name)}"


def columns(each: CallStats) -> tuple[str, ...]:
    counts = f"{each.calls:,}", f"{each.errors + each.tool_errors:,}"
    took = each.latency
    if took is None:
        return (*counts, "-", "-", "-", "-")
    return (*counts, *map(lapse, (took.p50, took.p90, took.p99, took.max)))


def chart(bars: Sequence[Bar], terminal: Terminal) -> Iterator[str]:
    """How many answers took how long, as bars."""
    names = [span(bar) for bar in bars]
    counts = [f"{bar.count:,}" for bar in bars]
    margin = max(map(len, names)) + max(map(len, counts)) + 6
    room = max(5, min(BAR, (terminal.width or PIPED) - margin))
    most = max(bar.count for bar in bars)
    for bar, name, count in zip(bars, names, counts, strict=True):
        length = -(-bar.count * room // most)
        yield terminal.truncated([
            (f"  {name:>{max(map(len, names))}}  ", "dim"),
            (terminal.glyphs.bar * length, "cyan"),
            (f"{' ' if length else ''}{count}", ""),
        ])  # fmt: skip


def span(bar: Bar) -> str:
    """Between what latencies a bar stands."""
    if bar.below is None:
        return f"from {brief(bar.above)}"
    return f"under {brief(bar.below)}"


def brief(seconds: float) -> str:
    """A round span."""
    return f"{seconds:g} s" if seconds >= 1 else f"{round(seconds * 1000, 3):g} ms"


def slowest(stats: Stats, terminal: Terminal) -> Iterator[str]:
    """The calls that took longest, by the number of their request."""
    yield terminal.truncated([("  slowest", "dim")])
    for call in stats.slowest:
        took = lapse(call.seconds)
        parts = [(f"  {took:>9}  ", ""), (f"{call.request:>6}  ", "dim")]
        yield terminal.truncated([*parts, (label(call.method, call.name), "")])


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


class ComparedAnswer(msgspec.Struct, frozen=True):
    """What the command says to a program."""

    same: bool
    changes: list[AnswerChange]
    latencies: list[ComparedLatency]


def differences(a: Path, b: Path, ignore: Sequence[str]) -> Output:
    """The differences of two tapes; it fails unless they are equal."""
    first, second = ComparedTape(follow_lines(a)), ComparedTape(follow_lines(b))
    changes = list(compare(first, second, ignore))
    took = latencies(first, second)
    return Output(
        ComparedAnswer(not changes, changes, took),
        (lambda: show_changes(changes)) if changes else Note("The tapes are equal."),
        lambda: show_latencies(took),
        failed=bool(changes),
    )


def show_latencies(took: Sequence[ComparedLatency]) -> None:
    """How long calls took on either tape, the greatest change first; it is no difference."""
    rows = [
        (
            label(each.method, each.name),
            lapse(each.a),
            lapse(each.b),
            factor(each.a, each.b),
            counted(each.calls, "call"),
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


def show_changes(changes: Sequence[AnswerChange]) -> None:
    """Each change with its places, and how many there are."""
    terminal = Terminal()
    for change in changes:
        for line in change_lines(change, terminal):
            terminal.write(line)
    terminal.flush()
    say(f"{counted(len(changes), 'difference')}.", err=True)


def change_lines(change: AnswerChange, terminal: Terminal) -> Iterator[str]:
    tool = change.what.startswith("tool_")
    what = one_line(change.name) if tool else label(change.method, change.name)
    words = WORDS[change.what]
    if change.what == "outcome":
        words = f"{change.outcome_a} in A, {change.outcome_b} in B"
    numbers = "/".join(str(seq) for seq in (change.a, change.b) if seq is not None)
    where = f"  ({numbers})" if numbers else ""
    a, b = change.seconds_a, change.seconds_b
    if a is not None and b is not None and factor(a, b) not in (SAME, UNKNOWN):
        where += f"  {lapse(a)} {terminal.glyphs.to_server} {lapse(b)}"
    yield terminal.truncated([(what, "bold"), (f": {words}", "yellow"), (where, "dim")])
    if change.params is not UNSET:
        yield terminal.truncated(
            [("    ", ""), (truncated(change.params, terminal.glyphs.cut), "")]
        )
    for place in change.differences[:MOST]:
        yield from place_told(place, terminal)
    if len(change.differences) > MOST:
        yield f"    and {counted(len(change.differences) - MOST, 'place')} more; --json has all"


def place_told(place: Difference, terminal: Terminal) -> Iterator[str]:
    """A place, and what stands there on either tape."""
    yield terminal.truncated([("    ", ""), (one_line(place.path), "cyan")])
    start, mark = where_it_begins(place.recorded, place.live), terminal.glyphs.cut
    for name, value, style in (("A", place.recorded, "red"), ("B", place.live, "green")):
        text = f"{mark}{truncated(value[start:], mark)}" if start else truncated(value, mark)
        yield terminal.truncated([(f"      {name}  ", "dim"), (text, style)])


def where_it_begins(a: Any, b: Any) -> int:
    """Where to begin to show two texts that are the same for long: a little before they differ."""
    if not isinstance(a, str) or not isinstance(b, str):
        return 0
    pairs = enumerate(zip(a, b, strict=False))
    alike = next((at for at, (ours, theirs) in pairs if ours != theirs), min(len(a), len(b)))
    return alike - BEFORE if alike > 2 * BEFORE else 0


def truncated(value: Any, mark: str) -> str:
    """A value in a line; the mark says that it was cut."""
    if value is UNSET:
        return "(nothing)"
    text = msgspec.json.encode(value).decode()
    return escape_json(cut(text, LONGEST, mark))
