"""A tape as a timeline in lines, also while it is recorded."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.cli.output import escape_json, one_line, say
from folkmoot.cli.show import Terminal, clock, counted, cut, label, lapse, side
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.proxy.tape.file import HOW, MAGIC, WINDOW
from folkmoot.proxy.tape.lines import EndLine, Header, Line, decode_line
from folkmoot.proxy.tape.reader import CHUNK, LONGEST, TapeLines
from folkmoot.proxy.tape.timeline import MessageFilter, Moment, grouped, moments

PIECE: Final = 1024
"""Bytes that are decompressed at once; they may become thirty thousand times as many."""
LOOK_SECONDS: Final = 0.1


def followed(path: Path, wait: Callable[[], None] | None = None) -> Iterator[Line | None]:
    """The lines of a tape as they come, up to its end line; None where nothing is new for now."""
    try:
        with path.open("rb") as file:
            yield from _Follower(path, file).lines(wait or (lambda: time.sleep(LOOK_SECONDS)))
    except OSError as error:
        raise e.TapeUnreadable(f"{path}: cannot be read: {error.strerror}.") from error


class _Follower(Struct, eq=False):
    path: Path
    file: IO[bytes]
    _rest: bytes = b""
    _number: int = 0
    _unpack: Callable[[bytes], bytes] | None = None

    def lines(self, wait: Callable[[], None]) -> Iterator[Line | None]:
        while True:
            chunk = self.file.read(CHUNK)
            if chunk:
                for raw in self._split(chunk):
                    line = self._decoded(raw)
                    yield line
                    if isinstance(line, EndLine):
                        return
                continue
            yield None
            wait()
            self._take_back()

    def _take_back(self) -> None:
        """Forget a line that was cut off again, because it could not be written whole."""
        size = os.fstat(self.file.fileno()).st_size
        if size < self.file.tell() and self._unpack is _unpacked:
            self.file.seek(size)
            self._rest = b""

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        if self._unpack is None:
            compressed = chunk.startswith(MAGIC)
            self._unpack = self._decompressor() if compressed else _unpacked
        step = len(chunk) if self._unpack is _unpacked else PIECE
        for at in range(0, len(chunk), step):
            *lines, self._rest = (self._rest + self._unpack(chunk[at : at + step])).split(b"\n")
            if len(self._rest) > LONGEST:
                raise self._broken("is longer than a line may be")
            yield from lines

    def _decompressor(self) -> Callable[[bytes], bytes]:
        try:
            import zstandard
        except ImportError:
            raise e.TapeUnreadable(f"{self.path}: is compressed. {HOW}") from None
        stream: Any = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()

        def unpack(chunk: bytes) -> bytes:
            try:
                return bytes(stream.decompress(chunk))
            except zstandard.ZstdError as error:
                raise self._broken(f"cannot be decompressed: {error}") from None

        return unpack

    def _decoded(self, raw: bytes) -> Line | None:
        self._number += 1
        try:
            line = decode_line(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._broken(f"cannot be read: {error}") from None
        if self._number == 1 and not isinstance(line, Header):
            raise e.TapeUnreadable(f"{self.path}: is not a tape.")
        return line

    def _broken(self, what: str) -> e.TapeUnreadable:
        return e.TapeUnreadable(f"{self.path}: line {self._number} {what}.")


def _unpacked(chunk: bytes) -> bytes:
    return chunk


LONGEST_TEXT: Final = 400
"""Characters of what a message says that are shown where nothing else limits them."""
INDENT: Final = "     "

DONE: Final = {
    "modify": "changed",
    "block": "blocked",
    "mock": "answered",
    "delay": "delayed",
    "hold": "held",
}
"""What an interceptor did, by its verdict."""
OWN: Final = "proxy"
"""Who answered, where the proxy did since its server did not."""


def rows(moment: Moment, terminal: Terminal, *, full: bool) -> Iterator[str]:
    """The lines of a message: its summary, and its content where asked for."""
    head, rest = list(_head(moment, terminal)), list(_marks(moment))
    if not full:
        rest += _said(moment)
    if not terminal.narrow:
        head += [part for each in rest for part in (("  ", ""), each)]
    yield terminal.truncated(head)
    if terminal.narrow and rest:
        below = [part for each in rest for part in ((" ", ""), each)]
        yield terminal.truncated([(INDENT[1:], ""), *below])
    if full:
        yield from _whole(moment.line.message)
        if moment.line.at_server is not msgspec.UNSET:
            yield f"{INDENT}{terminal.styled('as the server saw it:', 'magenta')}"
            yield from _whole(moment.line.at_server)


def _head(moment: Moment, terminal: Terminal) -> Iterator[tuple[str, str]]:
    narrow = terminal.narrow
    gap = " " if narrow else "  "
    at = f"{moment.at:.2f}" if narrow else f"{moment.at:>9.3f}"
    before = f"{moment.seq:>4}{gap}{at}{gap}"
    yield before, "dim"
    arrow, colour = _arrow(moment, terminal)
    yield f"{arrow}{gap}", colour
    took = f"{gap}{lapse(moment.answer.seconds)}" if moment.answer is not None else ""
    to = ""
    if moment.answer is not None and moment.answer.request != moment.seq - 1:
        to = f" (to {moment.answer.request})"
    what = label(moment.method, moment.name) or f"answer to {_id(moment)}"
    if terminal.width is not None:
        # How long it took is to be seen, however long the name is.
        room = terminal.width // 2
        if narrow:
            room = terminal.width - len(before) - len(arrow) - len(gap) - len(took) - len(to)
        what = cut(what, max(room, 8), terminal.glyphs.cut)
    yield what, "bold red" if moment.failed else "bold" if moment.shape != "response" else ""
    yield took, "yellow"
    yield to, "dim"


def _arrow(moment: Moment, terminal: Terminal) -> tuple[str, str]:
    direction = moment.line.direction
    if direction is MessageDirection.CLIENT_TO_SERVER:
        return terminal.glyphs.to_server, "cyan"
    if direction is MessageDirection.SERVER_TO_CLIENT:
        return terminal.glyphs.to_client, "green"
    return terminal.glyphs.neither, "red"


def _id(moment: Moment) -> str:
    return one_line(msgspec.json.encode(moment.members.get("id")).decode())


def _marks(moment: Moment) -> Iterator[tuple[str, str]]:
    """The marks of interceptors and of redaction on a message."""
    line = moment.line
    if line.by == OWN:
        yield "[answered by the proxy]", "magenta"
    elif line.verdict is not None:
        by = f" by {one_line(line.by)}" if line.by else ""
        yield f"[{DONE.get(line.verdict, one_line(line.verdict))}{by}]", "magenta"
    if moment.redacted:
        yield f"[{moment.redacted} redacted]", "magenta"


def _said(moment: Moment) -> Iterator[tuple[str, str]]:
    summary = one_line(" ".join(moment.summary[:LONGEST_TEXT].split()))
    if "error" in moment.members:
        yield f"error {summary}", "red"
    elif moment.tool_failed:
        yield f"tool error: {summary}", "red"
    elif moment.line.error is not None:
        yield one_line(str(moment.line.error.get("message", "")))[:LONGEST_TEXT], "red"
    elif summary:
        yield summary, ""


def _whole(raw: msgspec.Raw) -> Iterator[str]:
    text = msgspec.json.format(bytes(raw), indent=2).decode("utf-8", "replace")
    for line in escape_json(text).split("\n"):
        yield f"{INDENT}{line}"


CLOSED: Final = "closed"
"""How a recording ends that nothing special has ended."""


def show_tape(
    reader: TapeReader,
    wanted: MessageFilter,
    *,
    limit: int | None,
    last: int | None,
    pairs: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Show the messages of a tape that are wanted."""
    found = chosen(reader.moments(), wanted, pairs=pairs)
    picked: Iterable[Moment] = deque(found, last) if last else islice(found, limit)
    told = show_json(picked, reader) if as_json else show_moments(picked, reader, full=full)
    if not told and not reader.follow:
        say("No message matches." if reader.seen else "The tape has no messages.", err=True)


def from_the_last(path: Path, wanted: MessageFilter, count: int) -> MessageFilter:
    """The same, beginning with the last few that are on the tape by now."""
    found = deque(chosen(TapeReader(path, follow=False).moments(), wanted, pairs=False), count)
    return msgspec.structs.replace(wanted, first=found[0].seq) if found else wanted


class TapeReader:
    """The lines of one tape, and what is to be said around its messages."""

    def __init__(self, path: Path, *, follow: bool) -> None:
        self.follow = follow
        self.seen = 0
        self.header: Header | None = None
        self.end: EndLine | None = None
        self.finished = False
        self._lines: Iterable[Line | None] = followed(path) if follow else TapeLines(path)

    def moments(self) -> Iterator[Moment]:
        """The messages."""
        for moment in moments(self._noting(self._lines)):
            self.seen += 1
            yield moment
        self.finished = True

    def _noting(self, lines: Iterable[Line | None]) -> Iterator[Line | None]:
        for line in lines:
            if isinstance(line, Header):
                self.header = line
            elif isinstance(line, EndLine):
                self.end = line
            yield line


def chosen(timeline: Iterable[Moment], wanted: MessageFilter, *, pairs: bool) -> Iterator[Moment]:
    """The selected messages, with the other half of each call where `pairs` is set."""
    if not pairs:
        for moment in timeline:
            if wanted.meets(moment):
                yield moment
            elif wanted.last is not None and moment.seq > wanted.last:
                return
        return
    for group in grouped(timeline):
        if any(map(wanted.meets, group)):
            yield from group


def show_moments(picked: Iterable[Moment], reader: TapeReader, *, full: bool) -> int:
    """Show messages as lines, and on a terminal what tape they are of."""
    terminal = Terminal()
    count = 0
    for moment in picked:
        if count == 0 and terminal.on_terminal and reader.header is not None:
            terminal.write(about(reader.header, terminal))
        count += 1
        for line in rows(moment, terminal, full=full):
            terminal.write(line)
        if reader.follow:
            terminal.flush()
    terminal.flush()
    if terminal.on_terminal and count and reader.finished:
        say(ending(reader), err=True)
    return count


def about(header: Header, terminal: Terminal) -> str:
    """The heading that names a tape."""
    sides = f"{side(header.client)} {terminal.glyphs.between} {side(header.server)}"
    return terminal.truncated([(clock(header.started), "bold"), ("  ", ""), (sides, "")])


def ending(reader: TapeReader) -> str:
    """A note about the end of a tape."""
    if reader.end is not None:
        why = "" if reader.end.reason == CLOSED else f" ({one_line(reader.end.reason)})"
        return f"The recording ended{why}: {counted(reader.end.messages, 'message')}."
    return "The tape has no end line: it is being recorded, or its recorder was killed."


def show_json(picked: Iterable[Moment], reader: TapeReader) -> int:
    """Print messages as JSON, one a line."""
    terminal = Terminal()
    count = 0
    for moment in picked:
        count += 1
        terminal.write(escape_json(msgspec.json.encode(as_data(moment)).decode()))
        if reader.follow:
            terminal.flush()
    return count


def as_data(moment: Moment) -> dict[str, Any]:
    """A message for programs; what does not apply is left out."""
    line, answer = moment.line, moment.answer
    told = {
        "seq": line.seq,
        "at": round(moment.at, 6),
        "time": line.timing.system_time,
        "direction": line.direction,
        "type": moment.shape,
        "method": moment.method or None,
        "name": moment.name or None,
        "session": line.session.id,
        "answers": answer and answer.request,
        "seconds": answer and answer.seconds,
        "outcome": answer and answer.outcome,
        "verdict": line.verdict,
        "by": line.by or None,
        "error": line.error,
        "redacted": line.redacted or None,
        "message": line.message,
        "at_server": line.at_server,
    }
    return {name: value for name, value in told.items() if value not in (None, msgspec.UNSET)}
