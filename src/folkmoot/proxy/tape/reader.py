"""Reads tapes: whole, or line by line for those that are large.

Only the last line may be incomplete: it was being written, or its writer was killed. What is broken
before that is no tape.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from folkmoot.core.errors import MessageError, TapeUnreadable
from folkmoot.proxy.tape.compression import BrokenStream, opened
from folkmoot.proxy.tape.lines import (
    FORMAT,
    CorrelationLine,
    EndLine,
    Header,
    Line,
    MessageLine,
    Side,
    decode_line,
)
from folkmoot.proxy.tape.model import Tape, entry_of

CHUNK = 1024 * 1024
LONGEST = 384 * 1024 * 1024
"""No line may be longer."""

BEGINNING = b'{"type":"header"'
UNNAMED = Header(
    FORMAT, tape="", started="", program="", client=Side("unknown"), server=Side("unknown")
)
"""The header of a tape that was cut off within its first line."""


def read_tape(path: Path) -> Tape:
    """A whole tape. Raises `TapeUnreadable`, which names the file and the line."""
    tape = Tape(UNNAMED, [], [], path=path)
    lines = Lines(path)
    for line in lines:
        if isinstance(line, MessageLine):
            try:
                tape.entries.append(entry_of(line))
            except MessageError as error:
                raise lines.broken(f"holds no message: {error.message}") from None
        elif isinstance(line, CorrelationLine):
            tape.correlations.append(line)
        elif isinstance(line, EndLine):
            tape.end = line
        else:
            tape.header = line
    tape.cut = lines.cut
    return tape


def follow_lines(path: Path) -> Iterator[Line]:
    """The lines of a tape one after the other, in the memory that one of them takes."""
    return iter(Lines(path))


class Lines:
    """The lines of a tape, to be read once; `cut` and `number` tell how far it came."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        """The number of the line that was given last."""
        self.cut = False

    def __iter__(self) -> Iterator[Line]:
        try:
            with opened(self.path) as file:
                yield from self._decoded(file)
        except OSError as error:
            raise TapeUnreadable(f"{self.path}: cannot be read: {error.strerror}.") from error
        except BrokenStream as error:
            raise self.broken(str(error)) from None

    def broken(self, what: str) -> TapeUnreadable:
        """The error that says where the tape is broken, and how."""
        return TapeUnreadable(f"{self.path}: line {self.number} {what}", line=self.number)

    def _decoded(self, file: IO[bytes]) -> Iterator[Line]:
        fault: TapeUnreadable | None = None
        for raw in self._split(file):
            if fault is not None:
                raise fault
            self.number += 1
            try:
                line = decode_line(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                fault = self._fault(raw, error)
                continue
            if self.number == 1:
                self._check_header(line)
            if line is not None:
                yield line
        self.cut = fault is not None or self.number == 0

    def _fault(self, raw: bytes, error: Exception) -> TapeUnreadable:
        """What to raise if the line proves not to be the last."""
        if self.number == 1 and not (raw and raw[: len(BEGINNING)] == BEGINNING[: len(raw)]):
            raise TapeUnreadable(f"{self.path}: is not a tape.", line=1)
        return self.broken(f"cannot be read: {error}.")

    def _check_header(self, line: Line | None) -> None:
        if not isinstance(line, Header):
            raise TapeUnreadable(f"{self.path}: is not a tape.", line=1)
        if line.format > FORMAT:
            raise TapeUnreadable(
                f"{self.path}: has format {line.format}; this program reads up to {FORMAT}.",
                line=1,
            )

    def _split(self, file: IO[bytes]) -> Iterator[bytes]:
        """The lines without their ends, the last one also where its end is missing."""
        rest: list[bytes] = []
        held = 0
        while chunk := file.read(CHUNK):
            first, *others = chunk.split(b"\n")
            rest.append(first)
            held += len(first)
            if held > LONGEST:
                self.number += 1
                raise self.broken("is longer than a line may be.")
            if others:
                yield b"".join(rest)
                yield from others[:-1]
                rest, held = [others[-1]], len(others[-1])
        if held:
            yield b"".join(rest)
