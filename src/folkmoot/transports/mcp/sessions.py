"""Whose each session of the handshake era is.

A session belongs to the token it was opened with. One that was opened without a token is nobody's,
until `msg/register` or `msg/recover` succeeds in it: then it is that account's for as long as the
token that was made there is. A session that is not in this table opens nothing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from folkmoot.core.errors import SessionNotFound, TooManySessions

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock


class Session(Struct, eq=False):
    """One session: the mark of the token it was opened with, and of the one it was bound to."""

    id: str
    mark: str
    used_at: float
    bound: str = ""
    address: str = ""
    """Where it was opened from, if nobody's; there are not too many such from one place."""
    version: str = ""
    """The version of MCP that was agreed on; empty until a tool was called or listed."""
    apps: bool | None = None
    """Whether its client shows apps, where that is known."""
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
        most_nobodys: int = 1_000,
        on_end: Callable[[Session], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._on_end = on_end
        self._idle = idle_seconds
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._most_nobodys = most_nobodys
        self._nobodys: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._sessions)

    def check_room(self, address: str) -> None:
        """Refuse one more session without an account from an address that has many."""
        if self._nobodys[address] >= self._most_nobodys:
            raise TooManySessions(
                f"{self._most_nobodys} sessions without an account are open from your address; "
                "close some, or connect with a token."
            )

    def open(self, session_id: str, mark: str, address: str = "") -> Session:
        """Remember a session that the SDK has just opened for the holder of this token.

        `address` is given where the token is nobody's, or there is none.
        """
        made = Session(session_id, mark, self._clock.monotonic(), address=address)
        self._sessions[session_id] = made
        if address:
            self._nobodys[address] += 1
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
        if self._sessions.pop(session.id, None) is not None and session.address:
            self._nobodys[session.address] -= 1
            if not self._nobodys[session.address]:
                del self._nobodys[session.address]
        self._on_end(session)

    def next_idle(self) -> Session | None:
        """A session that nobody has used for too long; one with a request in flight is in use.

        The longest unused comes first, so the cost is that of what is found.
        """
        now = self._clock.monotonic()
        while self._sessions:
            session = next(iter(self._sessions.values()))
            if session.used_at > now - self._idle:
                return None
            if not session.in_flight:
                return session
            session.used_at = now
            self._sessions.move_to_end(session.id)
        return None
