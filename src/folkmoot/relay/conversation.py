"""One conversation: its session, which travels with each message, and the requests still open."""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeAlias

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import MessageId, Request, Response
from folkmoot.core.session import SessionContext, SessionState
from folkmoot.proxy.sessions import Session

MOST_OPEN: Final = 4096
"""Requests of one side that are remembered; the oldest is forgotten, and then matches nothing."""
MOST_CANCELLED: Final = 256
"""Cancelled requests whose answer may still come; the oldest is forgotten."""

Notes: TypeAlias = dict[Any, Any]
"""What is remembered of a request until it is answered: the `notes` of its context."""

FROM_CLIENT: Final = MessageDirection.CLIENT_TO_SERVER


class Conversation:
    """What the proxy knows of one client and one server; each message costs a look or two."""

    def __init__(self, session: Session, name: str = "") -> None:
        self.session = session
        self._name = name
        """Tells apart the conversations of clients that have no session, and ids in common."""
        self._open: dict[MessageDirection, dict[MessageId, Notes]] = {
            MessageDirection.CLIENT_TO_SERVER: {},
            MessageDirection.SERVER_TO_CLIENT: {},
        }
        self._cancelled: dict[tuple[MessageDirection, MessageId], Notes] = {}
        self._settled: asyncio.Event | None = None
        """Made when someone waits for it, which for most conversations nobody does."""

    def enter(self, envelope: MessageEnvelope[Any]) -> MessageEnvelope[Any]:
        """A message on its way in: it gets its session, and a request is open from now on.

        An answer gets the notes of the request that it answers.
        """
        message, context = envelope.message, envelope.context
        session, notes = self._session_of(envelope), context.notes
        kind = type(message)
        if kind is Request:
            session = self._correlated(session, context.direction, message.id)
            notes = self._opened(context.direction, message.id)
        elif kind is Response and message.id is not None:
            asked = context.direction.reverse()
            session = self._correlated(session, asked, message.id)
            notes = self._notes_of(asked, message.id)
        if session is context.session:
            return envelope
        return MessageEnvelope(
            message,
            MessageContext(
                context.timing,
                context.direction,
                session,
                context.transport,
                context.extensions,
                context.caller,
                notes,
            ),
        )

    def _session_of(self, envelope: MessageEnvelope[Any]) -> SessionContext:
        session = self.session
        if session.context.state is SessionState.ACTIVE:
            return session.context
        if session.context.session_id is not None and envelope.context.session.session_id is None:
            # The message that asks for a session is not yet part of it.
            before = envelope.context.session
            session.follow(envelope)
            return before if session.context.state is SessionState.INITIALIZING else session.context
        return session.follow(envelope)

    def _opened(self, direction: MessageDirection, message_id: MessageId) -> Notes:
        table = self._open[direction]
        if len(table) >= MOST_OPEN:
            del table[next(iter(table))]
        notes: Notes = {}
        table[message_id] = notes
        return notes

    def _notes_of(self, direction: MessageDirection, message_id: MessageId) -> Notes:
        notes = self._open[direction].get(message_id)
        if notes is None:
            notes = self._cancelled.get((direction, message_id))
        return {} if notes is None else notes

    def awaits(self, direction: MessageDirection, response: Response) -> bool:
        """Whether someone waits for a response that goes this way."""
        return response.id in self._open[direction.reverse()]

    def answered(self, direction: MessageDirection, response: Response) -> None:
        """A response has left: its request is open no longer."""
        if response.id is not None:
            self.close(direction.reverse(), response.id)

    def cancel(self, direction: MessageDirection, message_id: MessageId) -> None:
        """Nobody waits for the answer to a request any more; it may come nevertheless."""
        notes = self._open[direction].get(message_id)
        if notes is not None:
            self.close(direction, message_id)
            if len(self._cancelled) >= MOST_CANCELLED:
                del self._cancelled[next(iter(self._cancelled))]
            self._cancelled[direction, message_id] = notes

    def close(self, direction: MessageDirection, message_id: MessageId) -> None:
        """A request is answered, or was never passed on."""
        self._open[direction].pop(message_id, None)
        self._cancelled.pop((direction, message_id), None)
        if self._settled is not None and not self._open[FROM_CLIENT]:
            self._settled.set()

    def open_requests(self, direction: MessageDirection) -> list[MessageId]:
        """The ids of the requests of one side that have no answer yet."""
        return list(self._open[direction])

    async def settled(self) -> None:
        """Wait until the client has an answer to everything it asked."""
        while self._open[FROM_CLIENT]:
            self._settled = asyncio.Event()
            await self._settled.wait()

    def _correlated(
        self, session: SessionContext, asked: MessageDirection, message_id: MessageId
    ) -> SessionContext:
        """The session with what ties a request and its response: who asked, and the id as JSON."""
        side = "client" if asked is FROM_CLIENT else "server"
        shown = message_id if isinstance(message_id, int) else f'"{message_id}"'
        return SessionContext(
            session.session_id,
            session.protocol_version,
            f"{self._name}{side}:{shown}",
            session.state,
        )
