"""Puts what was recorded in a test, perhaps on several tapes, on the one that is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from folkmoot.proxy.tape import CorrelationLine, EndLine, Header, Line, MessageLine, follow_lines
from folkmoot.proxy.tape.lines import encode_line


def recorded_in(folder: Path) -> list[Path]:
    """The tapes of a folder on which something was said, in the order in which they began."""
    tapes = []
    for path in folder.glob("*.jsonl"):
        lines = list(follow_lines(path))
        if any(isinstance(line, MessageLine) for line in lines):
            tapes.append((lines[0].started if isinstance(lines[0], Header) else "", path))
    return [path for _, path in sorted(tapes)]


def keep(tapes: Sequence[Path], path: Path) -> None:
    """Write these tapes as one, whole or not at all, over the one that is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            for line in joined(tapes):
                opened.write(encode_line(line))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def joined(tapes: Sequence[Path]) -> Iterator[Line]:
    """The lines of several tapes as those of one: messages are numbered through."""
    last, count, end = 0, 0, None
    for number, path in enumerate(tapes):
        before = last
        for line in follow_lines(path):
            if isinstance(line, MessageLine):
                last, count = before + line.seq, count + 1
                yield msgspec.structs.replace(line, seq=last)
            elif isinstance(line, CorrelationLine):
                yield msgspec.structs.replace(
                    line, request=before + line.request, response=before + line.response
                )
            elif isinstance(line, EndLine):
                end = line
            elif number == 0:
                yield line
    if end is not None:
        yield msgspec.structs.replace(end, messages=count)
