"""A tape as a timeline, in lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from folkmoot.cli.output import say
from folkmoot.cli.tape.following import followed
from folkmoot.cli.tape.paper import Paper
from folkmoot.cli.tape.rows import rows
from folkmoot.cli.tape.words import clock, number, side
from folkmoot.cli.text import escape_json, one_line
from folkmoot.proxy.tape.lines import EndLine, Header, Line
from folkmoot.proxy.tape.reader import TapeLines
from folkmoot.proxy.tape.timeline import MessageFilter, Moment, grouped, moments

CLOSED: Final = "closed"
"""How a recording ends that nothing special has ended."""


def show_reel(
    reel: Reel,
    wanted: MessageFilter,
    *,
    limit: int | None,
    last: int | None,
    pairs: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Show the messages of a tape that are wanted."""
    found = chosen(reel.moments(), wanted, pairs=pairs)
    picked: Iterable[Moment] = deque(found, last) if last else islice(found, limit)
    told = tell_json(picked, reel) if as_json else tell(picked, reel, full=full)
    if not told and not reel.follow:
        say("No message matches." if reel.seen else "The tape has no messages.", err=True)


def from_the_last(path: Path, wanted: MessageFilter, count: int) -> MessageFilter:
    """The same, beginning with the last few that are on the tape by now."""
    found = deque(chosen(Reel(path, follow=False).moments(), wanted, pairs=False), count)
    return msgspec.structs.replace(wanted, first=found[0].seq) if found else wanted


class Reel:
    """The lines of one tape, and what is to be said around its messages."""

    def __init__(self, path: Path, *, follow: bool) -> None:
        self.follow = follow
        self.seen = 0
        self.header: Header | None = None
        self.end: EndLine | None = None
        self.finished = False
        """Whether all lines were read."""
        self._lines: Iterable[Line | None] = followed(path) if follow else TapeLines(path)

    def moments(self) -> Iterator[Moment]:
        """The messages."""
        for moment in moments(self._noting(self._lines)):
            self.seen += 1
            yield moment
        self.finished = True

    def _noting(self, lines: Iterable[Line | None]) -> Iterator[Line | None]:
        for line in lines:
            if isinstance(line, Header):
                self.header = line
            elif isinstance(line, EndLine):
                self.end = line
            yield line


def chosen(timeline: Iterable[Moment], wanted: MessageFilter, *, pairs: bool) -> Iterator[Moment]:
    """The messages that are wanted, each with its other half where pairs are."""
    if not pairs:
        for moment in timeline:
            if wanted.meets(moment):
                yield moment
            elif wanted.last is not None and moment.seq > wanted.last:
                return
        return
    for group in grouped(timeline):
        if any(map(wanted.meets, group)):
            yield from group


def tell(picked: Iterable[Moment], reel: Reel, *, full: bool) -> int:
    """Show messages as lines, and on a terminal what tape they are of."""
    paper = Paper()
    count = 0
    for moment in picked:
        if count == 0 and paper.on_terminal and reel.header is not None:
            paper.put(about(reel.header, paper))
        count += 1
        for line in rows(moment, paper, full=full):
            paper.put(line)
        if reel.follow:
            paper.flush()
    paper.flush()
    if paper.on_terminal and count and reel.finished:
        say(ending(reel), err=True)
    return count


def about(header: Header, paper: Paper) -> str:
    """Which tape this is."""
    sides = f"{side(header.client)} {paper.glyphs.between} {side(header.server)}"
    return paper.fitted([(clock(header.started), "bold"), ("  ", ""), (sides, "")])


def ending(reel: Reel) -> str:
    """What is to be known about the end of a tape."""
    if reel.end is not None:
        why = "" if reel.end.reason == CLOSED else f" ({one_line(reel.end.reason)})"
        return f"The recording ended{why}: {number(reel.end.messages, 'message')}."
    return "The tape has no end line: it is being recorded, or its recorder was killed."


def tell_json(picked: Iterable[Moment], reel: Reel) -> int:
    """Messages as JSON, one in a line."""
    paper = Paper()
    count = 0
    for moment in picked:
        count += 1
        paper.put(escape_json(msgspec.json.encode(as_data(moment)).decode()))
        if reel.follow:
            paper.flush()
    return count


def as_data(moment: Moment) -> dict[str, Any]:
    """A message for programs; what does not apply is left out."""
    line, answer = moment.line, moment.answer
    told = {
        "seq": line.seq,
        "at": round(moment.at, 6),
        "time": line.timing.system_time,
        "direction": line.direction,
        "type": moment.shape,
        "method": moment.method or None,
        "name": moment.name or None,
        "session": line.session.id,
        "answers": answer and answer.request,
        "seconds": answer and answer.seconds,
        "outcome": answer and answer.outcome,
        "verdict": line.verdict,
        "by": line.by or None,
        "error": line.error,
        "redacted": line.redacted or None,
        "message": line.message,
        "at_server": line.at_server,
    }
    return {name: value for name, value in told.items() if value not in (None, msgspec.UNSET)}
