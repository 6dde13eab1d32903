"""Reads tapes: whole, line by line, or from any place in them, in bounded memory.

Only the last line may be incomplete: it was being written, or its writer was killed. What is broken
before that is no tape. In a plain tape any place is reached at once; a compressed one has to be
decompressed up to there. A line that is too long is passed over in pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.proxy.tape.file import BrokenStream, opened
from folkmoot.proxy.tape.lines import (
    FORMAT,
    CorrelationLine,
    EndLine,
    Header,
    Line,
    MessageLine,
    TapeSide,
    decode_line,
)
from folkmoot.proxy.tape.model import Tape, entry_of

WINDOW_CHUNK: Final = 256 * 1024
MOST_LINE: Final = 1024 * 1024
"""A longer line is only named."""
SCAN: Final = 4 * 1024 * 1024
"""How much of a tape one question reads; then it says where it ended."""


class LineSpan(NamedTuple):
    """One line: its offset, the offset of the next, and its content."""

    start: int
    end: int
    raw: bytes | None
    """Without its end; None where it is too long."""
    whole: bool = True
    """Whether it has an end; the last line may still be written."""


def forward(file: IO[bytes], offset: int) -> Iterator[LineSpan]:
    """The lines from a place on, which the file is at."""
    parts: list[bytes] = []
    start, held = offset, 0
    while chunk := file.read(WINDOW_CHUNK):
        at = 0
        while (cut := chunk.find(b"\n", at)) >= 0:
            held += cut - at
            parts.append(chunk[at:cut])
            end = start + held + 1
            if held:
                yield LineSpan(start, end, _joined(parts, held))
            parts, held, start, at = [], 0, end, cut + 1
        held += len(chunk) - at
        parts = [*parts, chunk[at:]] if held <= MOST_LINE else []
    if held:
        yield LineSpan(start, start + held, _joined(parts, held), whole=False)


def backward(file: IO[bytes], before: int | None) -> Iterator[LineSpan]:
    """The lines that end before a place, the last one first; from the end where none is given.

    Of a compressed tape only the last `SCAN` bytes before the place.
    """
    source: Any = file
    floor = 0
    if not file.seekable():
        source = _Tail(file, before)
        floor, before = source.base, source.end
    elif before is None:
        before = file.seek(0, 2)
    end = at = before
    parts: list[bytes] = []
    while at > floor:
        stop = min(WINDOW_CHUNK, at - floor)
        at -= stop
        source.seek(at)
        chunk = source.read(stop)
        # The byte before the end of a line is that end itself.
        while (cut := chunk.rfind(b"\n", 0, max(0, min(stop, end - 1 - at)))) >= 0:
            start = at + cut + 1
            if end - start > 1:
                yield _ended(start, end, [chunk[cut + 1 : stop], *parts])
            end, stop, parts = start, cut + 1, []
        parts = [chunk[:stop], *parts] if end - at <= MOST_LINE else []
    if end > 0 and floor == 0:
        yield _ended(0, end, parts)


def skip(file: IO[bytes], offset: int) -> None:
    """Go to a place."""
    if file.seekable():
        file.seek(offset)
        return
    while offset > 0 and (passed := len(file.read(min(offset, WINDOW_CHUNK)))):
        offset -= passed


def begins_line(file: IO[bytes], offset: int) -> bool:
    """Whether a line begins at a place, or would; if so, the file is at it."""
    if offset == 0:
        return True
    skip(file, offset - 1)
    return file.read(1) == b"\n"


def _joined(parts: list[bytes], held: int) -> bytes | None:
    return b"".join(parts) if held <= MOST_LINE else None


def _ended(start: int, end: int, parts: list[bytes]) -> LineSpan:
    if end - start > MOST_LINE + 1 or not parts:
        return LineSpan(start, end, None)
    raw = b"".join(parts)
    whole = raw.endswith(b"\n")
    return LineSpan(start, end, raw.removesuffix(b"\n"), whole)


class _Tail:
    """The end of what can only be read from its beginning."""

    def __init__(self, file: IO[bytes], before: int | None) -> None:
        kept: deque[bytes] = deque()
        held = self.end = 0
        while before is None or self.end < before:
            most = WINDOW_CHUNK if before is None else min(WINDOW_CHUNK, before - self.end)
            chunk = file.read(most)
            if not chunk:
                break
            kept.append(chunk)
            self.end += len(chunk)
            held += len(chunk)
            while held - len(kept[0]) >= SCAN:
                held -= len(kept.popleft())
        self._data = b"".join(kept)
        self._at = self.base = self.end - held

    def seek(self, at: int) -> None:
        self._at = at

    def read(self, size: int) -> bytes:
        begin = self._at - self.base
        return self._data[begin : begin + size]


CHUNK = 1024 * 1024
LONGEST = 384 * 1024 * 1024
"""No line may be longer."""

BEGINNING = b'{"type":"header"'
UNNAMED = Header(
    FORMAT, tape="", started="", program="", client=TapeSide("unknown"), server=TapeSide("unknown")
)
"""The header of a tape that was cut off within its first line."""


def read_tape(path: Path) -> Tape:
    """A whole tape. Raises `TapeUnreadable`, which names the file and the line."""
    tape = Tape(UNNAMED, [], [], path=path)
    lines = TapeLines(path)
    for line in lines:
        if isinstance(line, MessageLine):
            try:
                tape.entries.append(entry_of(line))
            except e.MessageError as error:
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
    """The lines of a tape one by one, in the memory of one line."""
    return iter(TapeLines(path))


class TapeLines(Entity):
    """The lines of a tape, to be read once; `cut` and `number` tell how far it came."""

    path: Path
    number: int = 0
    """The number of the line that was given last."""
    cut: bool = False

    def __iter__(self) -> Iterator[Line]:
        try:
            with opened(self.path) as file:
                yield from self._decoded(file)
        except OSError as error:
            raise e.TapeUnreadable(f"{self.path}: cannot be read: {error.strerror}.") from error
        except BrokenStream as error:
            raise self.broken(str(error)) from None

    def broken(self, what: str) -> e.TapeUnreadable:
        """The error that says where the tape is broken, and how."""
        return e.TapeUnreadable(f"{self.path}: line {self.number} {what}", line=self.number)

    def _decoded(self, file: IO[bytes]) -> Iterator[Line]:
        fault: e.TapeUnreadable | None = None
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

    def _fault(self, raw: bytes, error: Exception) -> e.TapeUnreadable:
        """What to raise if the line proves not to be the last."""
        if self.number == 1 and not (raw and raw[: len(BEGINNING)] == BEGINNING[: len(raw)]):
            raise e.TapeUnreadable(f"{self.path}: is not a tape.", line=1)
        return self.broken(f"cannot be read: {error}.")

    def _check_header(self, line: Line | None) -> None:
        if not isinstance(line, Header):
            raise e.TapeUnreadable(f"{self.path}: is not a tape.", line=1)
        if line.format > FORMAT:
            raise e.TapeUnreadable(
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
