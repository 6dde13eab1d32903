"""Ties answers to their requests while a tape is written: by session, and by id with its type."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from folkmoot.core.envelope import MessageContext, MessageDirection
from folkmoot.core.message import MessageId, Request, Response
from folkmoot.mcp.wire import PROMPTS_GET, RESOURCES_READ, SUBSCRIBE, TOOLS_CALL, UNSUBSCRIBE
from folkmoot.proxy.tape.lines import CorrelationLine, Outcome

MOST_OPEN: Final = 65_536
"""Of how many requests an answer is awaited; the oldest is forgotten first."""

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
Key: TypeAlias = tuple[int, str | None, type, MessageId]

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
        """The request as far as it is remembered: what was asked, not with what."""
        return _asked(self.method, self.name)


@lru_cache(maxsize=1024)
def _asked(method: str, name: str) -> Request:
    member = NAMED.get(method)
    return Request(id=0, method=method, params={member: name} if member else {})


class Correlations:
    """The requests that were not answered yet."""

    def __init__(self) -> None:
        self._open: dict[Key, list[Open]] = {}
        self._count = 0

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
        key = (id(context.direction), _tie(context), type(request.id), request.id)
        others = self._open.get(key)
        if others is None:
            self._open[key] = [waiting]
        else:
            others.append(waiting)
        self._count += 1
        if self._count > MOST_OPEN:
            self._take(next(iter(self._open)))

    def answered(self, response: Response, context: MessageContext) -> Open | None:
        """The request this answers, which is then answered."""
        identity = response.id
        if identity is None:
            return None
        way = _ASKED[id(context.direction)]
        tie = _tie(context)
        found = self._take((way, tie, type(identity), identity))
        if found is None and tie is not None:
            # The answer to `initialize` has the session that the request was still without.
            found = self._take((way, None, type(identity), identity))
        return found

    def elsewhere(self) -> Correlations:
        """The same requests as those of an earlier tape: on the next one they have no number."""
        others = Correlations()
        others._open = {
            key: [msgspec.structs.replace(each, seq=0) for each in waiting]
            for key, waiting in self._open.items()
        }
        others._count = self._count
        return others

    def _take(self, key: Key) -> Open | None:
        waiting = self._open.get(key)
        if waiting is None:
            return None
        self._count -= 1
        if len(waiting) == 1:
            del self._open[key]
        return waiting.pop(0)


def correlation(
    request: Open,
    seq: int,
    response: Response,
    context: MessageContext,
) -> CorrelationLine:
    """The line that ties an answer to its request."""
    seconds = max(0.0, context.timing.created_at - request.created_at)
    method, name = request.told or (request.method, request.name)
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
    if member is None or not isinstance(request.params, dict):
        return ""
    name: Any = request.params.get(member)
    return name[:LONGEST_NAME] if isinstance(name, str) else ""


def told_of(method: str, redacted: bytes) -> Told:
    """What a request asked for, as its line says it; by its true method it is known where."""
    value = msgspec.json.decode(redacted)
    written, params = value.get("method"), value.get("params")
    name = params.get(NAMED.get(method)) if isinstance(params, dict) else None
    return (
        written if isinstance(written, str) else "",
        name[:LONGEST_NAME] if isinstance(name, str) else "",
    )


def _tie(context: MessageContext) -> str | None:
    session = context.session
    if session.correlation_id is not None:
        return session.correlation_id
    return None if session.session_id is None else session.session_id.value
