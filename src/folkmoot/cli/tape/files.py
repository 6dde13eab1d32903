"""Tapes as files: which there are, and copies without secrets or in other formats."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Final

import msgspec

from folkmoot.cli.commands import Output
from folkmoot.cli.output import aligned, complain, escape_json, one_line, say
from folkmoot.cli.show import (
    Entry,
    Terminal,
    clock,
    counted,
    lapse,
    show_entries,
    side,
)
from folkmoot.core import errors as e
from folkmoot.proxy.redaction import TapeRedactor, own_key_file, redaction_key
from folkmoot.proxy.redaction.placeholders import FOLDER_KEY
from folkmoot.proxy.tape.export import FORMATS
from folkmoot.proxy.tape.file import MAGIC
from folkmoot.proxy.tape.lines import CorrelationLine, Line, MessageLine, TapeSide
from folkmoot.proxy.tape.reader import TapeLines, follow_lines
from folkmoot.proxy.tape.rewrite import redact_tape
from folkmoot.proxy.tape.stats import Counting


def write_whole(target: Path, chunks: Iterable[str], *, overwrite: bool) -> None:
    """Write a file, or leave things as they were. Raises `ExportFailed`."""
    if target.is_dir():
        raise e.ExportFailed(f"{target}: is a folder. Give the name of a file.")
    if target.exists() and not overwrite:
        raise e.ExportFailed(f"{target}: already exists. --overwrite replaces it.")
    try:
        handle, name = mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        part = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as out:
                out.writelines(chunks)
            part.replace(target)
        finally:
            with suppress(OSError):
                part.unlink()
    except OSError as error:
        raise e.ExportFailed(f"{target}: {(error.strerror or 'unwritable').lower()}.") from error


SUFFIXES: Final = (".jsonl", ".jsonl.zst")


class ListedTape(msgspec.Struct, frozen=True):
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


def list_paths(paths: Sequence[Path]) -> Output:
    """Tell of the tapes among some files, or in folders; in this one if none are named."""
    found: list[ListedTape] = []
    broken: list[e.TapeUnreadable] = []
    for path in paths or [Path()]:
        for file, named in candidates(path):
            try:
                found.append(looked_at(file))
            except e.TapeUnreadable as error:
                if named or error.data.get("line") != 1:
                    broken.append(error)
    complain(*(error.message for error in broken[:-1]))
    failed = broken[-1] if broken else None
    shown = [entry(tape) for tape in found]
    nothing = "" if broken else "No tapes here."
    return Output(found, lambda: show_entries(shown, nothing), failed=failed)


def candidates(path: Path) -> Iterator[tuple[Path, bool]]:
    """The files to look at, and whether they were named."""
    if not path.is_dir():
        yield path, True
        return
    for file in sorted(path.iterdir()):
        if file.name.endswith(SUFFIXES) and file.is_file():
            yield file, False


def looked_at(file: Path) -> ListedTape:
    """What a tape holds. Raises `TapeUnreadable`."""
    lines, counting = TapeLines(file), Counting()
    for line in lines:
        counting.take(line)
    stats, header = counting.stats(), counting.header
    unknown = TapeSide("unknown")
    return ListedTape(
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


def entry(tape: ListedTape) -> Entry:
    """One tape: when, how much, and who talks."""
    sides = f"{side(tape.client)} {Terminal().glyphs.between} {side(tape.server)}"
    said = (counts(tape), ""), (sides, "dim"), (STATES[tape.state], "yellow")
    return Entry(((one_line(tape.file), "bold"),), said, row(tape))


def counts(tape: ListedTape) -> str:
    """When and how much, in a sentence."""
    parts = [
        f"{clock(tape.started)} for {lapse(tape.seconds)}",
        counted(tape.messages, "message"),
        counted(tape.calls, "call"),
        counted(tape.errors, "error") if tape.errors else "",
        "compressed" if tape.compressed else "",
    ]
    return ", ".join(filter(None, parts))


def row(tape: ListedTape) -> tuple[str, ...]:
    """A tape in columns."""
    return (
        tape.file, tape.started, f"{tape.seconds:.3f}", str(tape.messages), str(tape.calls),
        str(tape.errors), f"{tape.client.transport}-{tape.server.transport}", tape.state,
        "zst" if tape.compressed else "plain",
    )  # fmt: skip


KINDS = {
    "form": "known by their form",
    "name": "known by their names",
    "header": "headers",
    "context": "sessions and transports",
    "mail": "words of mail",
    "path": "named by paths",
}
"""What was replaced, by the kind of its place."""


def redact_file(file: Path, out: Path, paths: Sequence[str], key: Path | None) -> Output:
    """Write a tape anew without its secrets, and tell what was replaced."""
    redactor = TapeRedactor(redaction_key(key or key_of(file)), paths=paths)
    counts = redact_tape(file, out, redactor)
    replaced = kinds(out) - kinds(file)
    told = {
        "messages": counts.messages, "changed": counts.redacted, "places": counts.places,
        "kinds": dict(replaced), "key": redactor.key_id, "file": str(out),
    }  # fmt: skip
    name = one_line(str(out))
    if not counts.places:
        return Output(told, f"Nothing to redact; {name} has the same content.")
    changed = f"{counted(counts.places, 'place')} in {counted(counts.redacted, 'message')}"
    rows = [(f"{count:>6,}", KINDS.get(kind, kind)) for kind, count in replaced.most_common()]
    done = f"Replaced {changed} of {counts.messages:,}; the new tape is {name}."
    return Output(told, done, *aligned(rows))


def key_of(file: Path) -> Path:
    """The key file for a tape: the one in its folder, else the user's own."""
    beside = file.absolute().parent / FOLDER_KEY
    return beside if beside.exists() else own_key_file(os.environ, Path.home())


def kinds(file: Path) -> Counter[str]:
    """How much of each kind was left out of a tape."""
    found: Counter[str] = Counter()
    for line in follow_lines(file):
        if isinstance(line, MessageLine):
            found.update(place.kind for place in line.redacted)
    return found


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
