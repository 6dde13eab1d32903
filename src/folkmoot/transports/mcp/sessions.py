"""Whose each session of the handshake era is.

A session belongs to the token it was opened with. One that was opened without a token is nobody's,
until `msg/register` or `msg/recover` succeeds in it: then it is that account's for as long as the
token that was made there is. A session that is not in this table opens nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from folkmoot.core.errors import SessionNotFound

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

MARGIN_SECONDS = 60.0
"""How much longer than the SDK we remember an idle session."""


class Session(Struct, eq=False):
    """One session: the mark of the token it was opened with, and of the one it was bound to."""

    id: str
    mark: str
    used_at: float
    bound: str = ""
    in_flight: int = 0
    ended: bool = False

    @property
    def holder(self) -> str:
        """The mark of the token whose account this session is; empty when it is nobody's."""
        return self.mark or self.bound

    def admits(self, mark: str) -> bool:
        """Whether a request that carries this token, or none, may use the session."""
        return mark == self.mark or (not self.mark and mark == self.bound)


class Sessions:
    """The sessions that are open, the one that was used last at the end."""

    def __init__(
        self,
        clock: Clock,
        *,
        idle_seconds: float,
        on_end: Callable[[Session], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._on_end = on_end
        self._idle = idle_seconds + MARGIN_SECONDS
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, session_id: str, mark: str) -> Session:
        """Remember a session that the SDK has just opened for the holder of this token."""
        self._sweep()
        made = Session(session_id, mark, self._clock.monotonic())
        self._sessions[session_id] = made
        return made

    def enter(self, session_id: str, mark: str) -> Session:
        """The session, for a request that carries this token; to others it does not exist."""
        session = self._sessions.get(session_id)
        if session is None or not session.admits(mark):
            raise SessionNotFound("Session not found")
        session.in_flight += 1
        return session

    def leave(self, session: Session) -> None:
        """A request of the session has ended."""
        session.in_flight -= 1
        session.used_at = self._clock.monotonic()
        if session.id in self._sessions:
            self._sessions.move_to_end(session.id)

    def drop(self, session: Session) -> None:
        """Forget a session that has ended."""
        session.ended = True
        self._sessions.pop(session.id, None)
        self._on_end(session)

    def _sweep(self) -> None:
        """Forget those the SDK has closed because they were idle."""
        now = self._clock.monotonic()
        while self._sessions:
            session = next(iter(self._sessions.values()))
            if session.used_at > now - self._idle:
                return
            if session.in_flight:
                session.used_at = now
                self._sessions.move_to_end(session.id)
            else:
                self.drop(session)
