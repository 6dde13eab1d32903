"""Redacts a tape that was written before: the same conversation, in a new file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Request, Response
from folkmoot.proxy.tape.encode import masked_session, masked_transport, within
from folkmoot.proxy.tape.file import TapeFile, Unwritten
from folkmoot.proxy.tape.lines import (
    CorrelationLine,
    EndLine,
    Header,
    Line,
    MessageLine,
    RedactionNote,
    TapeSide,
    encode_line,
)
from folkmoot.proxy.tape.model import entry_of
from folkmoot.proxy.tape.reader import TapeLines
from folkmoot.proxy.tape.recorder import MOST_OPEN, Correlations, Told, told_of

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageContext
    from folkmoot.proxy.redaction import TapeRedactor
    from folkmoot.proxy.tape.model import TapeEntry

MOST_GATHERED: Final = 1024 * 1024


class RedactionCounts(msgspec.Struct):
    """The counts of one redaction."""

    messages: int = 0
    redacted: int = 0
    """Messages that something was left out of."""
    places: int = 0
    """Places where that was."""


def redact_tape(tape_path: Path, out_path: Path, redactor: TapeRedactor) -> RedactionCounts:
    """Write a tape anew without its secrets; what was left out before stays left out."""
    lines = TapeLines(tape_path)
    masked = _Masked(redactor)
    file = TapeFile(out_path)
    gathered, size = [], 0
    try:
        for line in lines:
            try:
                gathered.append(encode_line(masked.line(line)))
            except e.MessageError as error:
                raise lines.broken(f"holds no message: {error.message}") from None
            size += len(gathered[-1])
            if size > MOST_GATHERED:
                file.write(gathered)
                gathered, size = [], 0
        file.write(gathered)
        file.finish()
    except Unwritten as failure:
        file.abandon()
        raise e.TapeUnwritable(f"{out_path}: the tape cannot be written: {failure}.") from None
    except BaseException:
        file.abandon()
        raise
    file.close()
    return masked.counts


class _Masked(Entity):
    """The lines of one tape with secrets masked."""

    redactor: TapeRedactor
    counts: RedactionCounts = field(default_factory=RedactionCounts)
    _correlations: Correlations = field(default_factory=Correlations)
    _told: dict[int, Told] = {}
    """What the correlations of requests are to say that something was left out of."""

    def line(self, line: Line) -> Line:
        """A line without its secrets."""
        if isinstance(line, MessageLine):
            return self._message_line(line)
        if isinstance(line, CorrelationLine):
            return self._correlation(line)
        if isinstance(line, EndLine):
            return line
        return self._header(line)

    def _correlation(self, line: CorrelationLine) -> CorrelationLine:
        text = self.redactor.text
        told = self._told.pop(line.request, None)
        method, name = told or (text(line.method), text(line.name))
        return msgspec.structs.replace(line, method=method, name=name)

    def _header(self, header: Header) -> Header:
        redactor = self.redactor
        client, server = (
            TapeSide(side.transport, redactor.text(side.target))
            for side in (header.client, header.server)
        )
        note = RedactionNote(redactor.key_id, redactor.mail, redactor.paths)
        return msgspec.structs.replace(
            header, client=client, server=server, redaction=note, note=redactor.text(header.note)
        )

    def _message_line(self, line: MessageLine) -> MessageLine:
        entry = entry_of(line)
        asked = self._answered(entry)
        session, places = masked_session(line.session, self.redactor)
        transport, more = masked_transport(line.transport, self.redactor)
        places += more
        changes: dict[str, object] = {"session": session, "transport": transport}
        for part, text, message in (
            ("message", "text", entry.message),
            ("at_server", "at_server_text", entry.at_server),
        ):
            if message is not None:
                raw, more = self.redactor.message(message, answering=asked)
                if part == "message" and isinstance(message, Request):
                    self._ask(entry.seq, message, entry.context, raw)
                if raw is not None:
                    changes |= {part: msgspec.Raw(raw), text: None}
                    places += within(part, more)
        for part in ("extensions", "error"):
            value = getattr(line, part)
            if value:
                changes[part], more = self.redactor.value(value)
                places += within(part, more)
        known = set(line.redacted)
        fresh = tuple(place for place in places if place not in known)
        self.counts.messages += 1
        self.counts.redacted += bool(fresh)
        self.counts.places += len(fresh)
        return msgspec.structs.replace(line, **changes, redacted=line.redacted + fresh)

    def _ask(
        self, seq: int, request: Request, context: MessageContext, redacted: bytes | None
    ) -> None:
        self._correlations.asked(seq, request, context)
        if redacted is not None:
            if len(self._told) >= MOST_OPEN:
                del self._told[next(iter(self._told))]
            self._told[seq] = told_of(request.method, redacted)

    def _answered(self, entry: TapeEntry) -> Request | None:
        """The request that a message answers, if it is needed."""
        if not isinstance(entry.message, Response):
            return None
        answered = self._correlations.answered(entry.message, entry.context)
        return None if answered is None else answered.asked()
