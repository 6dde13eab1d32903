"""A tape in a form for other programs and other people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from folkmoot.cli.output import say
from folkmoot.cli.tape.writing import write_whole
from folkmoot.cli.text import escape_json, one_line
from folkmoot.proxy.tape.export import FORMATS
from folkmoot.proxy.tape.lines import CorrelationLine, Line, MessageLine
from folkmoot.proxy.tape.reader import follow_lines


def export_tape(
    file: Path, form: str, output: Path | None, first: int, last: int | None, *, overwrite: bool
) -> None:
    """Write a tape, or the messages from one number to another, in some form."""
    chunks = FORMATS[form](between(follow_lines(file), first, last))
    if output is None:
        for chunk in chunks:
            sys.stdout.write(escape_json(chunk))
        return
    target = output.expanduser()
    write_whole(target, map(escape_json, chunks), overwrite=overwrite)
    say(f"Wrote {one_line(str(target))}.", err=True)


def between(lines: Iterable[Line], first: int, last: int | None) -> Iterator[Line]:
    """The lines without the messages before and behind what is wanted."""
    for line in lines:
        number = first
        if isinstance(line, MessageLine):
            number = line.seq
        elif isinstance(line, CorrelationLine):
            number = line.response
        if number >= first and (last is None or number <= last):
            yield line
