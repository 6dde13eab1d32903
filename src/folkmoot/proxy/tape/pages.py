"""Pages of a tape for people: its timeline, one message with its pair, and its calls.

Each answer reads a bounded part of the tape, wherever in it that is. What is looked for may lie
beyond: then the answer says where to go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import IO, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.glob import Glob, glob
from folkmoot.proxy.tape.diff import kinds_only
from folkmoot.proxy.tape.lines import (
    CorrelationLine,
    EndLine,
    Header,
    Line,
    MessageLine,
    decode_line,
)
from folkmoot.proxy.tape.reader import SCAN, LineSpan, backward, begins_line, forward, skip
from folkmoot.proxy.tape.timeline import MessageFilter, Moment, moments
from folkmoot.proxy.tape_views import TapeAnswer, TapeCall, TapeMessage

Opening: TypeAlias = Callable[[], AbstractContextManager[IO[bytes]]]
"""Opens the tape, each time from its beginning."""
Compared: TypeAlias = Literal["exact", "kinds"]

SUMMARY: Final = 300
"""Characters of a message that a timeline shows."""
SHOWN: Final = 512 * 1024
"""Bytes of a line that are shown in full."""
MOST_CALLS: Final = 2_000
CALLS_SCAN: Final = 2 * 1024 * 1024
DIGEST: Final = 8
WRONG_CURSOR: Final = "cursor must be one that an earlier page gave."


class Filter(Struct, frozen=True, kw_only=True):
    """Which messages are wanted; all that is set must hold."""

    method: str = ""
    name: str = ""
    direction: Literal["client_to_server", "server_to_client"] | None = None
    text: str = ""
    errors: bool = False

    def accepts(self) -> Callable[[Moment], bool]:
        """What tells whether a message is wanted."""
        direction = None if self.direction is None else MessageDirection(self.direction)
        methods = [_anywhere(self.method)] if self.method else []
        wanted = MessageFilter.of(
            methods=methods, direction=direction, text=self.text, errors=self.errors
        )
        names: Glob | None = glob(_anywhere(self.name)) if self.name else None
        return lambda moment: wanted.meets(moment) and (names is None or names.matches(moment.name))

    @property
    def is_empty(self) -> bool:
        """Whether everything is wanted."""
        return self == Filter()


class Timeline(Struct, frozen=True, kw_only=True):
    """Some messages, in their order, and what part of the tape was read for them."""

    messages: list[TapeMessage]
    begin: int
    end: int


class CallDetail(Struct, frozen=True, kw_only=True):
    """One message with its pair: the request it answers, or its answer."""

    line: Raw
    other: Raw | None = None
    outcome: str = ""
    seconds: float | None = None
    ended: bool = True
    """Whether the other half was found, or there is none; False where it may lie further away."""


class CallPage(Struct, frozen=True, kw_only=True):
    """Some requests and answers."""

    calls: list[TapeCall]
    answers: list[TapeAnswer]
    messages: int
    end: int


def later(opening: Opening, name: str, offset: int, limit: int, wanted: Filter) -> Timeline:
    """The messages from a place on."""
    rows: list[TapeMessage] = []
    accepts = None if wanted.is_empty else wanted.accepts()
    end = offset
    with opening() as file:
        _check(file, offset)
        for row, end_of_row in _forward(file, name, offset, accepts):
            end = end_of_row
            if row is not None:
                rows.append(row)
            if len(rows) == limit or end - offset >= SCAN:
                break
    return Timeline(messages=rows, begin=offset, end=end)


def earlier(
    opening: Opening, name: str, before: int | None, limit: int, wanted: Filter
) -> Timeline:
    """The messages before a place, or the last ones."""
    rows: list[TapeMessage] = []
    accepts = None if wanted.is_empty else wanted.accepts()
    tie: CorrelationLine | None = None
    begin = end = before
    if before is not None:
        with opening() as file:
            _check(file, before)
    with opening() as file:
        for span in backward(file, before):
            if not span.whole:
                continue
            line = None if span.raw is None else _decoded(name, span)
            begin, end = span.start, span.end if end is None else end
            if isinstance(line, CorrelationLine):
                tie = line
            elif span.raw is None or isinstance(line, MessageLine):
                row = _row(span, line, tie, accepts)
                tie = None
                if row is not None:
                    rows.append(row)
                if len(rows) == limit or end - begin >= SCAN:
                    break
    return Timeline(messages=rows[::-1], begin=begin or 0, end=end or 0)


def call_detail(opening: Opening, name: str, offset: int) -> CallDetail:
    """The message at a place, with the other half of its call."""
    with opening() as file:
        _check(file, offset)
        spans = forward(file, offset)
        first = next(spans, None)
        line = None if first is None or first.raw is None else _decoded(name, first)
        if first is None or (first.raw is not None and not isinstance(line, MessageLine)):
            raise e.ArgumentInvalid("There is no message at this offset.", field="offset")
        if not isinstance(line, MessageLine):
            return CallDetail(line=_shown(first))
        second = next(spans, None)
        tie = None
        if second is not None and second.whole and second.raw is not None:
            tie = _decoded(name, second)
    (moment,) = moments([line])
    if moment.shape == "request":
        with opening() as file:
            skip(file, first.end)
            return _with_answer(file, name, first, line.seq)
    if isinstance(tie, CorrelationLine) and tie.response == line.seq:
        with opening() as file:
            return _with_request(file, name, first, tie)
    return CallDetail(line=_shown(first))


def calls(opening: Opening, name: str, offset: int, compared: Compared | None) -> CallPage:
    """The requests and answers from a place on."""
    found: list[TapeCall] = []
    answers: list[TapeAnswer] = []
    last: Moment | None = None
    messages, end = 0, offset
    with opening() as file:
        _check(file, offset)
        for span in forward(file, offset):
            line = None if span.raw is None else _decoded(name, span)
            tied = isinstance(line, CorrelationLine)
            full = len(found) + len(answers) >= MOST_CALLS or span.end - offset >= CALLS_SCAN
            if not span.whole or (full and not tied and end > offset):
                break
            end = span.end
            if isinstance(line, CorrelationLine):
                said = ""
                if compared and last is not None and last.seq == line.response:
                    said = digest(_said(last), compared)
                answers.append(TapeAnswer(line.request, line.seconds, line.outcome, said))
            elif isinstance(line, MessageLine):
                messages += 1
                (last,) = moments([line])
                if last.shape == "request":
                    found.append(_call(span, last, compared))
    return CallPage(calls=found, answers=answers, messages=messages, end=end)


def last_seq(opening: Opening) -> int | None:
    """The number of the last message of a tape that has no end, if it is found soon."""
    with opening() as file:
        for number, span in enumerate(backward(file, None)):
            if number > 3 or span.raw is None:
                break
            try:
                line = decode_line(span.raw) if span.whole else None
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                break
            if isinstance(line, MessageLine):
                return line.seq
            if isinstance(line, Header):
                return 0
    return None


def digest(value: Any, compared: Compared) -> str:
    """A short text that is equal for equal values, whatever the order of their members."""
    text = msgspec.json.encode(value, order="sorted").decode()
    if compared == "kinds":
        text = kinds_only(text)
    return blake2b(text.encode(), digest_size=DIGEST).hexdigest()


def _forward(
    file: IO[bytes], name: str, offset: int, accepts: Callable[[Moment], bool] | None
) -> Iterator[tuple[TapeMessage | None, int]]:
    """Each message, or None for what is not wanted, with where the next one begins."""
    held: tuple[LineSpan, MessageLine | None] | None = None
    for span in forward(file, offset):
        line = _decoded(name, span) if span.whole and span.raw is not None else None
        if held is not None:
            # What an answer answers is told by the line behind it.
            tie = line if isinstance(line, CorrelationLine) else None
            end = held[0].end if tie is None else span.end
            yield _row(*held, tie, accepts), end
            held = None
        if not span.whole:
            return
        if span.raw is None:
            yield _row(span, None, None, accepts), span.end
        elif isinstance(line, MessageLine):
            held = span, line
        elif not isinstance(line, CorrelationLine):
            yield None, span.end
        if isinstance(line, EndLine):
            return
    if held is not None:
        yield _row(*held, None, accepts), held[0].end


def _row(
    span: LineSpan,
    line: Line | None,
    tie: CorrelationLine | None,
    accepts: Callable[[Moment], bool] | None,
) -> TapeMessage | None:
    size = span.end - span.start
    if not isinstance(line, MessageLine):
        if accepts is not None:
            return None
        return TapeMessage(offset=span.start, bytes=size, shape="too_long")
    tied = tie if tie is not None and tie.response == line.seq else None
    (moment,) = moments([line, tied])
    if accepts is not None and not accepts(moment):
        return None
    summary = moment.summary
    return TapeMessage(
        offset=span.start,
        bytes=size,
        seq=line.seq,
        time=line.timing.system_time,
        direction=line.direction.value,
        shape=moment.shape,
        method=moment.method[:SUMMARY],
        name=moment.name[:SUMMARY],
        summary=summary if len(summary) <= SUMMARY else summary[:SUMMARY] + "…",
        failed=moment.failed,
        request=None if tied is None else tied.request,
        seconds=None if tied is None else tied.seconds,
        verdict=line.verdict or "",
        by=line.by,
        redacted=moment.redacted,
    )


def _with_answer(file: IO[bytes], name: str, asked: LineSpan, seq: int) -> CallDetail:
    needle = b'"request":%d,' % seq
    last = asked
    for span in forward(file, asked.end):
        if not span.whole or span.end - asked.end > SCAN:
            break
        if span.raw is not None and needle in span.raw:
            line = _decoded(name, span)
            if isinstance(line, CorrelationLine) and line.request == seq:
                return CallDetail(
                    line=_shown(asked),
                    other=_shown(last),
                    outcome=line.outcome,
                    seconds=line.seconds,
                )
        last = span
    else:
        return CallDetail(line=_shown(asked))
    return CallDetail(line=_shown(asked), ended=not span.whole)


def _with_request(file: IO[bytes], name: str, answer: LineSpan, tie: CorrelationLine) -> CallDetail:
    needle = b'"seq":%d,' % tie.request
    found = None
    for span in backward(file, answer.start):
        if answer.start - span.start > SCAN:
            break
        if span.raw is not None and needle in span.raw:
            line = _decoded(name, span)
            if isinstance(line, MessageLine) and line.seq == tie.request:
                found = _shown(span)
                break
    return CallDetail(
        line=_shown(answer),
        other=found,
        outcome=tie.outcome,
        seconds=tie.seconds,
        ended=found is not None,
    )


def _call(span: LineSpan, moment: Moment, compared: Compared | None) -> TapeCall:
    asked = ""
    if compared:
        params = moment.members.get("params")
        if isinstance(params, dict):
            params = {key: value for key, value in params.items() if key != "_meta"}
        asked = digest(params, compared)
    return TapeCall(
        moment.seq,
        span.start,
        moment.line.timing.system_time,
        moment.from_client,
        moment.method[:SUMMARY],
        moment.name[:SUMMARY],
        asked,
    )


def _said(answer: Moment) -> Any:
    """What an answer says, without what a server makes up anew each time."""
    if "error" in answer.members:
        return {"error": answer.members["error"]}
    result = answer.members.get("result")
    if isinstance(result, dict):
        result = {key: it for key, it in result.items() if key not in ("_meta", "requestState")}
    return {"result": result}


def _shown(span: LineSpan) -> Raw:
    if span.raw is not None and len(span.raw) <= SHOWN:
        return Raw(span.raw)
    return Raw(msgspec.json.encode({"type": "too_long", "bytes": span.end - span.start}))


def _check(file: IO[bytes], offset: int) -> None:
    if not begins_line(file, offset):
        raise e.ArgumentInvalid(WRONG_CURSOR, field="cursor")


def _decoded(name: str, span: LineSpan) -> Line | None:
    try:
        return decode_line(span.raw or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not span.whole:
            return None
        raise e.TapeUnreadable(
            f"{name}: is damaged at byte {span.start:,}: {error}. What comes before can be read.",
        ) from None


def _anywhere(pattern: str) -> str:
    """What was typed may stand anywhere, unless it says where by a `*`."""
    return pattern if "*" in pattern else f"*{pattern}*"
