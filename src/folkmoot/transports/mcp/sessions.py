"""The sessions of the handshake era and their accounts.

A session belongs to the token it was opened with; that of an app belongs to the app's grant, and
goes on with its next access token. One that was opened without a token, or with one that is not
valid, is nobody's until `msg/register` or `msg/recover` succeeds in it: then it is that account's
for as long as the token that was made there is. A session that is not in this table opens
nothing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId, SessionState
from folkmoot.mcp.server.sessions import HandshakeSession
from folkmoot.transports.limits import (
    MIN_SESSIONS,
    SESSION_BYTES,
    SESSION_RETRY_SECONDS,
    SESSION_STRANGERS_SHARE,
)
from folkmoot.transports.mcp.session_ids import short_hash

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock


SESSION_ENDED = (
    "Session not found. The hub was restarted, or the session was closed or not used for too long. "
    "Connect again: most clients do it by themselves, others must be restarted. No mail is lost."
)


class McpSession(HandshakeSession, eq=False):
    id: str
    shown_hash: str
    """The hash of what was shown when it was opened, valid or not; for an app that of its grant;
    empty for nothing.
    """
    used_at: float
    credential_id: str = ""
    """What its requests are authenticated by; empty when it is nobody's."""
    token_id: str = ""
    """The token that was made in it by registering or recovering; `credential_id` ends with it."""
    address: str = ""
    """Where it was opened from, if nobody's; there are not too many such from one place."""
    user_id: str = ""
    """Whose account it was opened for; it has not too many either."""
    in_flight: int = 0
    calls: int = 0
    """Its calls that backends have not answered."""
    adopted: bool = False
    """Whether another process opened it."""
    stored: bool = False
    """Whether it could be adopted in another process, so that its end has to be stored."""

    _context: SessionContext | None = None

    @property
    def context(self) -> SessionContext:
        """The session in envelopes, without its id, which is a secret."""
        known = self._context
        if known is None or known.protocol_version.value != self.version:
            shown, version = SessionId(short_hash(self.id)), ProtocolVersion(self.version)
            known = SessionContext(shown, version, state=SessionState.ACTIVE)
            self._context = known
        return known

    def admits(self, shown_hash: str, shown_id: str = "") -> bool:
        """Whether a request that shows this, or nothing, may use the session.

        `shown_id` is the credential that it showed, if that is one.
        """
        return shown_hash == self.shown_hash or (bool(shown_id) and shown_id == self.token_id)


class Sessions(Entity):
    """The sessions that are open, the one that was used last at the end."""

    clock: Clock
    idle_seconds: float
    most: int = 10_000
    max_anonymous: int = 1_000
    most_bytes: int = 10_000 * SESSION_BYTES
    most_of_one: int = 0
    on_end: Callable[[McpSession], None] = lambda _: None
    _sessions: OrderedDict[str, McpSession] = field(default_factory=OrderedDict)
    _anonymous: Counter[str] = field(default_factory=Counter)
    _strangers: OrderedDict[str, McpSession] = field(default_factory=OrderedDict)
    _of_user: Counter[str] = field(default_factory=Counter)
    changed: Callable[[str, int], None] | None = None
    """Told the key of every count that changes, where other nodes count too, and by how much.
    """

    def __post_init__(self) -> None:
        self._most_strangers = max(1, self.most_bytes // SESSION_BYTES // SESSION_STRANGERS_SHARE)
        self._most_in_memory = max(2, self.most_bytes // SESSION_BYTES)
        # A tenth of all: nobody's sessions keep the others from having any.
        tenth = max(MIN_SESSIONS, self.most // 10)
        self.most_of_one = min(self.most_of_one or tenth, tenth)

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._sessions

    def key_of(self, account_id: str, address: str) -> str:
        """What sessions of an account, or else of an address, are counted by over all nodes."""
        return f"account {account_id}" if account_id else f"address {address}"

    def keys(self) -> list[str]:
        """The keys of all counts."""
        users = [self.key_of(user_id, "") for user_id in self._of_user]
        return [*users, *(self.key_of("", address) for address in self._anonymous)]

    def count(self, key: str) -> int:
        """How many sessions of a key are open here."""
        kind, _, who = key.partition(" ")
        return (self._of_user if kind == "account" else self._anonymous)[who]

    def check_room(self, address: str, elsewhere: int = 0) -> None:
        """Refuse one more session without an account from an address that has many."""
        if self._anonymous[address] + elsewhere >= self.max_anonymous:
            raise e.TooManySessions(
                f"{self.max_anonymous} sessions without an account are open from your address; "
                "close some, or connect with a token.",
                setting="mcp.max_anonymous_sessions",
            )

    def to_make_room(self, *, stranger: bool, elsewhere: int = 0) -> McpSession | None:
        """The session without an account that must end before another is opened, if one must.

        It is one of the address that has most of them, and of these the one unused for longest.
        """
        if len(self._sessions) + elsewhere >= self.most:
            raise e.HubFull(
                "The hub has as many sessions open as it may; try again in a moment.",
                setting="mcp.max_sessions",
                retry_after=SESSION_RETRY_SECONDS,
            )
        full = len(self._sessions) >= self._most_in_memory
        if not full and not (stranger and len(self._strangers) >= self._most_strangers):
            return None
        idle = [session for session in self._strangers.values() if not session.in_flight]
        if not idle:
            raise e.HubFull(
                "The hub has as many sessions open as it can; try again in a moment.",
                setting="mcp.max_session_bytes",
                retry_after=SESSION_RETRY_SECONDS,
            )
        return max(idle, key=lambda session: self._anonymous[session.address])

    def is_over(self, user_id: str, elsewhere: int = 0) -> bool:
        """Whether a user has as many sessions as they may, with those at other nodes."""
        return self._of_user[user_id] + elsewhere >= self.most_of_one

    def longest_unused(self, user_id: str) -> McpSession | None:
        """The session that a user has not used for longest; clients often leave theirs behind."""
        for session in self._sessions.values():
            if session.user_id == user_id and not session.in_flight:
                return session
        return None

    def in_excess(self, user_id: str) -> McpSession | None:
        """The session to end before this user may open another, if any."""
        if not self.is_over(user_id):
            return None
        session = self.longest_unused(user_id)
        if session is None:
            raise self.too_many()
        return session

    def too_many(self) -> e.TooManySessions:
        """What a user is told who uses as many sessions as they may have."""
        return e.TooManySessions(
            f"You have {self.most_of_one} sessions in use; close some.",
            setting="quotas.sessions_per_account",
        )

    def open(
        self, session_id: str, shown_hash: str, *, address: str = "", user_id: str = ""
    ) -> McpSession:
        """Add a session that was just opened with this token.

        It counts for the user whose token it is, or for an address where it is nobody's.
        """
        now = self.clock.monotonic()
        made = McpSession(session_id, shown_hash, now, address=address, user_id=user_id)
        self._sessions[session_id] = made
        if not user_id:
            self._strangers[session_id] = made
        self._count(made, 1)
        return made

    def bind(self, session: McpSession, credential_id: str, token_id: str, owner: str) -> None:
        """Give an anonymous session its account."""
        session.credential_id, session.token_id, session.owner = credential_id, token_id, owner
        if self._strangers.pop(session.id, None) is not None:
            self._count(session, -1)
            session.address, session.user_id = "", owner
            self._count(session, 1)

    def credential_of(self, session_id: str, shown_hash: str) -> str:
        """The credential of a session that was signed in, for a request that it admits."""
        session = self._sessions.get(session_id)
        if session is None or not session.token_id or not session.admits(shown_hash):
            return ""
        return session.credential_id

    def enter(self, session_id: str, shown_hash: str, shown_id: str = "") -> McpSession:
        """The session for a request with this token; to others it does not exist."""
        session = self._sessions.get(session_id)
        if session is None or not session.admits(shown_hash, shown_id):
            raise e.SessionNotFound(SESSION_ENDED)
        session.in_flight += 1
        return session

    def leave(self, session: McpSession) -> None:
        """A request of the session has ended."""
        session.in_flight -= 1
        session.used_at = self.clock.monotonic()
        if session.id in self._sessions:
            self._sessions.move_to_end(session.id)
        if session.id in self._strangers:
            self._strangers.move_to_end(session.id)

    def drop(self, session: McpSession) -> None:
        """End a session and forget it."""
        session.end()
        self.forget(session)

    def forget(self, session: McpSession) -> None:
        """Forget a session that is here no more; its calls that are running go on."""
        self._strangers.pop(session.id, None)
        if self._sessions.pop(session.id, None) is not None:
            self._count(session, -1)
        self.on_end(session)

    def _count(self, session: McpSession, change: int) -> None:
        for counts, key in ((self._anonymous, session.address), (self._of_user, session.user_id)):
            if key:
                counts[key] += change
                if not counts[key]:
                    del counts[key]
        if self.changed is not None:
            self.changed(self.key_of(session.user_id, session.address), change)

    def next_idle(self) -> McpSession | None:
        """A session that nobody has used for too long; one with a request in flight is in use.

        The longest unused comes first, so the cost is that of what is found.
        """
        now = self.clock.monotonic()
        while self._sessions:
            session = next(iter(self._sessions.values()))
            if session.used_at > now - self.idle_seconds:
                return None
            if not session.in_flight:
                return session
            session.used_at = now
            self._sessions.move_to_end(session.id)
        return None
