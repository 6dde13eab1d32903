"""Writes tapes: a recorder that can be trusted says so when it cannot write.

Lines are gathered and written once per turn of the loop, whole; what could only be written in part
is cut off again, so that a tape always ends with a whole line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, Self

from folkmoot.core.errors import TapeUnwritable
from folkmoot.core.message import Request, Response
from folkmoot.proxy.tape.correlation import Correlations, correlation
from folkmoot.proxy.tape.encode import LineEncoder
from folkmoot.proxy.tape.file import TapeFile, Unwritten
from folkmoot.proxy.tape.lines import (
    FORMAT,
    EndLine,
    Header,
    RedactionNote,
    Side,
    encode_line,
)
from folkmoot.proxy.tape.naming import new_id, rfc3339

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock
    from folkmoot.proxy.ports import Carried
    from folkmoot.proxy.redaction import Redactor

MOST_GATHERED: Final = 8 * 1024 * 1024
"""So many bytes are gathered at most; then they are written at once."""


class TapeRecorder:
    """A tape that is being written. It is a `Recorder`, and to be closed at the end."""

    def __init__(
        self,
        file: TapeFile,
        clock: Clock,
        redactor: Redactor | None,
        *,
        best_effort: bool = False,
        on_failure: Callable[[TapeUnwritable], None] | None = None,
    ) -> None:
        self.failed = False
        """Whether the tape could not be written the last time."""
        self.dropped = 0
        """How many messages are missing on the tape; only where that is allowed."""
        self._file = file
        self._clock = clock
        self._redactor = redactor
        self._best_effort = best_effort
        self._on_failure = on_failure
        self._failure: TapeUnwritable | None = None
        self._encoder = LineEncoder(redactor)
        self._correlations = Correlations()
        self._seq = 0
        self._lines: list[bytes] = []
        self._gathered = 0
        self._written = 0
        self._scheduled = False
        self._stopped = False
        self._closed = False

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        client: Side,
        server: Side,
        program: str,
        redactor: Redactor | None,
        best_effort: bool = False,
        on_failure: Callable[[TapeUnwritable], None] | None = None,
        compress: bool | None = None,
        note: str = "",
        after: TapeRecorder | None = None,
    ) -> Self:
        """Begin a tape in a new file; `compress` is told by the name where it is not given.

        It may go on `after` another one: what was asked there may be answered here.
        """
        file = TapeFile(path, compress=compress)
        recorder = cls(file, clock, redactor, best_effort=best_effort, on_failure=on_failure)
        header = Header(
            FORMAT,
            tape=new_id(),
            started=rfc3339(clock.now()),
            program=program,
            client=_safe(client, redactor),
            server=_safe(server, redactor),
            redaction=_note(redactor),
            note=note,
        )
        if after is not None:
            recorder._correlations = after._correlations.elsewhere()
        try:
            file.owe(encode_line(header))
            recorder.commit()
        except BaseException:
            file.abandon()
            raise
        return recorder

    @property
    def path(self) -> Path:
        """Where the tape is."""
        return self._file.path

    @property
    def size(self) -> int:
        """How many bytes are written."""
        return self._file.size

    def note(self, carried: Carried) -> None:
        """Take a message; it is written with the next `commit`, which comes by itself soon."""
        if self._stopped:
            self._refuse()
        envelope = carried.envelope
        message, context = envelope.message, envelope.context
        self._seq = seq = self._seq + 1
        answered = asked = None
        if type(message) is Response:
            answered = self._correlations.answered(message, context)
            if answered is not None and self._redactor is not None:
                asked = answered.asked()
        line, redacted = self._encoder.encode(seq, carried, asked)
        if type(message) is Request:
            self._correlations.asked(seq, message, context, redacted)
        elif answered is not None and answered.seq:
            line += encode_line(correlation(answered, seq, message, context))
        self._lines.append(line)
        self._gathered += len(line)
        if self._gathered > MOST_GATHERED:
            self.commit()
        elif not self._scheduled:
            self._schedule()

    def commit(self) -> None:
        """Write what was taken. Raises `TapeUnwritable` unless messages may go missing."""
        if self._stopped:
            self._refuse()
        lines, self._lines, self._gathered = self._lines, [], 0
        if not lines and not self._file.owes:
            return
        try:
            self._file.write(lines)
        except Unwritten as failure:
            self._written += failure.kept
            self._fail(failure, len(lines) - failure.kept)
        else:
            self._written += len(lines)
            self.failed = False

    def close(self, reason: str = "closed") -> None:
        """Write what is left and the end line, and let go of the file. May be called again."""
        if self._closed:
            return
        try:
            if self._failure is None:
                self.commit()
                ended = rfc3339(self._clock.now())
                self._file.end(encode_line(EndLine(reason, self._written, ended)))
        except Unwritten as failure:
            self._fail(failure, 0)
        finally:
            self._closed = self._stopped = True
            self._file.close()

    def discard(self) -> None:
        """Close the tape; if no message was taken, leave no file behind."""
        if self._seq or self._closed:
            self.close()
            return
        self._closed = self._stopped = True
        self._file.abandon()

    def _refuse(self) -> NoReturn:
        if self._failure is not None:
            raise self._failure
        raise TapeUnwritable("The tape was closed.")

    def _fail(self, failure: Unwritten, lost: int) -> None:
        """Say it once, until it works again; and stop, unless messages may go missing."""
        # Whoever's message is stopped may be a stranger, and is not told where the file is.
        error = TapeUnwritable(f"The tape cannot be written: {failure}.")
        told, self.failed = self.failed, True
        if not self._best_effort:
            self._failure = error
            self._stopped = True
        else:
            self.dropped += lost
        if self._on_failure is not None and not told:
            self._on_failure(TapeUnwritable(f"{self.path}: the tape cannot be written: {failure}."))
        if not self._best_effort:
            raise error

    def _schedule(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._scheduled = True
        loop.call_soon(self._soon)

    def _soon(self) -> None:
        self._scheduled = False
        if self._lines and not self._stopped:
            # The next `note` or `commit` raises it again, to someone who can stop the traffic.
            with suppress(TapeUnwritable):
                self.commit()


def _safe(side: Side, redactor: Redactor | None) -> Side:
    return side if redactor is None else Side(side.transport, redactor.text(side.target))


def _note(redactor: Redactor | None) -> RedactionNote | None:
    if redactor is None:
        return None
    return RedactionNote(redactor.key_id, redactor.mail, tuple(redactor.paths))
