"""One conversation: its session, which travels with each message, and the requests still open.

Over HTTP there is one for each session, and one for each exchange that belongs to none:
`HttpConversations` knows them all.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import field

from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import MessageId, Request, Response
from folkmoot.core.session import (
    ANONYMOUS,
    Era,
    ProtocolVersion,
    SessionContext,
    SessionId,
    SessionState,
)
from folkmoot.core.timing import TimingContext
from folkmoot.mcp.wire import ASSUMED_VERSION, SESSION_HEADER, VERSION_HEADER
from folkmoot.proxy.sessions import ProxySession, SessionManager

if TYPE_CHECKING:
    from collections.abc import Mapping

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Clock
    from folkmoot.core.transport import Headers, TransportContext

MOST_OPEN: Final = 4096
"""Requests of one side that are remembered; the oldest is forgotten, and then matches nothing."""
MOST_CANCELLED: Final = 256
"""Cancelled requests whose answer may still come; the oldest is forgotten."""

Notes: TypeAlias = dict[Any, Any]
"""What is remembered of a request until it is answered: the `notes` of its context."""

FROM_CLIENT: Final = MessageDirection.CLIENT_TO_SERVER


class ProxyConversation(Entity):
    """What the proxy knows of one client and one server; each message costs a look or two."""

    session: ProxySession
    name: str = ""
    """Tells apart the conversations of clients that have no session, and ids in common."""
    _open: dict[MessageDirection, dict[MessageId, Notes]] = field(
        default_factory=lambda: {
            MessageDirection.CLIENT_TO_SERVER: {},
            MessageDirection.SERVER_TO_CLIENT: {},
        }
    )
    _cancelled: dict[tuple[MessageDirection, MessageId], Notes] = {}
    _settled: asyncio.Event | None = None
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
        """Whether a request waits for a response in this direction."""
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
            f"{self.name}{side}:{shown}",
            session.state,
        )


REFUSED: Final = 400
NOT_FOUND: Final = 404


class HttpConversation:
    """One conversation; the messages of an exchange are put into their envelopes by it."""

    def __init__(self, session: ProxySession, clock: Clock, name: str = "") -> None:
        self.conversation = ProxyConversation(session, name)
        self._clock = clock

    @property
    def session(self) -> ProxySession:
        """The session, once known."""
        return self.conversation.session

    def envelope(
        self,
        message: ProtocolMessage,
        direction: MessageDirection,
        transport: TransportContext,
        caller: Principal | None = None,
    ) -> MessageEnvelope[Any]:
        """The envelope of a message that comes in now."""
        clock = self._clock
        timing = TimingContext(clock.monotonic(), clock.now())
        session = self.session.context
        return MessageEnvelope(
            message, MessageContext(timing, direction, session, transport, caller=caller)
        )


@lru_cache(16)
def alone(version: str) -> SessionContext:
    """The session of an exchange that names a version and no session; the stateless era has none
    that would have to be opened.
    """
    spoken = ProtocolVersion(version)
    stateless = spoken.era is Era.STATELESS
    state = SessionState.ACTIVE if stateless else SessionState.UNINITIALIZED
    return SessionContext(None, spoken, None, state)


class HttpConversations(Entity):
    """The conversations of every session; the session manager says which of them go."""

    sessions: SessionManager
    clock: Clock
    _conversations: dict[str, HttpConversation] = {}
    _alone: int = 0

    def __len__(self) -> int:
        return len(self._conversations)

    def of(self, headers: Headers) -> HttpConversation:
        """The conversation a request belongs to; a new one, for now, where there is none yet."""
        version = headers.get(VERSION_HEADER)
        key = headers.get(SESSION_HEADER)
        if key is not None and version is not None and alone(version).era is Era.STATELESS:
            # That era has no sessions, so nobody is to appear as one by naming it.
            key = None
        known = None if key is None else self._conversations.get(key)
        if known is not None:
            self.sessions.use(known.session)
            return known
        return self._new(key, version)

    def heard(
        self,
        conversation: HttpConversation,
        method: str,
        status: int,
        headers: Headers | Mapping[str, str],
    ) -> None:
        """See from the head of an answer whether its session was opened or has ended."""
        named = conversation.session.key
        if named and (status == NOT_FOUND or (method == "DELETE" and status < REFUSED)):
            self._end(named)
        elif status < REFUSED:
            key = headers.get(SESSION_HEADER) or named
            if key and key not in self._conversations:
                self._keep(conversation, key)

    def _new(self, key: str | None, version: str | None) -> HttpConversation:
        now = self.clock.monotonic()
        if key is not None:
            # It was opened before, whatever was said in it then.
            spoken = ProtocolVersion(version or ASSUMED_VERSION)
            opened = SessionContext(SessionId(key), spoken, None, SessionState.ACTIVE)
            return HttpConversation(ProxySession(key, opened, now, now), self.clock)
        self._alone += 1
        context = ANONYMOUS if version is None else alone(version)
        return HttpConversation(ProxySession("", context, now, now), self.clock, f"{self._alone}/")

    def _keep(self, conversation: HttpConversation, key: str) -> None:
        session = self.sessions.open(key, end=lambda: self._forget(key))
        before = conversation.session
        session.greeting = before.greeting
        session.context = SessionContext(
            SessionId(key), before.context.protocol_version, None, before.context.state
        )
        conversation.conversation.session = session
        self._conversations[key] = conversation

    def _forget(self, key: str) -> None:
        self._conversations.pop(key, None)

    def _end(self, key: str) -> None:
        conversation = self._conversations.pop(key, None)
        if conversation is not None:
            self.sessions.close(conversation.session)
