"""What is stored of handshake sessions: only what their ids do not say, and which were closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core.errors import SealBroken
from folkmoot.transports.mcp.sealed_ids import full_hash

if TYPE_CHECKING:
    from folkmoot.accounts.ports import Sealer
    from folkmoot.core.ports import Store, Tx

PURPOSE: Final = "mcp_session_state"
MOST_BYTES: Final = 8_192
"""Of the state of one session; one that subscribes to more has to do it again after a restart."""
MOST_ROWS: Final = 1_000
"""Of one account, and of all sessions that are nobody's; the oldest go first."""
REMOVED_AT_ONCE: Final = 16
"""More than one write adds, so that none pile up."""
CLOSED: Final = ""


class State(Struct, omit_defaults=True):
    """What is kept of a session beside its id."""

    version: str
    capabilities: dict[str, Any]
    log_level: str = "info"
    bound: str = ""
    """In rows of earlier versions: the hash of the token that was made in it."""
    uris: tuple[str, ...] = ()
    """What it subscribed to."""
    credential_id: str = ""
    token_id: str = ""
    """What it was signed in by, and the token that was made in it by registering or recovering."""


class SessionRows:
    """The rows of all sessions."""

    def __init__(self, store: Store, sealer: Sealer) -> None:
        self._store = store
        self._sealer = sealer

    async def read(self, session_id: str) -> tuple[State | None, bool]:
        """What is kept of a session, and whether it was closed."""
        key = full_hash(session_id)

        async def query(tx: Tx) -> str | None:
            row = await tx.fetch_one("SELECT state FROM mcp_sessions WHERE id_hash = ?", (key,))
            return None if row is None else str(row[0])

        sealed = await self._store.read(query)
        if sealed is None or sealed == CLOSED:
            return None, sealed is not None
        try:
            opened = self._sealer.open(PURPOSE, key, sealed)
            return msgspec.json.decode(opened, type=State), False
        except (SealBroken, msgspec.DecodeError):
            # Whoever changed it must not decide whose the session is.
            return None, True

    async def put(self, session_id: str, user_id: str, state: State, now: int, until: int) -> None:
        """Keep the state of a session that was not closed."""
        encoded = msgspec.json.encode(state)
        if len(encoded) > MOST_BYTES:
            encoded = msgspec.json.encode(msgspec.structs.replace(state, uris=()))
        key = full_hash(session_id)
        await self._write(key, user_id, self._sealer.seal(PURPOSE, key, encoded), now, until)

    async def close(self, session_id: str, user_id: str, now: int, until: int) -> None:
        """Have a session stay closed."""
        await self._write(full_hash(session_id), user_id, CLOSED, now, until)

    async def _write(self, key: str, user_id: str, state: str, now: int, until: int) -> None:
        async def unit(tx: Tx) -> None:
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
                (now, REMOVED_AT_ONCE),
            )
            await tx.execute(
                "DELETE FROM mcp_sessions WHERE id_hash IN (SELECT id_hash FROM mcp_sessions "
                "WHERE user_id IS NOT DISTINCT FROM (SELECT id FROM users WHERE id = ?) "
                "ORDER BY until DESC LIMIT ? OFFSET ?)",
                (user_id, REMOVED_AT_ONCE, MOST_ROWS),
            )

        await self._store.write(unit)
