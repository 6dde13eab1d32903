"""The ids of handshake sessions, and what is stored of sessions: only what their ids do not say.

An id is sealed, so that a hub that was restarted can open it again. It is a secret: where a session
has to be named, in logs, tapes and envelopes, `short_hash` is shown instead.
"""

from __future__ import annotations

import re
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core.errors import SealBroken
from folkmoot.core.events import SESSIONS, subject
from folkmoot.mcp.wire import SESSION_HEADER
from folkmoot.transports.limits import (
    MAX_SESSION_ID,
    MAX_SESSION_ROWS,
    MAX_SESSION_ROWS_REMOVED,
    MAX_SESSION_STATE_BYTES,
)

if TYPE_CHECKING:
    from folkmoot.accounts.model import Sealer
    from folkmoot.core.ports import Store, Tx

PURPOSE: Final = "mcp_session"
FORM: Final = re.compile(f"[A-Za-z0-9_-]{{1,{MAX_SESSION_ID}}}")
TO_URL: Final = str.maketrans("+/", "-_", "=")
FROM_URL: Final = str.maketrans("-_", "+/")
BOOT_BYTES: Final = 8
SHOWN_CHARACTERS: Final = 16


class Claims(Struct, array_like=True, frozen=True):
    """The content of a sealed session id."""

    boot_id: bytes
    """Of the process that made it."""
    born: int
    """When it was made, in seconds since the epoch."""
    shown: bytes
    """The hash of the token that was shown when the session was opened; empty for none."""
    version: str = ""
    capabilities: bytes = b""
    """As JSON; empty where they are too long for an id."""

    @property
    def shown_hash(self) -> str:
        """The hash of the token, in text."""
        return self.shown.hex()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Claims).decode


class SealedIds:
    """Makes and opens the ids of one process.

    They belong to an epoch of the database: a restored backup may not know which were closed.
    """

    def __init__(self, sealer: Sealer, epoch: str, process: bytes = b"") -> None:
        self._sealer = sealer
        self._epoch = epoch
        self.boot_id = process or secrets.token_bytes(BOOT_BYTES)

    def make(
        self, born: float, shown_hash: str, version: str, capabilities: dict[str, Any]
    ) -> tuple[str, bool]:
        """A new id, and whether it says everything."""
        said = Claims(
            self.boot_id,
            int(born),
            bytes.fromhex(shown_hash),
            version,
            msgspec.json.encode(capabilities),
        )
        made = self._seal(said)
        if len(made) <= MAX_SESSION_ID:
            return made, True
        return self._seal(msgspec.structs.replace(said, capabilities=b"")), False

    def open(self, session_id: str) -> Claims | None:
        """Open a session id; None for one this hub did not make."""
        if FORM.fullmatch(session_id) is None:
            return None
        padded = session_id.translate(FROM_URL) + "=" * (-len(session_id) % 4)
        try:
            return _decode(self._sealer.open(PURPOSE, self._epoch, padded))
        except (SealBroken, msgspec.DecodeError):
            return None

    def _seal(self, said: Claims) -> str:
        return self._sealer.seal(PURPOSE, self._epoch, _encode(said)).translate(TO_URL)


def full_hash(session_id: str) -> str:
    """What the row of a session is found by."""
    return sha256(session_id.encode("utf-8", "surrogateescape")).hexdigest()


def short_hash(session_id: str) -> str:
    """What a session is called where its id must not be seen."""
    return full_hash(session_id)[:SHOWN_CHARACTERS]


def shown_header(name: str, value: str) -> tuple[str, str]:
    """A header as interceptors and tapes see it: without the id of a session."""
    return name, short_hash(value) if name == SESSION_HEADER else value


STATE_PURPOSE: Final = "mcp_session_state"
CLOSED: Final = ""


class SessionRecord(Struct, omit_defaults=True):
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

    async def read(self, session_id: str) -> tuple[SessionRecord | None, bool]:
        """What is kept of a session, and whether it was closed."""
        key = full_hash(session_id)

        async def query(tx: Tx) -> str | None:
            row = await tx.fetch_one("SELECT state FROM mcp_sessions WHERE id_hash = ?", (key,))
            return None if row is None else str(row[0])

        sealed = await self._store.read(query)
        if sealed is None or sealed == CLOSED:
            return None, sealed is not None
        try:
            opened = self._sealer.open(STATE_PURPOSE, key, sealed)
            return msgspec.json.decode(opened, type=SessionRecord), False
        except (SealBroken, msgspec.DecodeError):
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
        await self._write(key, user_id, self._sealer.seal(STATE_PURPOSE, key, encoded), now, until)

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

        await self._store.write(unit)
