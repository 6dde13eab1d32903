"""The ids of handshake sessions: sealed, so that a hub that was restarted can open them again.

An id is a secret. Where a session has to be named, in logs, tapes and envelopes, `short_hash` is
shown instead.
"""

from __future__ import annotations

import re
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core.errors import SealBroken
from folkmoot.mcp.wire import SESSION_HEADER

if TYPE_CHECKING:
    from folkmoot.accounts.ports import Sealer

PURPOSE: Final = "mcp_session"
LONGEST: Final = 1_024
"""Characters of an id; what does not fit is kept in a row."""
FORM: Final = re.compile(f"[A-Za-z0-9_-]{{1,{LONGEST}}}")
TO_URL: Final = str.maketrans("+/", "-_", "=")
FROM_URL: Final = str.maketrans("-_", "+/")
BOOT_BYTES: Final = 8
SHOWN_CHARACTERS: Final = 16


class Claims(Struct, array_like=True, frozen=True):
    """What an id says of its session."""

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
        """The hash of that token, as it is written elsewhere."""
        return self.shown.hex()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Claims).decode


class SealedIds:
    """Makes and opens the ids of one process.

    They belong to an epoch of the database: a restored backup may not know which were closed.
    """

    def __init__(self, sealer: Sealer, epoch: str) -> None:
        self._sealer = sealer
        self._epoch = epoch
        self.boot_id = secrets.token_bytes(BOOT_BYTES)

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
        if len(made) <= LONGEST:
            return made, True
        return self._seal(msgspec.structs.replace(said, capabilities=b"")), False

    def open(self, session_id: str) -> Claims | None:
        """What an id says; None for one that this hub has not made."""
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
