"""Lines without any I/O: chunks in, wherever they are cut; one whole line out at a time."""

from __future__ import annotations

from collections import deque
from typing import Final

from folkmoot.core.errors import MessageTooLarge

KEPT: Final = 512
"""Bytes that are kept of either end of a line that is too long."""


class Lines:
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
        """The line that is not whole yet."""
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

    def _too_large(self) -> MessageTooLarge:
        return MessageTooLarge(f"A message has more than the {self._limit:,} bytes accepted.")


ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def one_line(raw: bytes) -> bytes:
    """The bytes of a JSON message as one line.

    Inside strings JSON has line ends only as escapes, so a space says the same in their place.
    """
    return raw.translate(ONE_LINE) if b"\n" in raw or b"\r" in raw else raw
