"""The lines of an opened tape from any place in it, forwards and backwards, in bounded memory.

A place is a number of bytes from the beginning. In a plain tape a place is reached at once; a
compressed one has to be decompressed up to there. A line that is too long is passed over in pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple

CHUNK: Final = 256 * 1024
MOST_LINE: Final = 1024 * 1024
"""A longer line is only named."""
SCAN: Final = 4 * 1024 * 1024
"""How much of a tape one question reads; then it says where it ended."""


class Span(NamedTuple):
    """One line: where it begins, where the next one does, and what it says."""

    start: int
    end: int
    raw: bytes | None
    """Without its end; None where it is too long."""
    whole: bool = True
    """Whether it has an end; the last line may still be written."""


def forward(file: IO[bytes], offset: int) -> Iterator[Span]:
    """The lines from a place on, which the file is at."""
    parts: list[bytes] = []
    start, held = offset, 0
    while chunk := file.read(CHUNK):
        at = 0
        while (cut := chunk.find(b"\n", at)) >= 0:
            held += cut - at
            parts.append(chunk[at:cut])
            end = start + held + 1
            if held:
                yield Span(start, end, _joined(parts, held))
            parts, held, start, at = [], 0, end, cut + 1
        held += len(chunk) - at
        parts = [*parts, chunk[at:]] if held <= MOST_LINE else []
    if held:
        yield Span(start, start + held, _joined(parts, held), whole=False)


def backward(file: IO[bytes], before: int | None) -> Iterator[Span]:
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
        stop = min(CHUNK, at - floor)
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
    while offset > 0 and (passed := len(file.read(min(offset, CHUNK)))):
        offset -= passed


def begins_line(file: IO[bytes], offset: int) -> bool:
    """Whether a line begins at a place, or would; if so, the file is at it."""
    if offset == 0:
        return True
    skip(file, offset - 1)
    return file.read(1) == b"\n"


def _joined(parts: list[bytes], held: int) -> bytes | None:
    return b"".join(parts) if held <= MOST_LINE else None


def _ended(start: int, end: int, parts: list[bytes]) -> Span:
    if end - start > MOST_LINE + 1 or not parts:
        return Span(start, end, None)
    raw = b"".join(parts)
    whole = raw.endswith(b"\n")
    return Span(start, end, raw.removesuffix(b"\n"), whole)


class _Tail:
    """The end of what can only be read from its beginning."""

    def __init__(self, file: IO[bytes], before: int | None) -> None:
        kept: deque[bytes] = deque()
        held = self.end = 0
        while before is None or self.end < before:
            most = CHUNK if before is None else min(CHUNK, before - self.end)
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
