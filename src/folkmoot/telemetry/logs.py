"""Logging for the whole process: one handler at the root, one redactor in front of it.

Lines for people on a terminal, JSON lines otherwise. Structured values come as `extra={...}`.
Records that are made often are made cheaply; the audit line of a call waits to learn how it ended.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, Literal, TextIO, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.core.entity import Entity
from folkmoot.core.redaction import prepare
from folkmoot.telemetry.limits import (
    MAX_KNOWN_LINE,
    MAX_KNOWN_LINES,
    MAX_LOG_EXCEPTION,
    MAX_LOG_MESSAGE,
)
from folkmoot.telemetry.lines import LineWriter, descriptor_of
from folkmoot.telemetry.redaction import NAME_LIMIT, clean, fields, mask, redactor, text_of, visible

AUDIT_TRAIL: Final = "folkmoot/audit-trail"
"""Where the `AuditTrail` of a request stands: in its scope, and among an envelope's extensions."""
WITHHELD: Final = "withheld"
"""The outcome of a call whose answer a rule kept back."""

NOTHING: Final[Mapping[str, Any]] = {}
ONLY_TEXTS: Final = {str}

_EMPTY: Final = vars(logging.makeLogRecord({}))


class RequestInfo(Struct, eq=False):
    """The HTTP request that is being answered, and the credential that was shown in it."""

    id: str
    account_id: str | None = None
    credential_id: str = ""


REQUEST: Final[ContextVar[RequestInfo | None]] = ContextVar("folkmoot_request", default=None)
"""The request in which something is done. What outlives the request may still see it, so only what
is done for the account that showed the credential is told to be done with it."""


BACKEND: Final[ContextVar[str]] = ContextVar("folkmoot_backend", default="")
"""The namespace of the server behind the hub whose link something is done on."""


def name_backend(record: logging.LogRecord) -> bool:
    """Have a record that is made while a server is spoken to say which server."""
    backend = BACKEND.get()
    if backend and not hasattr(record, "backend"):
        record.backend = backend
    return True


def request_fields(account_id: str) -> dict[str, str]:
    """What an audit line says of the request that an account made, if it is in one."""
    info = REQUEST.get()
    if info is None or info.account_id != account_id:
        return {}
    return {"request": info.id, "credential_id": info.credential_id}


class PlainRecord(logging.LogRecord):
    """A record that does not tell where in the program, and in which thread, it was made.

    To find that out costs more than the rest, and nobody asks for it. `made` are values that the
    hub made itself, such as ids and hashes: they hold no secret, and are written as they are.
    """

    def __init__(
        self,
        name: str,
        level: int,
        message: str,
        values: Mapping[str, Any],
        made: Mapping[str, Any] = NOTHING,
    ) -> None:
        """A record as the library makes it, without the fields it would look up."""
        vars(self).update(_EMPTY)
        self.name = name
        self.levelno = level
        self.levelname = logging.getLevelName(level)
        self.msg = message
        self.created = time.time()
        self.msecs = self.created % 1 * 1000
        self.values = values
        self.made = made
        vars(self).update(values, **made)

    @property
    def cleaned(self) -> dict[str, Any]:
        """The values as they may be written, which the log and the audit table both do."""
        return {**fields(self.values), **self.made}

    @property
    def key(self) -> tuple[Any, ...] | None:
        """All that the line says but for what was made, if that is short and may come again."""
        values = self.values.values()
        if set(map(type, values)) != ONLY_TEXTS or sum(map(len, values)) > MAX_KNOWN_LINE:
            return None
        return (self.levelno, self.name, self.msg, *self.values.items())


class AuditTrail(Entity):
    """The audit line of one request: kept back until it is known whether its answer passes the
    rules. Where several calls are made for one request, the last one's answer is the request's.
    """

    _write: Callable[[str | None], None] | None = None
    _ended: bool = False

    def add(self, write: Callable[[str | None], None]) -> None:
        """Take a line; `write` is called once, with another outcome where the line is not true."""
        self._release(None)
        self._write = write
        if self._ended:
            self._release(None)

    def withhold(self) -> bool:
        """The answer was kept back; whether there was a line to say so."""
        return self._release(WITHHELD)

    def deliver(self) -> None:
        """The answer passed."""
        self._release(None)

    def end(self) -> None:
        """The request has ended: nothing is waited for any more."""
        self._ended = True
        self._release(None)

    def _release(self, outcome: str | None) -> bool:
        write, self._write = self._write, None
        if write is None:
            return False
        write(outcome)
        return True


LogFormat: TypeAlias = Literal["auto", "text", "json"]


_STANDARD = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}
)


class _Record:
    """What both formats write of a record, already clean."""

    __slots__ = ("created", "exception", "extras", "level", "logger", "message")

    def __init__(self, record: logging.LogRecord, formatter: logging.Formatter) -> None:
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - a wrong format string must not lose the record
            message = f"{text_of(record.msg)} {text_of(record.args)}"
        self.created = record.created
        self.level = record.levelname
        name, harmless = record.name, redactor.harmless
        self.logger = name if name in harmless else clean(name, NAME_LIMIT)
        self.message = message if message in harmless else clean(message, MAX_LOG_MESSAGE)
        self.extras = record.cleaned if type(record) is PlainRecord else cleaned(record)
        failed = record.exc_info or record.exc_text or record.stack_info
        self.exception = _exception(record, formatter) if failed else ""


def cleaned(record: logging.LogRecord) -> Mapping[str, Any]:
    """The structured values of a record, as they may be written."""
    if type(record) is PlainRecord:
        return record.cleaned
    return fields({name: value for name, value in vars(record).items() if name not in _STANDARD})


def _exception(record: logging.LogRecord, formatter: logging.Formatter) -> str:
    parts: list[str] = []
    if record.exc_info and record.exc_info[0] is not None:
        try:
            parts.append(formatter.formatException(record.exc_info))
        except Exception:  # noqa: BLE001 - an exception may fail to describe itself
            parts.append(record.exc_info[0].__name__)
    elif record.exc_text:
        parts.append(record.exc_text)
    if record.stack_info:
        parts.append(record.stack_info)
    return mask("\n".join(parts), MAX_LOG_EXCEPTION)


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    _encoder = msgspec.json.Encoder()

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        if type(record) is not PlainRecord or (key := record.key) is None:
            seen = _Record(record, self)
            return f'{{"ts":"{_stamp(seen.created)}",{self._rest(seen)}'
        lines = redactor.lines
        rest = lines.get(key)
        if rest is None:
            if len(lines) >= MAX_KNOWN_LINES:
                lines.clear()
            known = PlainRecord(record.name, record.levelno, record.msg, record.values)
            rest = lines[key] = self._rest(_Record(known, self))
        if record.made:
            rest = f"{rest[:-1]},{self._encoder.encode(record.made).decode()[1:]}"
        return f'{{"ts":"{_stamp(record.created)}",{rest}'

    def _rest(self, seen: _Record) -> str:
        """What follows the time."""
        line: dict[str, Any] = {
            "level": seen.level,
            "logger": seen.logger,
            "message": seen.message,
        }
        if seen.exception:
            line["exception"] = "\n".join(visible(part) for part in seen.exception.split("\n"))
        for name, value in seen.extras.items():
            line[f"{name}_" if name in line or name == "ts" else name] = value
        return redactor.redact_forms(self._encoder.encode(line).decode())[1:]


_COLOURS = {"DEBUG": "2", "INFO": "36", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}


class TextFormatter(logging.Formatter):
    """A line for people: time, level, logger, message, then `key=value`."""

    def __init__(self, *, terminal: bool, colour: bool) -> None:
        super().__init__()
        self._terminal = terminal
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line; a traceback follows, indented, never at the start of a line."""
        seen = _Record(record, self)
        parts = [
            self._paint(_COLOURS.get(seen.level, "0"), f"{seen.level:<7}"),
            self._paint("2", seen.logger),
            seen.message,
            *(f"{self._paint('2', f'{k}=')}{_shown(v)}" for k, v in seen.extras.items()),
        ]
        lines = [" ".join(parts)]
        if seen.exception:
            lines += [f"    | {visible(part)}" for part in seen.exception.split("\n")]
        rest = redactor.redact_forms("\n".join(lines))
        return f"{self._paint('2', self._time(seen.created))} {rest}"

    def _time(self, created: float) -> str:
        if self._terminal:
            return datetime.fromtimestamp(created, UTC).astimezone().strftime("%H:%M:%S")
        return _stamp(created)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text


def _stamp(created: float) -> str:
    second, fraction = divmod(created, 1)
    return f"{_second(int(second))}.{int(fraction * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if isinstance(value, str) and (not text or any(char in text for char in ' "=')):
        return msgspec.json.encode(text).decode()
    return text


class SafeHandler(logging.StreamHandler[TextIO]):
    """Writes records without blocking; a failure is reported without the record's content."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        descriptor = descriptor_of(stream)
        # Only a file of the system can block; a stream in memory is written to at once.
        self._writer = None if descriptor is None else LineWriter(descriptor, self._lost)

    def handle(self, record: logging.LogRecord) -> bool:
        """Take a record; without the handler's lock where the writer has one of its own.

        With two, a thread that logs while it collects garbage could wait for another for ever.
        """
        if self._writer is None:
            return bool(super().handle(record))
        kept: object = self.filter(record)
        if kept:
            record = kept if isinstance(kept, logging.LogRecord) else record
            try:
                line = f"{self.format(record)}\n"
            except Exception:  # noqa: BLE001 - the rule of every handler: logging raises nothing
                self.handleError(record)
            else:
                self._writer.put(line)
        return bool(kept)

    def flush(self) -> None:
        """Wait until everything is written, for a bounded time."""
        if self._writer is None:
            super().flush()
        else:
            self._writer.flush()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Name the logger and nothing else: the standard report would show the unmasked record."""
        line = f"a record of {clean(record.name, NAME_LIMIT)} could not be written\n"
        if self._writer is not None:
            self._writer.put(line)
            return
        try:
            self.stream.write(line)
        except (OSError, ValueError):
            return

    def _lost(self, lines: int) -> str:
        what = "a log line was dropped" if lines == 1 else f"{lines} log lines were dropped"
        made = logging.LogRecord("folkmoot.log", logging.WARNING, "", 0, what, None, None)
        return f"{self.format(made)}\n"


def configure(level: str, format: LogFormat, stream: TextIO | None = None) -> None:  # noqa: A002
    """Send every logger of the process through one redacting handler on `stream` (stderr)."""
    stream = sys.stderr if stream is None else stream
    terminal = stream.isatty()
    handler = SafeHandler(stream)
    handler.addFilter(name_backend)
    if format == "json" or (format == "auto" and not terminal):
        handler.setFormatter(JsonFormatter())
    else:
        colour = terminal and not os.environ.get("NO_COLOR")
        handler.setFormatter(TextFormatter(terminal=terminal, colour=colour))
    root = logging.getLogger()
    for replaced in root.handlers:
        replaced.flush()
    # The audit log is kept whatever the level; what is written is what was asked for.
    handler.setLevel(level.upper())
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    prepare()
    # uvicorn has words for every connection.
    quiet = logging.NOTSET if root.level <= logging.DEBUG else logging.WARNING
    logging.getLogger("uvicorn").setLevel(quiet)
    logging.getLogger("asyncio").setLevel(quiet)
    # While a server is away, asyncpg tells of each attempt with a traceback; the store tells once.
    logging.getLogger("asyncpg").setLevel(quiet and logging.ERROR)


def capture_uncaught() -> None:
    """Log what dies outside the loop too, so that no traceback is printed past the redactor."""
    logger = logging.getLogger("folkmoot.uncaught")

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            name = args.thread.name if args.thread else "?"
            info = (args.exc_type, args.exc_value, args.exc_traceback)
            logger.error("a thread ended with an error", exc_info=info, extra={"ended": name})

    threading.excepthook = in_thread
