"""Part: a tape seen from its server: what each client said there, and what it had waited for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import MessageId, Request, Response
from folkmoot.mcp.wire import INITIALIZE, PROGRESS
from folkmoot.proxy.replay.sides import at_server, passed_server

if TYPE_CHECKING:
    from folkmoot.proxy.tape import Entry

FROM_CLIENT: Final = MessageDirection.CLIENT_TO_SERVER


class Step(msgspec.Struct):
    """One request or notification of the client."""

    seq: int
    message: Any
    pause: float
    """Seconds since whatever came before it."""
    after: tuple[int, ...]
    """The requests that were answered since the step before."""
    answer: Response | None = None
    """What the server said to it."""


class Reply(msgspec.Struct, frozen=True):
    """What the client answered to a request of the server."""

    request: Request
    response: Response


class Part(msgspec.Struct):
    """All that one client said in one conversation."""

    steps: list[Step] = []
    replies: list[Reply] = []


def parts_of(entries: Iterable[Entry]) -> list[Part]:
    """The conversations of a tape, in the order in which they began."""
    talks = _Talks()
    for entry in entries:
        if passed_server(entry):
            talks.of(entry).hear(entry)
    return [talk.part for talk in talks.all if talk.part.steps]


class _Talk:
    """One conversation while it is read."""

    def __init__(self) -> None:
        self.part = Part()
        self.session: str | None = None
        self.greeted = False
        self.open: dict[tuple[type, MessageId], Step] = {}
        self._asked: dict[tuple[type, MessageId], Request] = {}
        self._answered: list[int] = []
        self._last: float | None = None

    def hear(self, entry: Entry) -> None:
        message, context = at_server(entry), entry.envelope.context
        at = context.timing.created_at
        pause = 0.0 if self._last is None else max(0.0, at - self._last)
        self._last = at
        if context.direction is not FROM_CLIENT:
            self._from_server(message)
        elif isinstance(message, Response):
            request = None if message.id is None else self._asked.pop(_key(message.id), None)
            if request is not None:
                self.part.replies.append(Reply(request, message))
        elif message.method != PROGRESS:
            # The token of a client's progress is the server's own, and another one each time.
            step = Step(entry.seq, message, pause, tuple(self._answered))
            self._answered.clear()
            self.part.steps.append(step)
            if isinstance(message, Request):
                self.open[_key(message.id)] = step

    def _from_server(self, message: Any) -> None:
        if isinstance(message, Request):
            self._asked[_key(message.id)] = message
        elif isinstance(message, Response) and message.id is not None:
            step = self.open.pop(_key(message.id), None)
            if step is not None:
                step.answer = message
                self._answered.append(step.seq)


class _Talks:
    """Tells conversations apart: by their session, which `initialize` and its answer have not."""

    def __init__(self) -> None:
        self.all: list[_Talk] = []
        self._named: dict[str, _Talk] = {}

    def of(self, entry: Entry) -> _Talk:
        found = entry.envelope.context.session.session_id
        message = at_server(entry)
        greets = isinstance(message, Request) and message.method == INITIALIZE
        if found is not None:
            return self._named.get(found.value) or self._name(found.value)
        nameless = [talk for talk in self.all if talk.session is None]
        if isinstance(message, Response) and message.id is not None:
            key = _key(message.id)
            nameless = [talk for talk in nameless if key in talk.open] or nameless
        talk = nameless[-1] if nameless else None
        if talk is None or (greets and talk.greeted):
            talk = _Talk()
            self.all.append(talk)
        talk.greeted = talk.greeted or greets
        return talk

    def _name(self, session: str) -> _Talk:
        """The oldest conversation that waits for its session is the one that gets it."""
        waiting = (talk for talk in self.all if talk.session is None and talk.greeted)
        talk = next(waiting, None)
        if talk is None:
            talk = _Talk()
            self.all.append(talk)
        talk.session = session
        self._named[session] = talk
        return talk


def _key(identity: MessageId) -> tuple[type, MessageId]:
    return type(identity), identity
