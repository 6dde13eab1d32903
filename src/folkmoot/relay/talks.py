"""Who talks to the server over HTTP: a conversation for each session, and one for each exchange
that belongs to none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.session import Era, ProtocolVersion, SessionContext, SessionId
from folkmoot.core.timing import TimingContext
from folkmoot.mcp.wire import SESSION_HEADER, VERSION_HEADER
from folkmoot.proxy.sessions import Session, SessionManager
from folkmoot.relay.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Clock
    from folkmoot.core.transport import Headers, TransportContext

ASSUMED_VERSION: Final = "2025-03-26"
"""What a client speaks in a session that does not say, as the specification has it."""
REFUSED: Final = 400
NOT_FOUND: Final = 404


class Talk:
    """One conversation; the messages of an exchange are put into their envelopes by it."""

    def __init__(self, session: Session, clock: Clock, name: str = "") -> None:
        self.conversation = Conversation(session, name)
        self._clock = clock

    @property
    def session(self) -> Session:
        """The session, for as long as it is known."""
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


class Talks:
    """The conversations of every session; the session manager says which of them go."""

    def __init__(self, sessions: SessionManager, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock
        self._talks: dict[str, Talk] = {}
        self._alone = 0

    def __len__(self) -> int:
        return len(self._talks)

    def of(self, headers: Headers) -> Talk:
        """The conversation a request belongs to; a new one, for now, where there is none yet."""
        version = headers.get(VERSION_HEADER)
        key = headers.get(SESSION_HEADER)
        if version is not None and ProtocolVersion(version).era is Era.STATELESS:
            # That era has no sessions, so nobody is to appear as one by naming it.
            key = None
        known = None if key is None else self._talks.get(key)
        if known is not None:
            self._sessions.use(known.session)
            return known
        return self._new(key, version)

    def heard(self, talk: Talk, method: str, status: int, headers: Mapping[str, str]) -> None:
        """See from the head of an answer whether its session was opened or has ended."""
        named = talk.session.key
        if named and (status == NOT_FOUND or (method == "DELETE" and status < REFUSED)):
            self._end(named)
        elif status < REFUSED:
            key = headers.get(SESSION_HEADER) or named
            if key and key not in self._talks:
                self._keep(talk, key)

    def _new(self, key: str | None, version: str | None) -> Talk:
        now = self._clock.monotonic()
        context = SessionContext(SessionId(key) if key is not None else None)
        if version is not None or key is not None:
            context = context.with_version(ProtocolVersion(version or ASSUMED_VERSION))
        session = Session(key or "", context, now, now)
        if key is not None:
            # It was opened before, whatever was said in it then.
            session.activate()
            return Talk(session, self._clock)
        self._alone += 1
        return Talk(session, self._clock, f"{self._alone}/")

    def _keep(self, talk: Talk, key: str) -> None:
        session = self._sessions.open(key, end=lambda: self._forget(key))
        before = talk.session
        session.greeting = before.greeting
        session.context = SessionContext(
            SessionId(key), before.context.protocol_version, None, before.context.state
        )
        talk.conversation.session = session
        self._talks[key] = talk

    def _forget(self, key: str) -> None:
        self._talks.pop(key, None)

    def _end(self, key: str) -> None:
        talk = self._talks.pop(key, None)
        if talk is not None:
            self._sessions.close(talk.session)
