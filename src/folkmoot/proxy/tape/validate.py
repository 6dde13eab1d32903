"""Whether a tape is what it should be, line by line; a broken line does not hide the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Final

import msgspec

from folkmoot.core.errors import MessageError, TapeUnreadable
from folkmoot.proxy.tape.conversation import Conversation, Finding
from folkmoot.proxy.tape.file import BrokenStream, opened
from folkmoot.proxy.tape.lines import (
    FORMAT,
    CorrelationLine,
    EndLine,
    Header,
    Line,
    MessageLine,
    decode_line,
)
from folkmoot.proxy.tape.model import entry_of
from folkmoot.proxy.tape.reader import CHUNK, LONGEST

__all__ = ["Finding", "findings"]

NOT_A_TAPE: Final = "is not a tape: its first line is not a header"


def findings(path: Path) -> Iterator[Finding]:
    """Everything that is wrong with a tape, or odd, in the order of its lines."""
    check = _Check()
    try:
        with opened(path) as file:
            yield from check.read(file)
    except OSError as error:
        raise TapeUnreadable(f"{path}: cannot be read: {error.strerror}.") from error
    except BrokenStream as error:
        yield Finding(check.number + 1, str(error).rstrip("."))


class _Check:
    def __init__(self) -> None:
        self.number = 0
        self._end: EndLine | None = None
        self._conversation = Conversation()

    def read(self, file: IO[bytes]) -> Iterator[Finding]:
        for raw, whole in _split(file):
            self.number += 1
            if len(raw) > LONGEST:
                yield self._wrong("is longer than a line may be")
                return
            try:
                line = decode_line(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if self.number == 1:
                    yield Finding(1, NOT_A_TAPE)
                    return
                yield self._unreadable(error, whole=whole)
                continue
            if self.number == 1:
                yield from self._header(line)
                if not isinstance(line, Header) or line.format > FORMAT:
                    return
            elif line is not None:
                yield from self._said(line)
        yield from self._last()

    def _unreadable(self, error: Exception, *, whole: bool) -> Finding:
        if whole:
            return Finding(self.number, f"cannot be read: {error}")
        return Finding(self.number, "is cut off, as the last line of a torn tape is", severe=False)

    def _header(self, line: Line | None) -> Iterator[Finding]:
        if not isinstance(line, Header):
            yield Finding(1, NOT_A_TAPE)
        elif line.format > FORMAT:
            yield Finding(1, f"has format {line.format}; this program reads up to {FORMAT}")
        elif not is_moment(line.started):
            yield Finding(1, f"does not say when it was started: {line.started!r} is no time")

    def _said(self, line: Line) -> Iterator[Finding]:
        if self._end is not None:
            yield self._wrong("comes after the end line")
        if isinstance(line, MessageLine):
            try:
                entry = entry_of(line)
            except MessageError as error:
                yield self._wrong(f"holds no JSON-RPC message: {error.message.rstrip('.')}")
                yield from self._conversation.unreadable(line.seq, self.number)
            else:
                yield from self._conversation.message(entry, self.number)
        elif isinstance(line, CorrelationLine):
            yield from self._conversation.correlation(line, self.number)
        elif isinstance(line, EndLine):
            yield from self._ended(line)
        else:
            yield self._wrong("is a second header")

    def _ended(self, line: EndLine) -> Iterator[Finding]:
        self._end = line
        count = self._conversation.messages
        if line.messages != count:
            yield self._wrong(f"counts {line.messages} messages; there are {count}")
        if not is_moment(line.ended):
            yield self._wrong(f"does not say when it ended: {line.ended!r} is no time")

    def _wrong(self, text: str) -> Finding:
        return Finding(self.number, text)

    def _last(self) -> Iterator[Finding]:
        if self.number == 0:
            yield Finding(1, "is empty")
            return
        yield from self._conversation.left_open()
        if self._end is None:
            yield Finding(self.number, "is the last line, and no end line", severe=False)


def _split(file: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each line, and whether its end is there; of one that is too long only as much as proves it.

    The lines of a compressed tape must come from plain reads: buffered ones end where a block does.
    """
    rest: list[bytes] = []
    held = 0
    while chunk := file.read(CHUNK):
        first, *others = chunk.split(b"\n")
        rest.append(first)
        held += len(first)
        if others or held > LONGEST:
            yield b"".join(rest), True
            yield from ((line, True) for line in others[:-1])
            rest, held = others[-1:], len(others[-1]) if others else 0
    if held:
        yield b"".join(rest), False


def is_moment(text: str) -> bool:
    """Whether a text is a point in time with its offset, as RFC 3339 writes it."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
