"""Writes tapes: a recorder that can be trusted says so when it cannot write.

Answers are tied to their requests by session, and by id with its type. Lines are gathered until
they are committed, and written whole; what could only be written in part is cut off again, so that
a tape always ends with a whole line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeAlias

import msgspec
from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageContext, MessageDirection
from folkmoot.core.message import MessageId, Request, Response
from folkmoot.mcp.wire import PROMPTS_GET, RESOURCES_READ, SUBSCRIBE, TOOLS_CALL, UNSUBSCRIBE
from folkmoot.proxy.redaction import mail
from folkmoot.proxy.tape.encode import LineEncoder
from folkmoot.proxy.tape.file import TapeFile, Unwritten, new_id, rfc3339
from folkmoot.proxy.tape.lines import (
    FORMAT,
    CorrelationLine,
    EndLine,
    Header,
    Outcome,
    RedactionNote,
    TapeSide,
    encode_line,
)

if TYPE_CHECKING:
    from folkmoot.core.ports import Carried, Clock
    from folkmoot.proxy.redaction import TapeRedactor

MOST_OPEN: Final = 65_536
"""Of how many requests an answer is awaited; the oldest is forgotten first."""
MOST_LOOKED_AT: Final = 1_024
"""Of these, how many of the latest are looked at for an answer that none of its session has."""

NAMED: Final = {
    TOOLS_CALL: "name",
    PROMPTS_GET: "name",
    RESOURCES_READ: "uri",
    SUBSCRIBE: "uri",
    UNSUBSCRIBE: "uri",
}
"""Which member of the params says what a request is about."""

LONGEST_NAME: Final = 512

Told: TypeAlias = tuple[str, str]
"""The method of a request, and what it is about."""
Key: TypeAlias = tuple[int, str | None, str | None, type, MessageId]
"""Which way a request went, its session, what ties it to its answer, and its id with its type."""

_ASKED: Final = {id(direction): id(direction.reverse()) for direction in MessageDirection}
"""Which way the request went that an answer of a direction is to, both by their identity."""


class Open(msgspec.Struct, frozen=True, gc=False):
    """A request that has no answer yet."""

    seq: int
    method: str
    name: str
    created_at: float
    told: Told | None = None
    """The method and the name as they are on the tape, where something was left out of it."""

    def asked(self) -> Request:
        """The remembered part of a request: its method and name, without arguments."""
        return _asked(self.method, self.name)


@lru_cache(maxsize=1024)
def _asked(method: str, name: str) -> Request:
    member = NAMED.get(method)
    return Request(id=0, method=method, params={member: name} if member else {})


class Correlations(Entity):
    """The requests that were not answered yet."""

    _open: dict[Key, Open | list[Open]] = {}
    """Only requests that have all in common, which few do, are in a list."""
    _count: int = 0

    def asked(
        self,
        seq: int,
        request: Request,
        context: MessageContext,
        redacted: bytes | None = None,
    ) -> None:
        """Remember a request; `redacted` is what is written of it, if that is something else."""
        told = None if redacted is None else told_of(request.method, redacted)
        waiting = Open(seq, request.method, name_of(request), context.timing.created_at, told)
        session, identity = context.session, request.id
        named = None if session.session_id is None else session.session_id.value
        key = (id(context.direction), named, session.correlation_id, type(identity), identity)
        other = self._open.setdefault(key, waiting)
        if other is not waiting:
            if isinstance(other, list):
                other.append(waiting)
            else:
                self._open[key] = [other, waiting]
        self._count += 1
        if self._count > MOST_OPEN:
            self._take(next(iter(self._open)))

    def answered(self, response: Response, context: MessageContext) -> Open | None:
        """The request that a response answers, removed from the open ones."""
        session, identity = context.session, response.id
        if identity is None:
            return None
        named = None if session.session_id is None else session.session_id.value
        way, tie, kind = _ASKED[id(context.direction)], session.correlation_id, type(identity)
        found = self._take((way, named, tie, kind, identity))
        if found is None and named is not None:
            # The answer to `initialize` has the session that the request was still without.
            found = self._take((way, None, tie, kind, identity))
        return found

    def mail_asked(self, response: Response, context: MessageContext) -> Request | None:
        """A request for mail that a response may answer though its session has another id.

        A server may give a session a new one with its answer. The request stays open, since it may
        as well be that of another session.
        """
        way, tie = _ASKED[id(context.direction)], context.session.correlation_id
        wanted = way, tie, type(response.id), response.id
        for key, waiting in islice(reversed(self._open.items()), MOST_LOOKED_AT):
            if (key[0], *key[2:]) == wanted:
                for one in waiting if isinstance(waiting, list) else (waiting,):
                    if mail.words_in_answer(one.asked()):
                        return one.asked()
        return None

    def elsewhere(self) -> Correlations:
        """The open requests carried over to the next tape, where they have no number."""
        others = Correlations()
        others._open = {
            key: [
                msgspec.structs.replace(each, seq=0)
                for each in (waiting if isinstance(waiting, list) else [waiting])
            ]
            for key, waiting in self._open.items()
        }
        others._count = self._count
        return others

    def _take(self, key: Key) -> Open | None:
        found = self._open.get(key)
        if found is None:
            return None
        self._count -= 1
        if isinstance(found, list) and len(found) > 1:
            return found.pop(0)
        del self._open[key]
        return found[0] if isinstance(found, list) else found


def correlation(
    request: Open,
    seq: int,
    response: Response,
    context: MessageContext,
) -> CorrelationLine:
    """The line that ties an answer to its request."""
    seconds = context.timing.created_at - request.created_at
    method, name = request.told or (request.method, request.name)
    if seconds < 0:
        seconds = 0.0
    return CorrelationLine(request.seq, seq, method, seconds, outcome_of(response), name)


def outcome_of(response: Response) -> Outcome:
    """How a request ended; a tool that failed has a result which says so."""
    if response.error is not msgspec.UNSET:
        return "error"
    failed = isinstance(response.result, dict) and response.result.get("isError") is True
    return "tool_error" if failed else "result"


def name_of(request: Request) -> str:
    """What a request is about: the tool, the prompt or the resource."""
    member = NAMED.get(request.method)
    params = request.params
    if member is None or type(params) is not dict:
        return ""
    name: Any = params.get(member)
    return name[:LONGEST_NAME] if type(name) is str else ""


def told_of(method: str, redacted: bytes) -> Told:
    """The method and name of a request as its redacted line has them."""
    value = msgspec.json.decode(redacted)
    written, params = value.get("method"), value.get("params")
    name = params.get(NAMED.get(method)) if isinstance(params, dict) else None
    return (
        written if isinstance(written, str) else "",
        name[:LONGEST_NAME] if isinstance(name, str) else "",
    )


MOST_GATHERED: Final = 8 * 1024 * 1024
"""So many bytes are gathered at most; then they are written at once."""


class TapeRecorder(Entity):
    """A tape that is being written. It is a `Recorder`, and to be closed at the end."""

    file: TapeFile
    clock: Clock
    redactor: TapeRedactor | None
    best_effort: bool = False
    on_failure: Callable[[e.TapeUnwritable], None] | None = None
    failed: bool = False
    """Whether the tape could not be written the last time."""
    dropped: int = 0
    """How many messages are missing on the tape; only where that is allowed."""
    _failure: e.TapeUnwritable | None = None
    _correlations: Correlations = field(default_factory=Correlations)
    _seq: int = 0
    _lines: list[bytes] = []
    _gathered: int = 0
    _written: int = 0
    _stopped: bool = False
    _closed: bool = False

    def __post_init__(self) -> None:
        self._encoder = LineEncoder(self.redactor)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        client: TapeSide,
        server: TapeSide,
        program: str,
        redactor: TapeRedactor | None,
        best_effort: bool = False,
        on_failure: Callable[[e.TapeUnwritable], None] | None = None,
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
        return self.file.path

    @property
    def size(self) -> int:
        """How many bytes are written."""
        return self.file.size

    def note(self, carried: Carried) -> None:
        """Take a message; it is written with the next `commit`."""
        if self._stopped:
            self._refuse()
        envelope = carried.envelope
        message, context = envelope.message, envelope.context
        self._seq = seq = self._seq + 1
        if type(message) is Response:
            answered = self._correlations.answered(message, context)
            if answered is None:
                asked = self._correlations.mail_asked(message, context)
            else:
                asked = answered.asked()
            line, _ = self._encoder.encode(seq, carried, asked)
            if answered is not None and answered.seq:
                line += encode_line(correlation(answered, seq, message, context))
        else:
            line, redacted = self._encoder.encode(seq, carried, None)
            if type(message) is Request:
                self._correlations.asked(seq, message, context, redacted)
        self._lines.append(line)
        self._gathered += len(line)
        if self._gathered > MOST_GATHERED:
            self.commit()

    def commit(self) -> None:
        """Write what was taken. Raises `TapeUnwritable` unless messages may go missing."""
        if self._stopped:
            self._refuse()
        lines = self._lines
        if not lines and not self.file.owes:
            return
        self._lines, self._gathered = [], 0
        try:
            self.file.write(lines)
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
                ended = rfc3339(self.clock.now())
                self.file.end(encode_line(EndLine(reason, self._written, ended)))
        except Unwritten as failure:
            self._fail(failure, 0)
        finally:
            self._closed = self._stopped = True
            self.file.close()

    def discard(self) -> None:
        """Close the tape; if no message was taken, leave no file behind."""
        if self._seq or self._closed:
            self.close()
            return
        self._closed = self._stopped = True
        self.file.abandon()

    def _refuse(self) -> NoReturn:
        if self._failure is not None:
            raise self._failure
        raise e.TapeUnwritable("The tape was closed.")

    def _fail(self, failure: Unwritten, lost: int) -> None:
        """Say it once, until it works again; and stop, unless messages may go missing."""
        # Whoever's message is stopped may be a stranger, and is not told where the file is.
        error = e.TapeUnwritable(f"The tape cannot be written: {failure}.")
        told, self.failed = self.failed, True
        if not self.best_effort:
            self._failure = error
            self._stopped = True
        else:
            self.dropped += lost
        if self.on_failure is not None and not told:
            self.on_failure(
                e.TapeUnwritable(f"{self.path}: the tape cannot be written: {failure}.")
            )
        if not self.best_effort:
            raise error


def _safe(side: TapeSide, redactor: TapeRedactor | None) -> TapeSide:
    return side if redactor is None else TapeSide(side.transport, redactor.text(side.target))


def _note(redactor: TapeRedactor | None) -> RedactionNote | None:
    if redactor is None:
        return None
    return RedactionNote(redactor.key_id, redactor.mail, tuple(redactor.paths))
