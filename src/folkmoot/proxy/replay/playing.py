"""Plays the clients of a tape against a live server, and compares its answers.

Cursors, states and task ids that the live server made up are put where the recorded client said
those of its own server; placeholders of a redacted tape get the values that someone gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import field

from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import (
    M,
    MessageId,
    Request,
    Response,
    encode_message,
    members,
    replace,
)
from folkmoot.mcp.wire import INITIALIZE, PROGRESS, cancelled_id
from folkmoot.proxy.redaction.placeholders import PLACEHOLDER
from folkmoot.proxy.replay.script import at_server, passed_server
from folkmoot.proxy.tape.diff import Difference, differences

if TYPE_CHECKING:
    from folkmoot.proxy.tape import TapeEntry

FROM_CLIENT: Final = MessageDirection.CLIENT_TO_SERVER


class ClientStep(msgspec.Struct):
    """One request or notification of the client."""

    seq: int
    message: Any
    pause: float
    """Seconds since whatever came before it."""
    after: tuple[int, ...]
    """The requests that were answered since the step before."""
    answer: Response | None = None
    """What the server said to it."""
    cancelled: bool = False
    """Whether the client gave it up, so that how far the server came is a matter of time."""


class RecordedReply(msgspec.Struct, frozen=True):
    """What the client answered to a request of the server."""

    request: Request
    response: Response


class RecordedClient(msgspec.Struct):
    """One client's messages in one conversation."""

    steps: list[ClientStep] = []
    replies: list[RecordedReply] = []


def parts_of(entries: Iterable[TapeEntry]) -> list[RecordedClient]:
    """The conversations of a tape, in the order in which they began."""
    conversations = _Conversations()
    for entry in entries:
        if passed_server(entry):
            conversations.of(entry).hear(entry)
    return [conversation.part for conversation in conversations.all if conversation.part.steps]


class _Conversation(Entity):
    """One conversation while being read."""

    part: RecordedClient = field(default_factory=RecordedClient)
    session: str | None = None
    greeted: bool = False
    open: dict[tuple[type, MessageId], ClientStep] = {}
    _asked: dict[tuple[type, MessageId], Request] = {}
    _answered: list[int] = []
    _last: float | None = None

    def hear(self, entry: TapeEntry) -> None:
        message, context = at_server(entry), entry.envelope.context
        at = context.timing.created_at
        pause = 0.0 if self._last is None else max(0.0, at - self._last)
        self._last = at
        if context.direction is not FROM_CLIENT:
            self._from_server(message)
        elif isinstance(message, Response):
            request = None if message.id is None else self._asked.pop(_key(message.id), None)
            if request is not None:
                self.part.replies.append(RecordedReply(request, message))
        elif message.method != PROGRESS:
            # The token of a client's progress is the server's own, and another one each time.
            step = ClientStep(entry.seq, message, pause, tuple(self._answered))
            self._answered.clear()
            self.part.steps.append(step)
            if isinstance(message, Request):
                self.open[_key(message.id)] = step
            elif (given_up := cancelled_id(message)) is not None:
                asked = self.open.get(_key(given_up))
                if asked is not None:
                    asked.cancelled = True

    def _from_server(self, message: Any) -> None:
        if isinstance(message, Request):
            self._asked[_key(message.id)] = message
        elif isinstance(message, Response) and message.id is not None:
            step = self.open.pop(_key(message.id), None)
            if step is not None:
                step.answer = message
                self._answered.append(step.seq)


class _Conversations(Entity):
    """Tells conversations apart: by their session, which `initialize` and its answer have not."""

    all: list[_Conversation] = []
    _named: dict[str, _Conversation] = {}

    def of(self, entry: TapeEntry) -> _Conversation:
        found = entry.envelope.context.session.session_id
        message = at_server(entry)
        greets = isinstance(message, Request) and message.method == INITIALIZE
        if found is not None:
            return self._named.get(found.value) or self._name(found.value)
        nameless = [conversation for conversation in self.all if conversation.session is None]
        if isinstance(message, Response) and message.id is not None:
            key = _key(message.id)
            nameless = [
                conversation for conversation in nameless if key in conversation.open
            ] or nameless
        conversation = nameless[-1] if nameless else None
        if conversation is None or (greets and conversation.greeted):
            conversation = _Conversation()
            self.all.append(conversation)
        conversation.greeted = conversation.greeted or greets
        return conversation

    def _name(self, session: str) -> _Conversation:
        """Give the session to the oldest conversation that waits for one."""
        waiting = (
            conversation
            for conversation in self.all
            if conversation.session is None and conversation.greeted
        )
        conversation = next(waiting, None)
        if conversation is None:
            conversation = _Conversation()
            self.all.append(conversation)
        conversation.session = session
        self._named[session] = conversation
        return conversation


def _key(identity: MessageId) -> tuple[type, MessageId]:
    return type(identity), identity


ECHOED: Final = {
    ("requestState",): "requestState",
    ("nextCursor",): "cursor",
    ("task", "taskId"): "taskId",
    ("taskId",): "taskId",
}
"""Where a result holds it, and the member of the params that says it back."""


class Echoes(Entity):
    """Puts what the live server made up where the recorded client said back the recorded one."""

    _live: dict[tuple[str, str], str] = {}

    def learn(self, recorded: Response, live: Response) -> None:
        """Note what the live server calls something that the recorded one had a name for."""
        for path, member in ECHOED.items():
            was, is_now = _at(recorded.result, path), _at(live.result, path)
            if isinstance(was, str) and isinstance(is_now, str) and was != is_now:
                self._live[member, was] = is_now

    def put(self, message: M) -> M:
        """The message with the live server's values in place of recorded ones."""
        params = getattr(message, "params", None)
        if not self._live or not isinstance(params, dict):
            return message
        changed = {
            name: self._live[name, value]
            for name, value in params.items()
            if isinstance(value, str) and (name, value) in self._live
        }
        return replace(message, params={**params, **changed}) if changed else message


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def placeholders(message: M) -> list[str]:
    """The secrets of a message that the tape does not hold, each once."""
    text = encode_message(message).decode()
    return list(dict.fromkeys(found[0] for found in PLACEHOLDER.finditer(text)))


def filled(message: M, values: Mapping[str, str]) -> M:
    """The message with these values in place of their placeholders."""
    if not any(name in values for name in placeholders(message)):
        return message
    said = [name for name in ("params", "result") if hasattr(message, name)]
    return replace(message, **{name: _filled(getattr(message, name), values) for name in said})


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), value)
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if isinstance(value, dict):
        return {name: _filled(member, values) for name, member in value.items()}
    return value


class PlayOutcome(Enum):
    """The outcome of one recorded request."""

    SAME = "same"
    DIFFERS = "differs"
    UNANSWERED = "unanswered"
    """The server did not answer in time, or ended."""
    NOT_PLAYED = "not_played"
    """It was not sent: the tape does not hold all of it."""
    NOT_COMPARED = "not_compared"
    """The tape holds no answer to it."""


class PlayedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One recorded request, and the comparison of its answers."""

    seq: int
    method: str
    outcome: PlayOutcome
    name: str = ""
    differences: tuple[Difference, ...] = ()
    why: str = ""
    """Why it was not played, compared or answered."""


class PlayReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcomes of all requests, and the server's questions without a recorded answer."""

    calls: tuple[PlayedCall, ...]
    unexpected: tuple[str, ...] = ()

    def count(self, outcome: PlayOutcome) -> int:
        """How many requests ended so."""
        return sum(call.outcome is outcome for call in self.calls)

    @property
    def same(self) -> bool:
        """Whether nothing differs, and something was compared if there was anything."""
        failed = self.count(PlayOutcome.DIFFERS) + self.count(PlayOutcome.UNANSWERED)
        compared = self.count(PlayOutcome.SAME) > 0 or not self.calls
        return compared and not failed and not self.unexpected

    def summary(self) -> str:
        """The numbers in a line: `12 calls, 11 the same, 1 differs`."""
        total = len(self.calls)
        parts = [f"{total} call{'' if total == 1 else 's'}"]
        differ = self.count(PlayOutcome.DIFFERS)
        parts.append(f"{self.count(PlayOutcome.SAME)} the same")
        said = (
            (differ, "differs" if differ == 1 else "differ"),
            (self.count(PlayOutcome.UNANSWERED), "not answered"),
            (self.count(PlayOutcome.NOT_PLAYED), "not played"),
            (self.count(PlayOutcome.NOT_COMPARED), "not compared"),
        )
        parts += [f"{number} {words}" for number, words in said if number]
        if self.unexpected:
            parts.append(f"{len(self.unexpected)} asked by the server and not on the tape")
        return ", ".join(parts)


def compared(recorded: Response, live: Response, ignore: tuple[str, ...]) -> list[Difference]:
    """Where two answers differ, but for what a server makes up anew each time."""
    found = differences(_said(recorded), _said(live), ignore)
    return [each for each in found if not _made_up(each)]


def _said(response: Response) -> dict[str, Any]:
    return {name: value for name, value in members(response).items() if name in ("result", "error")}


MADE_UP = frozenset(("$.result.requestState", "$.result.nextCursor", "$.result.task.taskId"))
"""What only the server understands; that it is there matters, and not what it is."""


def _made_up(difference: Difference) -> bool:
    both = isinstance(difference.recorded, str) and isinstance(difference.live, str)
    return both and difference.path in MADE_UP
