"""Whether the messages of a tape make a conversation: numbers, directions, requests and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import MessageId, Notification, Response, same_id
from folkmoot.mcp.wire import (
    CANCELLED,
    COMPLETION,
    DISCOVER,
    ELICIT,
    INITIALIZE,
    INITIALIZED,
    LISTEN,
    LOGGED,
    PROMPTS_CHANGED,
    PROMPTS_GET,
    PROMPTS_LIST,
    RESOURCES_CHANGED,
    RESOURCES_LIST,
    RESOURCES_READ,
    ROOTS_CHANGED,
    ROOTS_LIST,
    SAMPLE,
    SET_LEVEL,
    SUBSCRIBE,
    TEMPLATES_LIST,
    TOOLS_CALL,
    TOOLS_CHANGED,
    TOOLS_LIST,
    UNSUBSCRIBE,
    UPDATED,
)
from folkmoot.proxy.tape.lines import CorrelationLine
from folkmoot.proxy.tape.model import Entry
from folkmoot.proxy.tape.recorder import name_of, outcome_of

MOST_OPEN: Final = 100_000
"""Requests without an answer that are remembered; the oldest are then reported early."""
TOLERANCE: Final = 0.001
"""Seconds by which a latency may be rounded."""

TO_SERVER: Final = MessageDirection.CLIENT_TO_SERVER
TO_CLIENT: Final = MessageDirection.SERVER_TO_CLIENT
ONE_WAY: Final[dict[str, MessageDirection]] = {
    **dict.fromkeys(
        (
            INITIALIZE, DISCOVER, LISTEN, TOOLS_LIST, TOOLS_CALL,
            PROMPTS_LIST, PROMPTS_GET, RESOURCES_LIST, TEMPLATES_LIST,
            RESOURCES_READ, SUBSCRIBE, UNSUBSCRIBE,
            COMPLETION, SET_LEVEL, INITIALIZED,
            ROOTS_CHANGED,
        ),
        TO_SERVER,
    ),
    **dict.fromkeys(
        (
            SAMPLE, ELICIT, ROOTS_LIST, LOGGED,
            TOOLS_CHANGED, PROMPTS_CHANGED,
            RESOURCES_CHANGED, UPDATED,
        ),
        TO_CLIENT,
    ),
}  # fmt: skip
"""Methods that only one side may say; all others go both ways."""

SIDES: Final = {TO_SERVER: "the client", TO_CLIENT: "the server"}


class Finding(msgspec.Struct, frozen=True):
    """Something about a line; `severe` where the tape is wrong, and not merely odd."""

    line: int
    text: str
    severe: bool = True


class _Open(msgspec.Struct, frozen=True, gc=False):
    """A request that was not answered yet."""

    line: int
    id: MessageId
    method: str
    name: str
    direction: MessageDirection
    at: float
    stopped: bool

    def unanswered(self) -> Finding:
        what = f"{self.method} {self.name}".rstrip()
        return Finding(self.line, f"{what} (id {self.id!r}) got no answer", severe=False)


class _Answer(msgspec.Struct, frozen=True, gc=False):
    """An answer whose correlation line is still to come."""

    line: int
    seq: int
    response: Response
    direction: MessageDirection
    at: float

    def untied(self) -> Finding:
        return Finding(self.line, f"answers no request: there is none with id {self.response.id!r}")


class Conversation:
    """Follows messages and correlations, and says what does not fit."""

    def __init__(self) -> None:
        self.messages = 0
        self._seq = 0
        self._open: dict[int, _Open] = {}
        self._answer: _Answer | None = None

    def unreadable(self, seq: int, line: int) -> Iterator[Finding]:
        """Count a message that cannot be read."""
        yield from self._untied()
        self.messages += 1
        if seq > self._seq + 1:
            first, last = self._seq + 1, seq - 1
            lost = f"message {first} is" if first == last else f"messages {first} to {last} are"
            yield Finding(line, f"{lost} missing before it")
        elif seq <= self._seq:
            yield Finding(line, f"has number {seq}, which does not follow {self._seq}")
        self._seq = seq

    def message(self, entry: Entry, line: int) -> Iterator[Finding]:
        """What is wrong with a message."""
        yield from self.unreadable(entry.seq, line)
        message, context = entry.message, entry.context
        direction, at = context.direction, context.timing.created_at
        if direction not in SIDES:
            yield Finding(line, f"has no direction: it is {direction.value}")
        if isinstance(message, Response):
            if message.id is not None:
                self._answer = _Answer(line, entry.seq, message, direction, at)
            return
        if direction in SIDES and ONE_WAY.get(message.method, direction) is not direction:
            yield Finding(line, f"{message.method} cannot come from {SIDES[direction]}")
        if isinstance(message, Notification):
            self._cancelled(message, direction)
            return
        stopped = entry.verdict == "block"
        self._open[entry.seq] = _Open(
            line, message.id, message.method, name_of(message), direction, at, stopped
        )
        if len(self._open) > MOST_OPEN:
            yield self._open.pop(next(iter(self._open))).unanswered()

    def _cancelled(self, notice: Notification, direction: MessageDirection) -> None:
        """Do not wait for the answer to what was cancelled; it may still come."""
        if notice.method != CANCELLED or not isinstance(notice.params, dict):
            return
        wanted = notice.params.get("requestId")
        for seq, asked in reversed(self._open.items()):
            if asked.direction is direction and same_id(asked.id, wanted):
                self._open[seq] = msgspec.structs.replace(asked, stopped=True)
                return

    def _untied(self) -> Iterator[Finding]:
        if self._answer is not None:
            yield self._answer.untied()
            self._answer = None

    def correlation(self, tie: CorrelationLine, line: int) -> Iterator[Finding]:
        """What is untrue in a correlation line."""
        answer, self._answer = self._answer, None
        if answer is None or answer.seq != tie.response:
            yield Finding(line, f"ties message {tie.response}, which is not the answer before it")
            return
        asked = self._open.pop(tie.request, None)
        if asked is None:
            yield Finding(line, f"ties to message {tie.request}, which is no open request")
            return
        took = max(0.0, answer.at - asked.at)
        outcome = outcome_of(answer.response)
        wrong = {
            "their ids differ": not same_id(asked.id, answer.response.id),
            "both flow the same way": answer.direction is asked.direction,
            f"the method is {asked.method}": tie.method != asked.method,
            f"the name is {asked.name!r}": tie.name != asked.name,
            f"the outcome is {outcome}": tie.outcome != outcome,
            f"it took {took:.6f} seconds": abs(tie.seconds - took) > TOLERANCE,
        }
        for what, so in wrong.items():
            if so:
                yield Finding(line, f"ties {tie.response} to {tie.request} wrongly: {what}")

    def left_open(self) -> Iterator[Finding]:
        """Requests that got no answer, once there are no more lines."""
        yield from self._untied()
        for asked in self._open.values():
            if not asked.stopped:
                yield asked.unanswered()
