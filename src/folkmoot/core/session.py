"""SessionContext: the MCP session a message belongs to, and the state of that session."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

import msgspec

from folkmoot.core import errors as e


class Era(Enum):
    """The two ways MCP is spoken: with a handshake and sessions, or request by request."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"


FIRST_STATELESS: Final = "2026-07-28"
KNOWN_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", FIRST_STATELESS)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class ProtocolVersion(msgspec.Struct, frozen=True, gc=False):
    """An MCP protocol version: the date it was published on."""

    value: str = "2025-11-25"

    @property
    def era(self) -> Era:
        """Stateless from 2026-07-28 on; what is not a date is taken for the handshake era."""
        dated = _DATE.fullmatch(self.value) is not None
        return Era.STATELESS if dated and self.value >= FIRST_STATELESS else Era.HANDSHAKE

    @property
    def is_known(self) -> bool:
        """Whether this version was ever published, as far as this program knows."""
        return self.value in KNOWN_VERSIONS

    def __str__(self) -> str:
        return self.value


class SessionId(msgspec.Struct, frozen=True, gc=False):
    """The identifier a server gave a session."""

    value: str

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        """Only the beginning: the whole may open the session."""
        return f"SessionId({self.value[:4]}…)"


class SessionState(Enum):
    """How far a session has come."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    CLOSING = "closing"
    CLOSED = "closed"

    def may_become(self, state: SessionState) -> bool:
        """Whether a session may go from this state to another."""
        return state in TRANSITIONS[self]


TRANSITIONS: Final[dict[SessionState, frozenset[SessionState]]] = {
    SessionState.UNINITIALIZED: frozenset(
        (SessionState.INITIALIZING, SessionState.CLOSING, SessionState.CLOSED)
    ),
    SessionState.INITIALIZING: frozenset(
        (SessionState.ACTIVE, SessionState.CLOSING, SessionState.CLOSED)
    ),
    SessionState.ACTIVE: frozenset((SessionState.CLOSING, SessionState.CLOSED)),
    SessionState.CLOSING: frozenset((SessionState.CLOSED,)),
    SessionState.CLOSED: frozenset(),
}
"""Where each state may lead; the reference page shows the same table."""


class SessionContext(msgspec.Struct, frozen=True, gc=False):
    """The session of a message: its id, protocol version, correlation and state."""

    session_id: SessionId | None = None
    protocol_version: ProtocolVersion = ProtocolVersion()
    correlation_id: str | None = None
    state: SessionState = SessionState.UNINITIALIZED

    @classmethod
    def anonymous(cls) -> SessionContext:
        """The session of a message sent before initialization."""
        return ANONYMOUS

    @classmethod
    def with_id(cls, session_id: SessionId) -> SessionContext:
        """An active session that has its id."""
        return cls(session_id=session_id, state=SessionState.ACTIVE)

    @property
    def era(self) -> Era:
        """The era its protocol version belongs to."""
        return self.protocol_version.era

    def with_version(self, version: ProtocolVersion) -> SessionContext:
        """The same session, speaking another protocol version."""
        return msgspec.structs.replace(self, protocol_version=version)

    def with_correlation(self, correlation_id: str) -> SessionContext:
        """The same session, with what ties a response to its request."""
        return msgspec.structs.replace(self, correlation_id=correlation_id)

    def with_state(self, state: SessionState) -> SessionContext:
        """The same session, one step on; a step the table does not know is refused."""
        if not self.state.may_become(state):
            raise e.SessionTransition(
                f"A session that is {self.state.value} cannot be {state.value}."
            )
        return msgspec.structs.replace(self, state=state)


ANONYMOUS: Final = SessionContext()
