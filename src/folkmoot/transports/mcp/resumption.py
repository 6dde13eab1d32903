"""Handshake sessions that go on after the hub was restarted.

A process knows its own sessions. One that an earlier process opened is adopted when its id comes
with the credential it belongs to: the id says what the session was, and a row says what changed.
Whatever ends in a process stays ended: an id of the same process is never adopted, and for those of
others a row says that they were closed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.core.errors import SessionNotFound, StoreError
from folkmoot.transports.mcp.sealed_ids import SealedIds
from folkmoot.transports.mcp.session_rows import SessionRows, State
from folkmoot.transports.mcp.sessions import SESSION_ENDED, Session, Sessions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.accounts import Account, Accounts
    from folkmoot.accounts.ports import Sealer
    from folkmoot.core.ports import Clock, Store
    from folkmoot.transports.mcp.sealed_ids import Claims

logger = logging.getLogger("folkmoot.mcp")

LONGEST_LIFE: Final = 30 * 24 * 3600
"""Seconds after which a restart ends a session for good."""


class Resumption:
    """Opens sessions, keeps what their ids do not say, and adopts those of earlier processes."""

    def __init__(
        self,
        *,
        store: Store,
        sealer: Sealer,
        epoch: str,
        clock: Clock,
        accounts: Accounts,
        sessions: Sessions,
        begun: Callable[[Session, Account | None], None],
        subscribed: Callable[[Session], tuple[str, ...]],
    ) -> None:
        self._ids = SealedIds(sealer, epoch)
        self._rows = SessionRows(store, sealer)
        self._clock = clock
        self._accounts = accounts
        self._sessions = sessions
        self._begun = begun
        self._subscribed = subscribed
        self._adopting: dict[str, asyncio.Event] = {}
        self._closing: set[str] = set()
        """The ids of sessions that are gone, while that is written down."""

    @property
    def boot_id(self) -> str:
        """Tells this process from those before it."""
        return self._ids.boot_id.hex()

    async def open(
        self,
        credential_id: str,
        account: Account | None,
        address: str,
        version: str,
        capabilities: dict[str, Any],
    ) -> Session:
        """A new session, whose id says what it is."""
        now = self._clock.now()
        session_id, complete = self._ids.make(now, credential_id, version, capabilities)
        state = State(version, capabilities)
        session = self._begin(session_id, credential_id, account, address, state)
        if not complete:
            await self.keep(session)
        return session

    async def keep(self, session: Session) -> None:
        """Store what has changed in a session since its id was made.

        Nothing is stored of strangers' sessions: anyone can open them, as often as they like.
        """
        said = self._ids.open(session.id) if is_somebodys(session) else None
        if said is None or session.ended:
            return
        session.stored = True
        state = State(
            session.version,
            session.capabilities,
            session.log_level,
            session.bound,
            self._subscribed(session),
        )
        now, until = int(self._clock.now()), said.born + LONGEST_LIFE
        try:
            await self._rows.put(session.id, session.owner, state, now, until)
        except StoreError as error:
            # The session itself works; only a restart would end what was not stored.
            logger.warning("a session was not stored", extra={"error": error.code})

    async def close(self, session: Session, *, by_client: bool) -> None:
        """End a session so that no restart opens it again.

        Of those that nobody asked to close, only those need a row that could be adopted as what
        they no longer are.
        """
        self._closing.add(session.id)
        try:
            self._sessions.drop(session)
            needs_row = session.stored or (by_client and is_somebodys(session))
            said = self._ids.open(session.id) if needs_row else None
            if said is not None:
                now, until = int(self._clock.now()), said.born + LONGEST_LIFE
                await self._rows.close(session.id, session.owner, now, until)
        except StoreError as error:
            if by_client:
                raise
            logger.warning("a closed session was not stored", extra={"error": error.code})
        finally:
            self._closing.discard(session.id)

    async def adopt(
        self, session_id: str, mark: str, make_room: Callable[[Account | None], Awaitable[str]]
    ) -> tuple[Session, tuple[str, ...]]:
        """Enter a session of an earlier process, and what it had subscribed to.

        `make_room` answers the address that the session counts for if it is nobody's.
        """
        while (other := self._adopting.get(session_id)) is not None:
            await other.wait()
        if session_id in self._sessions:
            return self._sessions.enter(session_id, mark), ()
        said = self._ids.open(session_id)
        if (
            said is None
            or said.boot_id == self._ids.boot_id
            or said.born + LONGEST_LIFE <= self._clock.now()
            or session_id in self._closing
        ):
            raise SessionNotFound(SESSION_ENDED)
        self._adopting[session_id] = done = asyncio.Event()
        try:
            return await self._adopt(session_id, said, mark, make_room)
        finally:
            del self._adopting[session_id]
            done.set()

    async def _adopt(
        self,
        session_id: str,
        said: Claims,
        mark: str,
        make_room: Callable[[Account | None], Awaitable[str]],
    ) -> tuple[Session, tuple[str, ...]]:
        state, closed = await self._rows.read(session_id)
        if state is None and said.capabilities:
            state = State(said.version, msgspec.json.decode(said.capabilities))
        credential_id = said.credential_id
        if closed or state is None or mark not in {credential_id, state.bound or credential_id}:
            raise SessionNotFound(SESSION_ENDED)
        holder = state.bound or credential_id
        account = await self._accounts.authenticate_hash(holder) if holder else None
        if holder and account is None:
            raise SessionNotFound(SESSION_ENDED)
        address = await make_room(account)
        session = self._begin(session_id, credential_id, account, address, state)
        session.stored = is_somebodys(session)
        return self._sessions.enter(session_id, mark), state.uris

    def _begin(
        self,
        session_id: str,
        credential_id: str,
        account: Account | None,
        address: str,
        state: State,
    ) -> Session:
        owner = {"address": address} if account is None else {"user_id": account.id}
        session = self._sessions.open(session_id, credential_id, **owner)
        session.version, session.capabilities = state.version, state.capabilities
        session.log_level, session.bound = state.log_level, state.bound
        session.owner = owner.get("user_id", "")
        self._begun(session, account)
        return session


def is_somebodys(session: Session) -> bool:
    """Whether a session belongs to an account: by the token it was opened with, or made in it."""
    return bool(session.owner or session.bound)
