"""The timeline of a tape: its messages in their order, and which of them someone wants to see.

A tape is gone through once, in the memory of a few messages, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.capability import Capability, capability
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.glob import Glob, glob
from folkmoot.core.kinds import Kind, make
from folkmoot.proxy.tape import summaries
from folkmoot.proxy.tape.lines import CorrelationLine, Line, MessageLine

WINDOW: Final = 1_000
WINDOW_BYTES: Final = 16 * 1024 * 1024
"""How many messages, and bytes of them, may wait for the answer that belongs before them."""

CONTEXTS: Final = frozenset(("session", "transport"))
"""Parts of a line that are not what was said."""

Shape: TypeAlias = Literal["request", "response", "notification"]


class Moment(msgspec.Struct, frozen=True):
    """One message at its place in the conversation."""

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
            return summaries.error(self.members["error"])
        if self.shape == "response":
            return summaries.result(self.method, self.members.get("result"))
        return summaries.call(self.method, self.members.get("params"))


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
        name = summaries.name_of(method, members.get("params"))
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


class MessageFilter(msgspec.Struct, frozen=True):
    """Conditions on a message; all that are set must hold."""

    methods: tuple[Glob, ...] = ()
    kinds: tuple[Capability, ...] = ()
    direction: MessageDirection | None = None
    text: str = ""
    """In lower case; letters of either case are found by it."""
    errors: bool = False
    session: str = ""
    """How the session's id begins."""
    first: int = 0
    last: int | None = None
    slower: float | None = None
    """Only answers that took longer, in seconds."""

    @classmethod
    def of(
        cls,
        *,
        methods: Sequence[str] = (),
        kinds: Sequence[str] = (),
        direction: MessageDirection | None = None,
        text: str = "",
        errors: bool = False,
        session: str = "",
        first: int = 0,
        last: int | None = None,
        slower: float | None = None,
    ) -> MessageFilter:
        """A filter from what people write; an invalid kind raises `CapabilityError`."""
        return cls(
            tuple(map(glob, methods)), tuple(map(capability, kinds)), direction, text.lower(),
            errors, session, first, last, slower,
        )  # fmt: skip

    def meets(self, moment: Moment) -> bool:
        line = moment.line
        return (
            self.first <= line.seq
            and (self.last is None or line.seq <= self.last)
            and (self.direction is None or line.direction is self.direction)
            and (not self.errors or moment.failed)
            and (self.slower is None or self._took_longer(moment))
            and (not self.session or (line.session.id or "").startswith(self.session))
            and (not self.methods or any(each.matches(moment.method) for each in self.methods))
            and (not self.kinds or self._of_kind(moment))
            and (not self.text or self._says(moment))
        )

    def _took_longer(self, moment: Moment) -> bool:
        took = None if moment.answer is None else moment.answer.seconds
        return took is not None and self.slower is not None and took > self.slower

    def _of_kind(self, moment: Moment) -> bool:
        kind = kind_of(moment)
        if kind is None:
            return False
        allows = [each for each in self.kinds if not each.denies]
        denies = [each for each in self.kinds if each.denies]
        return (not allows or any(each.matches(kind) for each in allows)) and not any(
            each.matches(kind) for each in denies
        )

    def _says(self, moment: Moment) -> bool:
        # Decoded, so that an escape in the JSON hides nothing from one who looks for its letter.
        return self.text in msgspec.json.encode(moment.members).decode().lower()


def kind_of(moment: Moment) -> Kind | None:
    """The kind of a message; a response's is that of its request."""
    if not moment.method:
        return None
    try:
        return make("mcp", moment.shape, moment.method, moment.name or None)
    except e.KindError:
        return None
