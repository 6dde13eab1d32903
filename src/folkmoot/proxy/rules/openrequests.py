"""Open requests: what responses answer, for as long as that can be of use.

A session cannot push out what is remembered of another, short of there being too many sessions.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, Final, TypeAlias

from folkmoot.core.envelope import MessageContext, MessageDirection
from folkmoot.core.message import MessageId
from folkmoot.proxy.interceptors.view import Asked

MOST_SESSIONS: Final = 4_096
MOST_OPEN: Final = 1_024
"""Requests of one session; the oldest is forgotten, and its answer is then nobody's."""
MOST_ANSWERED: Final = 256
MOST_ALIKE: Final = 64
"""Requests without a session that have one id, as several clients' may have at once."""

Name: TypeAlias = tuple[bool, str | None, type, MessageId]
"""Whether the client asked, with which correlation, and the id with its type."""
Table: TypeAlias = dict[Name, Asked | deque[Asked]]


class OpenRequests:
    """What was asked and is not answered yet; and, briefly, what was answered last."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Table] = OrderedDict()
        self._answered: dict[tuple[str, Name], Asked] = {}

    def open(self, context: MessageContext, message_id: MessageId, asked: Asked) -> None:
        """Remember a request."""
        session = _session(context)
        table = self._sessions.get(session)
        if table is None:
            if len(self._sessions) >= MOST_SESSIONS:
                self._sessions.popitem(last=False)
            table = self._sessions[session] = {}
        else:
            self._sessions.move_to_end(session)
        name = _name(context, message_id, reverse=False)
        before = table.get(name)
        if before is None or session:
            # Within a session an id is used again only once it was answered.
            if len(table) >= MOST_OPEN and before is None:
                del table[next(iter(table))]
            table[name] = asked
        elif isinstance(before, deque):
            before.append(asked)
        else:
            table[name] = deque((before, asked), maxlen=MOST_ALIKE)

    def answer(self, context: MessageContext, message_id: MessageId) -> Asked | None:
        """What a response answers; it is open no longer."""
        name = _name(context, message_id, reverse=True)
        session = _session(context)
        asked = self._take(session, name)
        if asked is None and session:
            # What asks for a session is not yet part of it.
            asked = self._take("", name)
        if asked is not None:
            if len(self._answered) >= MOST_ANSWERED:
                del self._answered[next(iter(self._answered))]
            self._answered[session, name] = asked
        return asked

    def answered(self, context: MessageContext, message_id: MessageId) -> Asked | None:
        """What a response answered that was seen a moment ago."""
        name = _name(context, message_id, reverse=True)
        return self._answered.get((_session(context), name))

    def close(self, context: MessageContext, message_id: Any) -> None:
        """A request is not passed on, so no answer will come."""
        self._take(_session(context), _name(context, message_id, reverse=False))

    def _take(self, session: str, name: Name) -> Asked | None:
        table = self._sessions.get(session)
        if table is None:
            return None
        asked = table.pop(name, None)
        if not isinstance(asked, deque):
            return asked
        first = asked.popleft()
        if asked:
            table[name] = asked
        return first


def _session(context: MessageContext) -> str:
    session_id = context.session.session_id
    return "" if session_id is None else session_id.value


def _name(context: MessageContext, message_id: MessageId, *, reverse: bool) -> Name:
    from_client = context.direction is MessageDirection.CLIENT_TO_SERVER
    return from_client is not reverse, context.session.correlation_id, type(message_id), message_id
