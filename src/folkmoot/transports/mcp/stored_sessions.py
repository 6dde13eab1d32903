"""Handshake sessions that go on after the hub was restarted.

A process knows its own sessions. One that an earlier process opened is adopted when its id comes
with the credential it belongs to: the id says what the session was, and a row says what changed.
Whatever ends in a process stays ended: an id of the same process is never adopted, and for those of
others a row says that they were closed. On many nodes only sessions whose node is gone are adopted.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import SESSIONS, subject
from folkmoot.core.policy import NOBODY
from folkmoot.transports.limits import (
    MAX_SESSION_ROWS,
    MAX_SESSION_ROWS_REMOVED,
    MAX_SESSION_SECONDS,
    MAX_SESSION_STATE_BYTES,
)
from folkmoot.transports.mcp.session_ids import SessionIds, full_hash
from folkmoot.transports.mcp.sessions import SESSION_ENDED, McpSession, Sessions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.accounts import Accounts, Credential
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Clock, Sealer, Store, Tx
    from folkmoot.transports.mcp.homes import Homes
    from folkmoot.transports.mcp.session_ids import Claims

logger = logging.getLogger("folkmoot.mcp")

STATE_PURPOSE: Final = "mcp_session_state"
CLOSED: Final = ""


class SessionRecord(Struct, omit_defaults=True):
    """What is kept of a session beside its id."""

    version: str
    capabilities: dict[str, Any]
    log_level: str = "info"
    uris: tuple[str, ...] = ()
    """What it subscribed to."""
    credential_id: str = ""
    token_id: str = ""
    """What it was signed in by, and the token that was made in it by registering or recovering."""


class SessionRows(Entity):
    store: Store
    sealer: Sealer

    async def read(self, session_id: str) -> tuple[SessionRecord | None, bool]:
        """What is kept of a session, and whether it was closed."""
        key = full_hash(session_id)

        async def query(tx: Tx) -> str | None:
            row = await tx.fetch_one("SELECT state FROM mcp_sessions WHERE id_hash = ?", (key,))
            return None if row is None else str(row[0])

        sealed = await self.store.read(query)
        if sealed is None or sealed == CLOSED:
            return None, sealed is not None
        try:
            opened = self.sealer.open(STATE_PURPOSE, key, sealed)
            return msgspec.json.decode(opened, type=SessionRecord), False
        except (e.SealBroken, msgspec.DecodeError):
            # Whoever changed it must not decide whose the session is.
            return None, True

    async def put(
        self, session_id: str, user_id: str, state: SessionRecord, now: int, until: int
    ) -> None:
        """Keep the state of a session that was not closed."""
        encoded = msgspec.json.encode(state)
        if len(encoded) > MAX_SESSION_STATE_BYTES:
            encoded = msgspec.json.encode(msgspec.structs.replace(state, uris=()))
        key = full_hash(session_id)
        await self._write(key, user_id, self.sealer.seal(STATE_PURPOSE, key, encoded), now, until)

    async def close(self, session_id: str, user_id: str, now: int, until: int) -> None:
        """Have a session stay closed, at every node."""
        await self._write(full_hash(session_id), user_id, CLOSED, now, until)

    async def _write(self, key: str, user_id: str, state: str, now: int, until: int) -> None:
        async def unit(tx: Tx) -> None:
            if state == CLOSED:
                tx.publish(subject(SESSIONS, key), {"process": ""})
            await tx.execute(
                "INSERT INTO mcp_sessions (id_hash, user_id, state, until) "
                "VALUES (?, (SELECT id FROM users WHERE id = ?), ?, ?) "
                "ON CONFLICT (id_hash) DO UPDATE SET user_id = excluded.user_id, "
                "state = excluded.state WHERE mcp_sessions.state <> ''",
                (key, user_id, state, until),
            )
            await tx.execute(
                "DELETE FROM mcp_sessions WHERE id_hash IN (SELECT id_hash FROM mcp_sessions "
                "WHERE until <= ? ORDER BY until LIMIT ?)",
                (now, MAX_SESSION_ROWS_REMOVED),
            )
            await tx.execute(
                "DELETE FROM mcp_sessions WHERE id_hash IN (SELECT id_hash FROM mcp_sessions "
                "WHERE user_id IS NOT DISTINCT FROM (SELECT id FROM users WHERE id = ?) "
                "ORDER BY until DESC LIMIT ? OFFSET ?)",
                (user_id, MAX_SESSION_ROWS_REMOVED, MAX_SESSION_ROWS),
            )

        await self.store.write(unit)


class StoredSessions(Entity, kw_only=True):
    """Opens sessions, keeps what their ids do not say, and adopts those of earlier processes."""

    store: Store
    sealer: Sealer
    epoch: str
    clock: Clock
    accounts: Accounts
    sessions: Sessions
    begun: Callable[[McpSession, Principal], None]
    subscribed: Callable[[McpSession], tuple[str, ...]]
    homes: Homes | None = None
    _adopting: dict[str, asyncio.Event] = {}
    _keeping: dict[str, asyncio.Task[None]] = {}
    """What is being stored last of a session."""
    _closing: set[str] = set()
    """The ids of sessions that are gone, while that is written down."""

    def __post_init__(self) -> None:
        self._ids = SessionIds(
            self.sealer, self.epoch, b"" if self.homes is None else self.homes.process
        )
        self._rows = SessionRows(self.store, self.sealer)
        self._authentication = self.accounts.authentication

    @property
    def boot_id(self) -> str:
        """The id of this process's start."""
        return self._ids.boot_id.hex()

    async def open(
        self,
        shown_hash: str,
        credential_id: str,
        principal: Principal,
        address: str,
        version: str,
        capabilities: dict[str, Any],
    ) -> McpSession:
        """Open a session, whose id holds its sealed state."""
        now = self.clock.now()
        session_id, complete = self._ids.make(now, shown_hash, version, capabilities)
        state = SessionRecord(version, capabilities)
        session = self._begin(session_id, shown_hash, credential_id, principal, address, state)
        if not complete:
            await self.keep(session)
        return session

    async def keep(self, session: McpSession) -> None:
        """Store what has changed in a session since its id was made.

        Nothing is stored of strangers' sessions: anyone can open them, as often as they like. Each
        state is stored after the one before it, also if whoever wanted that has left.
        """
        said = self._ids.open(session.id) if has_account(session) else None
        if said is None or session.ended:
            return
        session.stored = True
        before = self._keeping.get(session.id)
        task = asyncio.create_task(self._keep(session, said.born + MAX_SESSION_SECONDS, before))
        self._keeping[session.id] = task
        task.add_done_callback(partial(self._kept, session.id))
        await asyncio.shield(task)

    def _kept(self, session_id: str, task: asyncio.Task[None]) -> None:
        if self._keeping[session_id] is task:
            del self._keeping[session_id]

    async def _keep(
        self, session: McpSession, until: int, before: asyncio.Task[None] | None
    ) -> None:
        if before is not None:
            await asyncio.wait((before,))
        state = SessionRecord(
            version=session.version,
            capabilities=session.capabilities,
            log_level=session.log_level,
            uris=self.subscribed(session),
            credential_id=session.credential_id if session.token_id else "",
            token_id=session.token_id,
        )
        try:
            await self._rows.put(session.id, session.owner, state, int(self.clock.now()), until)
        except e.StoreError as error:
            # The session itself works; only a restart would end what was not stored.
            logger.warning("a session was not stored", extra={"error": error.code})

    async def bind(self, session: McpSession, token_id: str, owner: str) -> bool:
        """Let a session be an account's for as long as the token is good that was made in it."""
        made = await self._bind(session.id, token_id)
        if made is None:
            return False
        self.sessions.bind(session, made.id, token_id, owner)
        await self.keep(session)
        return True

    async def _bind(self, session_id: str, token_id: str) -> Credential | None:
        said = self._ids.open(session_id)
        if said is None:
            return None
        until = said.born + MAX_SESSION_SECONDS
        try:
            return await self._authentication.bind(token_id, full_hash(session_id), until)
        except e.StoreError as error:
            # The account has its token; only this session is not signed in by it.
            logger.warning("a session was not signed in", extra={"error": error.code})
            return None

    async def close(self, session: McpSession, *, by_client: bool) -> None:
        """End a session so that no restart opens it again.

        Of those that nobody asked to close, only those need a row that could be adopted as what
        they no longer are.
        """
        self._closing.add(session.id)
        try:
            self.sessions.drop(session)
            if self.homes is not None:
                self.homes.ended(session)
            if session.token_id:
                await self._authentication.end(session.owner, session.credential_id)
            needs_row = session.stored or (by_client and has_account(session))
            said = self._ids.open(session.id) if needs_row else None
            if said is not None:
                now, until = int(self.clock.now()), said.born + MAX_SESSION_SECONDS
                await self._rows.close(session.id, session.owner, now, until)
            if self.homes is not None and session.adopted:
                # Last: whoever finds it nowhere adopts it, unless it is known to be closed.
                await self.homes.leave(session)
        except e.StoreError as error:
            if by_client:
                raise
            logger.warning("a closed session was not stored", extra={"error": error.code})
        finally:
            self._closing.discard(session.id)

    async def adopt(
        self,
        session_id: str,
        shown_hash: str,
        shown_id: str,
        make_room: Callable[[str], Awaitable[str]],
        gone: str = "",
    ) -> tuple[McpSession, tuple[str, ...]]:
        """Enter a session of an earlier process, and what it had subscribed to.

        `make_room` is told whose it is, and answers the address that it counts for if nobody's.
        Raises `SessionElsewhere` if another node has it that is not `gone`.
        """
        while (other := self._adopting.get(session_id)) is not None:
            await other.wait()
        if session_id in self.sessions:
            return self.sessions.enter(session_id, shown_hash, shown_id), ()
        if self.homes is not None and not gone:
            self.homes.check_known(session_id)
        said = self._ids.open(session_id)
        if (
            said is None
            or (said.boot_id == self._ids.boot_id and self.homes is None)
            or said.born + MAX_SESSION_SECONDS <= self.clock.now()
            or session_id in self._closing
        ):
            raise e.SessionNotFound(SESSION_ENDED)
        self._adopting[session_id] = done = asyncio.Event()
        try:
            if self.homes is not None:
                await self.homes.check(session_id, said.boot_id, gone)
            return await self._adopt(session_id, said, shown_hash, shown_id, make_room, gone)
        finally:
            del self._adopting[session_id]
            done.set()

    async def _adopt(
        self,
        session_id: str,
        said: Claims,
        shown_hash: str,
        shown_id: str,
        make_room: Callable[[str], Awaitable[str]],
        gone: str,
    ) -> tuple[McpSession, tuple[str, ...]]:
        state, closed = await self._rows.read(session_id)
        if state is None and said.capabilities:
            state = SessionRecord(said.version, msgspec.json.decode(said.capabilities))
        if closed or state is None:
            raise e.SessionNotFound(SESSION_ENDED)
        if shown_hash != said.shown_hash and not (shown_id and shown_id == state.token_id):
            raise e.SessionNotFound(SESSION_ENDED)
        credential_id = state.credential_id or shown_id
        principal = await self.accounts.principal(credential_id) or NOBODY
        if (state.token_id or said.shown_hash) and not principal.account_id:
            raise e.SessionNotFound(SESSION_ENDED)
        address = await make_room(principal.account_id)
        if self.homes is not None:
            await self.homes.take(session_id, said.boot_id, gone)
        session = self._begin(session_id, said.shown_hash, credential_id, principal, address, state)
        session.stored, session.adopted = has_account(session), True
        return self.sessions.enter(session_id, shown_hash, shown_id), state.uris

    async def credential_of(self, session_id: str, shown_hash: str) -> str:
        """The credential of a session that was signed in and is at another node, or not adopted."""
        said = self._ids.open(session_id)
        if said is None or said.shown_hash != shown_hash or said.boot_id == self._ids.boot_id:
            return ""
        state, _ = await self._rows.read(session_id)
        return "" if state is None else state.credential_id

    def _begin(
        self,
        session_id: str,
        shown_hash: str,
        credential_id: str,
        principal: Principal,
        address: str,
        state: SessionRecord,
    ) -> McpSession:
        user_id = principal.account_id
        owner = {"user_id": user_id} if user_id else {"address": address}
        session = self.sessions.open(session_id, shown_hash, **owner)
        session.version, session.capabilities = state.version, state.capabilities
        session.log_level, session.token_id = state.log_level, state.token_id
        session.credential_id = credential_id
        session.owner = user_id
        self.begun(session, principal)
        if self.homes is not None:
            self.homes.opened(session)
        return session


def has_account(session: McpSession) -> bool:
    """Whether a session belongs to an account: by the token it was opened with, or made in it."""
    return bool(session.owner or session.token_id)
