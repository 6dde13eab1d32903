"""The ids of handshake sessions.

An id is sealed, so that a hub that was restarted can open it again. It is a secret: where a session
has to be named, in logs, tapes and envelopes, `short_hash` is shown instead.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.mcp.wire import SESSION_HEADER
from folkmoot.transports.limits import MAX_SESSION_ID
from folkmoot.vault import SealedIds

if TYPE_CHECKING:
    from folkmoot.core.ports import Sealer

PURPOSE: Final = "mcp_session"
BOOT_BYTES: Final = 8
SHOWN_CHARACTERS: Final = 16


class Claims(Struct, array_like=True, frozen=True):
    """The content of a sealed session id."""

    boot_id: bytes
    """Of the process that made it."""
    born: int
    """When it was made, in seconds since the epoch."""
    shown: bytes
    """The hash of the token that was shown when the session was opened, for an app that of its
    grant; empty for none.
    """
    version: str = ""
    capabilities: bytes = b""
    """As JSON; empty where they are too long for an id."""

    @property
    def shown_hash(self) -> str:
        """The hash of the token, in text."""
        return self.shown.hex()


class SessionIds:
    """Makes and opens the ids of one process.

    They belong to an epoch of the database: a restored backup may not know which were closed.
    """

    def __init__(self, sealer: Sealer, epoch: str, process: bytes = b"") -> None:
        self._sealed = SealedIds(sealer, PURPOSE, Claims, MAX_SESSION_ID)
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
        made = self._sealed.make(self._epoch, said)
        if len(made) <= MAX_SESSION_ID:
            return made, True
        shorter = msgspec.structs.replace(said, capabilities=b"")
        return self._sealed.make(self._epoch, shorter), False

    def open(self, session_id: str) -> Claims | None:
        """Open a session id; None for one this hub did not make."""
        return self._sealed.open(self._epoch, session_id)


def full_hash(session_id: str) -> str:
    """What the row of a session is found by."""
    return sha256(session_id.encode("utf-8", "surrogateescape")).hexdigest()


def short_hash(session_id: str) -> str:
    """What a session is called where its id must not be seen."""
    return full_hash(session_id)[:SHOWN_CHARACTERS]


def shown_header(name: str, value: str) -> tuple[str, str]:
    """A header as interceptors and tapes see it: without the id of a session."""
    return name, short_hash(value) if name == SESSION_HEADER else value
