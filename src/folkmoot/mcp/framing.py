"""How messages are cut out of bytes, without any I/O: as lines, and as Server-Sent Events."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

from folkmoot.core import errors as e

KEPT: Final = 512
"""Bytes that are kept of either end of a line that is too long."""


_BLANK_LINES: Final = re.compile(rb"\s*\n")


class LineSplitter:
    """Takes the bytes of a stream apart into lines, each looked at once.

    Blank lines are passed over. So is a line of more than `limit` bytes, at whose end
    `MessageTooLarge` is raised; `passed_over` are the ends of the last one, for whoever can tell by
    them what it was.
    """

    def __init__(self, limit: int) -> None:
        self.waiting = 0
        """The bytes nobody looked at yet."""
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._chunk = b""
        self._at = 0
        self._parts: list[bytes] = []
        self._held = 0
        self._skipping = False
        self.passed_over = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self._chunks.append(chunk)
        self.waiting += len(chunk)

    def take(self) -> bytes | None:
        """The next whole line without its end, or None until more bytes come."""
        while True:
            end = self._chunk.find(b"\n", self._at)
            if end < 0:
                self._set_aside(self._chunk[self._at :])
                if not self._next_chunk():
                    return None
                continue
            line = self._chunk[self._at : end]
            self.waiting -= end + 1 - self._at
            self._at = end + 1
            if self._skipping:
                self._skipping = False
                self._keep_end(line)
                raise self._too_large()
            if self._parts:
                self._parts.append(line)
                line = b"".join(self._parts)
                self._parts.clear()
                self._held = 0
            if len(line) > self._limit:
                self.passed_over = line[:KEPT] + line[-KEPT:]
                raise self._too_large()
            if line.endswith(b"\r"):
                line = line[:-1]
            if line and not line.isspace():
                return line
            blank = _BLANK_LINES.match(self._chunk, self._at)
            if blank is not None:
                self.waiting -= blank.end() - self._at
                self._at = blank.end()

    def _next_chunk(self) -> bool:
        self._at = 0
        self._chunk = self._chunks.popleft() if self._chunks else b""
        return bool(self._chunk)

    def _set_aside(self, rest: bytes) -> None:
        self._chunk, self._at = b"", 0
        self.waiting -= len(rest)
        if not rest:
            return
        if self._skipping:
            self._keep_end(rest)
            return
        self._parts.append(rest)
        self._held += len(rest)
        if self._held > self._limit:
            begin = b""
            while self._parts and len(begin) < KEPT:
                begin += self._parts.pop(0)[: KEPT - len(begin)]
            self._parts.clear()
            self._held = 0
            self._skipping = True
            self.passed_over = begin
            self._keep_end(rest)

    def _keep_end(self, rest: bytes) -> None:
        """Keep the last bytes of a line that is passed over, after its first."""
        begin, end = self.passed_over[:KEPT], self.passed_over[KEPT:]
        self.passed_over = begin + (end + rest)[-KEPT:]

    def _too_large(self) -> e.MessageTooLarge:
        return e.MessageTooLarge(f"A message has more than the {self._limit:,} bytes accepted.")


MAX_PIECES: Final = 256
"""Pieces that are parsed before others have their turn."""
PORTION: Final = 4_096
MAX_PORTION: Final = 32_768
FEW: Final = 4
"""A portion of no more pieces than these is followed by a larger one."""


class Portions:
    """What came over a connection, for a parser that cannot be stopped between its pieces.

    A kilobyte can be one piece or hundreds of them. So a portion is small, and the next one larger
    for as long as there are few pieces in each.
    """

    __slots__ = ("_at", "_data", "size")

    def __init__(self) -> None:
        self.size = PORTION
        self._data = b""
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def add(self, data: bytes) -> None:
        self._data, self._at = self._data[self._at :] + data, 0

    def take(self) -> bytes:
        portion = self._data[self._at : self._at + self.size]
        self._at += len(portion)
        return portion

    def fit(self, pieces: int) -> None:
        """Choose the size of the next portion by the pieces that were in the last one."""
        self.size = min(2 * self.size, MAX_PORTION) if pieces <= FEW else PORTION

    def drop(self) -> bytes:
        """Take all that is left."""
        rest, self._data, self._at = self._data[self._at :], b"", 0
        return rest


def dense_parts(data: bytes) -> Iterator[bytes]:
    """The same bytes in pieces of a few hundred lines; most are one piece."""
    ends = data.count(b"\n") + data.count(b"\r")
    size = len(data) if ends <= MAX_PIECES else len(data) * MAX_PIECES // ends
    for start in range(0, len(data), size):
        yield data[start : start + size]


ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def one_line(raw: bytes) -> bytes:
    """The bytes of a JSON message as one line.

    Inside strings JSON has line ends only as escapes, so a space says the same in their place.
    """
    return raw.translate(ONE_LINE) if b"\n" in raw or b"\r" in raw else raw


_BOM: Final = b"\xef\xbb\xbf"
_BREAKS: Final = re.compile(rb"\r\n|\r|\n")
_NOT_IN_A_FIELD: Final = re.compile("[\r\n\0]")
_MILLISECONDS: Final = re.compile(rb"[0-9]{1,12}")


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event. `event_id` and `event_type` are None where the event did not name them."""

    data: bytes
    event_id: str | None = None
    event_type: str | None = None
    retry: float | None = None
    """How long to wait before connecting again, in seconds."""


class EventReader:
    """Makes events of a stream's bytes, wherever they are cut.

    An event without data is given too when it has an id or a retry, since both are for whoever
    connects again. One that has more than `limit` bytes raises `MessageTooLarge`; nothing can be
    read after that.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        """The line that is not whole yet, in the pieces it came in."""
        self._held = 0
        """The bytes of the event that is not whole yet."""
        self._after_return = False
        self._at_start = True
        self._data: list[bytes] = []
        self._id: str | None = None
        self._type: str | None = None
        self._retry: float | None = None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that these bytes complete, in their order."""
        if self._after_return and chunk:
            self._after_return = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        events: list[SseEvent] = []
        if b"\r" in chunk:
            # For bytes, unlike for text, this knows the three line ends of a stream and no more.
            lines = chunk.splitlines()
            if chunk.endswith((b"\r", b"\n")):
                lines.append(b"")
                self._after_return = chunk.endswith(b"\r")
        else:
            lines = chunk.split(b"\n")
        rest = lines.pop() if lines else b""
        for line in lines:
            self._hold(len(line))
            if self._parts:
                self._parts.append(line)
                whole = b"".join(self._parts)
                self._parts.clear()
            else:
                whole = line
            if self._at_start:
                self._at_start = False
                whole = whole.removeprefix(_BOM)
            if whole:
                self._take(whole)
            else:
                self._complete(events)
        if rest:
            self._hold(len(rest))
            self._parts.append(rest)
        return events

    def _hold(self, size: int) -> None:
        self._held += size
        if self._held > self._limit:
            raise e.MessageTooLarge(
                f"An event has more than the {self._limit:,} bytes that are accepted."
            )

    def _take(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        if colon and not name:
            # A stream may hold any number of comments before its next event.
            self._held -= len(line)
            return
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and _MILLISECONDS.fullmatch(value):
            self._retry = int(value) / 1000

    def _complete(self, events: list[SseEvent]) -> None:
        self._held = 0
        if self._data or self._id is not None or self._retry is not None:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(SseEvent(data, self._id, self._type, self._retry))
            self._data = []
        self._id = self._type = self._retry = None


def encode_event(
    data: bytes,
    *,
    event_id: str | None = None,
    event_type: str | None = None,
    retry: float | None = None,
) -> bytes:
    """The bytes of one event; what would end a line is left out of its id and its type."""
    head = ""
    if event_type is not None:
        head = f"event: {_NOT_IN_A_FIELD.sub('', event_type)}\n"
    if event_id is not None:
        head += f"id: {_NOT_IN_A_FIELD.sub('', event_id)}\n"
    if retry is not None:
        head += f"retry: {max(0, round(retry * 1000))}\n"
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(_BREAKS.split(data))
    return b"%bdata: %b\n\n" % (head.encode("utf-8", "replace"), data)
