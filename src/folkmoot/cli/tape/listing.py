"""Which tapes there are, and what each holds in numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from folkmoot.cli.output import aligned, complain, say
from folkmoot.cli.tape.paper import Paper
from folkmoot.cli.tape.words import clock, lapse, number, side
from folkmoot.cli.text import one_line, say_data
from folkmoot.core.errors import TapeUnreadable
from folkmoot.proxy.tape.file import MAGIC
from folkmoot.proxy.tape.lines import TapeSide
from folkmoot.proxy.tape.reader import TapeLines
from folkmoot.proxy.tape.stats import Counting

SUFFIXES: Final = (".jsonl", ".jsonl.zst")
"""How the names of tapes in a folder end."""


class Listed(msgspec.Struct, frozen=True):
    """One tape."""

    file: str
    started: str
    seconds: float
    messages: int
    calls: int
    errors: int
    client: TapeSide
    server: TapeSide
    bytes: int
    state: str
    """`whole`, `open` where the end line is missing, `cut` where the last line is incomplete."""
    compressed: bool


def list_paths(paths: Sequence[Path], *, as_json: bool) -> None:
    """Tell of the tapes among some files, or in folders; in this one if none are named."""
    found: list[Listed] = []
    broken: list[TapeUnreadable] = []
    for path in paths or [Path()]:
        for file, named in candidates(path):
            try:
                found.append(looked_at(file))
            except TapeUnreadable as error:
                if named or error.data.get("line") != 1:
                    broken.append(error)
    if as_json:
        say_data(found)
    elif found:
        tell(found)
    elif not broken:
        say("No tapes here.", err=True)
    if broken:
        complain(*(error.message for error in broken[:-1]))
        raise broken[-1]


def candidates(path: Path) -> Iterator[tuple[Path, bool]]:
    """The files to look at, and whether they were named."""
    if not path.is_dir():
        yield path, True
        return
    for file in sorted(path.iterdir()):
        if file.name.endswith(SUFFIXES) and file.is_file():
            yield file, False


def looked_at(file: Path) -> Listed:
    """What a tape holds. Raises `TapeUnreadable`."""
    lines, counting = TapeLines(file), Counting()
    for line in lines:
        counting.take(line)
    stats, header = counting.stats(), counting.header
    unknown = TapeSide("unknown")
    return Listed(
        file=str(file),
        started=header.started if header else "",
        seconds=stats.seconds,
        messages=stats.messages,
        calls=stats.calls,
        errors=stats.errors + stats.tool_errors,
        client=header.client if header else unknown,
        server=header.server if header else unknown,
        bytes=file.stat().st_size,
        state="cut" if lines.cut else "whole" if counting.end else "open",
        compressed=is_compressed(file),
    )


def is_compressed(file: Path) -> bool:
    """Whether a tape is compressed, whatever its name says."""
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


STATES: Final = {
    "whole": "",
    "open": "no end line: still being recorded, or cut off",
    "cut": "last line incomplete: still being recorded, or cut off",
}


def tell(found: Iterable[Listed]) -> None:
    """Tapes below each other on a terminal, in aligned columns elsewhere."""
    paper = Paper()
    if not paper.on_terminal:
        for line in aligned(map(row, found)):
            say(line)
        return
    for tape in found:
        paper.put(paper.fitted([(one_line(tape.file), "bold")]))
        sides = f"{side(tape.client)} {paper.glyphs.between} {side(tape.server)}"
        for text, style in (
            (counts(tape), ""),
            (sides, "dim"),
            (STATES[tape.state], "yellow"),
        ):
            for line in textwrap.wrap(text, max((paper.width or 80) - 2, 10)):
                paper.put(f"  {paper.styled(line, style)}")


def counts(tape: Listed) -> str:
    """When and how much, in a sentence."""
    parts = [
        f"{clock(tape.started)} for {lapse(tape.seconds)}",
        number(tape.messages, "message"),
        number(tape.calls, "call"),
        number(tape.errors, "error") if tape.errors else "",
        "compressed" if tape.compressed else "",
    ]
    return ", ".join(filter(None, parts))


def row(tape: Listed) -> tuple[str, ...]:
    """A tape in columns."""
    return (
        tape.file, tape.started, f"{tape.seconds:.3f}", str(tape.messages), str(tape.calls),
        str(tape.errors), f"{tape.client.transport}-{tape.server.transport}", tape.state,
        "zst" if tape.compressed else "plain",
    )  # fmt: skip
