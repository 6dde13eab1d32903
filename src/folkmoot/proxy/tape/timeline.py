"""The timeline of a tape: its messages in their order, each with what it belongs to.

A tape is gone through once, in the memory of a few messages, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from folkmoot.core.envelope import MessageDirection
from folkmoot.proxy.tape import telling
from folkmoot.proxy.tape.lines import CorrelationLine, Line, MessageLine

WINDOW: Final = 1_000
WINDOW_BYTES: Final = 16 * 1024 * 1024
"""How many messages, and bytes of them, may wait for the answer that belongs before them."""

CONTEXTS: Final = frozenset(("session", "transport"))
"""Parts of a line that are not what was said."""

Shape: TypeAlias = Literal["request", "response", "notification"]


class Moment(msgspec.Struct, frozen=True):
    """One message in its place in the conversation."""

    line: MessageLine
    members: dict[str, Any]
    """The message itself."""
    at: float
    """Seconds since the first message of the tape."""
    shape: Shape
    method: str
    """Its own, or that of the request it answers; empty where that is not known."""
    name: str
    """The tool, prompt or resource it is about."""
    answer: CorrelationLine | None = None
    """What ties an answer to its request."""

    @property
    def seq(self) -> int:
        """Its number on the tape."""
        return self.line.seq

    @property
    def from_client(self) -> bool:
        """Whether it flows to the server."""
        return self.line.direction is MessageDirection.CLIENT_TO_SERVER

    @property
    def redacted(self) -> int:
        """How much was left out of what it says; its session and transport do not count."""
        return sum(place.part not in CONTEXTS for place in self.line.redacted)

    @property
    def tool_failed(self) -> bool:
        """Whether it is the answer of a tool that could not do its work."""
        result = self.members.get("result")
        return isinstance(result, dict) and result.get("isError") is True

    @property
    def failed(self) -> bool:
        """Whether it is an error, or was stopped with one."""
        return "error" in self.members or self.tool_failed or self.line.error is not None

    @property
    def summary(self) -> str:
        """What it says, in a line that is not made safe for a terminal."""
        if "error" in self.members:
            return telling.error(self.members["error"])
        if self.shape == "response":
            return telling.result(self.method, self.members.get("result"))
        return telling.call(self.method, self.members.get("params"))


def moments(lines: Iterable[Line | None]) -> Iterator[Moment]:
    """The messages of a tape's lines. A None among them says that nothing follows for now."""
    first: float | None = None
    held: MessageLine | None = None
    for line in lines:
        if held is not None:
            # What an answer answers is told by the line behind it.
            tied = line if isinstance(line, CorrelationLine) else None
            yield _moment(held, first or 0.0, tied if tied and tied.response == held.seq else None)
            held = None
        if isinstance(line, MessageLine):
            first = line.timing.created_at if first is None else first
            held = line
    if held is not None:
        yield _moment(held, first or 0.0, None)


def _moment(line: MessageLine, first: float, answer: CorrelationLine | None) -> Moment:
    members = read(line.message)
    method, name = members.get("method"), ""
    shape: Shape = "response"
    if isinstance(method, str):
        shape = "request" if "id" in members else "notification"
        name = telling.name_of(method, members.get("params"))
    elif answer is not None:
        method, name = answer.method, answer.name
    else:
        method = ""
    return Moment(line, members, line.timing.created_at - first, shape, method, name, answer)


def read(message: msgspec.Raw) -> dict[str, Any]:
    """The members of a message; none where it holds what no message does."""
    try:
        value = msgspec.json.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def grouped(timeline: Iterable[Moment]) -> Iterator[tuple[Moment, ...]]:
    """Each request with its answer, in the order of the requests; anything else by itself.

    A request whose answer is long in coming is given alone, and the answer later in its own place.
    """
    waiting: dict[int, tuple[Moment, ...]] = {}
    held = 0
    for moment in timeline:
        held += len(moment.line.message)
        asked = moment.answer.request if moment.answer else moment.seq
        waiting[asked if asked in waiting else moment.seq] = (*waiting.get(asked, ()), moment)
        while waiting:
            first = next(iter(waiting))
            group = waiting[first]
            full = len(waiting) > WINDOW or held > WINDOW_BYTES
            if group[0].shape == "request" and len(group) == 1 and not full:
                break
            held -= sum(len(each.line.message) for each in waiting.pop(first))
            yield group
    yield from waiting.values()
