"""The bodies of messages as their readers see them, the short ones of late kept at hand.

Lists are read again and again, and opening a box costs more than all else that is done for a
message. What is kept is kept in memory alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from threading import Lock
from typing import Protocol, TypeAlias

from folkmoot.accounts import Account
from folkmoot.core.errors import SealBroken
from folkmoot.core.ports import Tx
from folkmoot.mail.crypto import SharedKeys, open_box
from folkmoot.mail.model import SERVER_ASSISTED, Mode

LOG = logging.getLogger(__name__)

MOST_KEPT = 8_192
LONGEST_KEPT = 2_048
"""Characters of a box; longer ones are opened anew each time."""

Mark: TypeAlias = tuple[str, str, str | None, str | None, str | None]


class Boxed(Protocol):
    """A row with a message in it, if there is one."""

    @property
    def incoming(self) -> int | None:
        """Whether the reader is its recipient."""
        ...

    @property
    def mode(self) -> Mode | None:
        """Who encrypted it."""
        ...

    @property
    def ciphertext(self) -> str | None:
        """The box in base64."""
        ...

    @property
    def nonce(self) -> str | None:
        """Its nonce in base64."""
        ...

    @property
    def sender_key(self) -> str | None:
        """The sender's public key."""
        ...

    @property
    def recipient_key(self) -> str | None:
        """The recipient's public key."""
        ...


class Bodies:
    """Opens boxes within units. What is kept is bounded; the oldest goes first."""

    def __init__(self, keys: SharedKeys, *, most: int = MOST_KEPT) -> None:
        self._keys = keys
        self._most = most
        # Under the whole box and both keys: what was changed at rest is never found here, nor
        # what was opened for someone else.
        self._kept: dict[Mark, str] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    async def of_all(self, tx: Tx, reader: Account, rows: Iterable[Boxed]) -> list[str | None]:
        """The bodies of several messages, in their order."""
        kept, who, own = self._kept, reader.id, reader.public_key
        found: list[str | None] = []
        for row in rows:
            body = None
            if row.mode == SERVER_ASSISTED:
                other = row.sender_key if row.incoming else row.recipient_key
                body = kept.get((who, own, other, row.nonce, row.ciphertext))
            found.append(await self.of(tx, reader, row) if body is None else body)
        return found

    async def of(self, tx: Tx, reader: Account, row: Boxed) -> str | None:
        """The body; nothing for E2E, and for what was changed at rest: it hides no other."""
        if row.mode != SERVER_ASSISTED:
            return None
        other = row.sender_key if row.incoming else row.recipient_key
        if other is None or row.ciphertext is None or row.nonce is None:
            return None
        mark = (reader.id, reader.public_key, other, row.nonce, row.ciphertext)
        body = self._kept.get(mark)
        if body is not None:
            return body
        try:
            body = open_box(await self._keys.of(tx, reader, other), row.ciphertext, row.nonce)
        except SealBroken:
            LOG.warning("A message was changed where it is stored, and cannot be decrypted.")
            return None
        if len(row.ciphertext) <= LONGEST_KEPT:
            self._keep(mark, body)
        return body

    def _keep(self, mark: Mark, body: str) -> None:
        with self._lock:
            if len(self._kept) >= self._most:
                del self._kept[next(iter(self._kept))]
            self._kept[mark] = body
