"""How bodies and subjects of messages are encrypted, and read again by either side.

A body is a NaCl box for its recipient. Short bodies that were read lately are kept at hand.
"""

from __future__ import annotations

import logging
import secrets
from binascii import a2b_base64, b2a_base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec
from nacl.bindings import (
    crypto_box_beforenm,
    crypto_box_easy_afternm,
    crypto_box_open_easy_afternm,
)
from nacl.exceptions import CryptoError

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.ports import Sealer, Tx
from folkmoot.mail.limits import (
    MAX_CACHED_BODIES,
    MAX_CACHED_BOX,
    MAX_CACHED_SUBJECTS,
    MAX_SHARED_KEYS,
    MAX_SUBJECT,
)
from folkmoot.mail.model import NONCE_BYTES, SERVER_ASSISTED, Content

if TYPE_CHECKING:
    from folkmoot.mail.queries_pages import CopyRow, ThreadRow

PrivateKeys: TypeAlias = Callable[[Tx, str], Awaitable[bytes]]
"""Opens, within a unit, the private key of the account with an id."""


class SharedKeys:
    """The shared keys of pairs; those that are kept are bounded, the least used go first."""

    def __init__(self, private_keys: PrivateKeys, *, most_pairs: int = MAX_SHARED_KEYS) -> None:
        self._private_keys = private_keys
        self._most = most_pairs
        # By owner as well: what was computed for one account never opens a box for another.
        self._kept: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()
        self._lock = Lock()

    async def of(self, tx: Tx, owner: Account, other_key: str) -> bytes:
        """The key an account shares with the owner of a public key."""
        pair = (owner.id, owner.public_key, other_key)
        with self._lock:
            if (known := self._kept.get(pair)) is not None:
                self._kept.move_to_end(pair)
                return known
        private = await self._private_keys(tx, owner.id)
        try:
            shared = crypto_box_beforenm(a2b_base64(other_key, strict_mode=True), private)
        except (CryptoError, ValueError, TypeError):
            raise e.SealBroken("A public key in the database is not one.") from None
        with self._lock:
            self._kept[pair] = shared
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return shared

    def __len__(self) -> int:
        return len(self._kept)


def close_box(key: bytes, body: str) -> tuple[str, str]:
    """Encrypt a body under a fresh nonce; the box and the nonce, both in base64."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    ciphertext = crypto_box_easy_afternm(body.encode(), nonce, key)
    return as_base64(ciphertext), as_base64(nonce)


def open_box(key: bytes, ciphertext: str, nonce: str) -> str:
    """The body in a box; raises `SealBroken` if it is not what was stored."""
    try:
        sealed = a2b_base64(ciphertext)
        return crypto_box_open_easy_afternm(sealed, a2b_base64(nonce), key).decode()
    except (CryptoError, ValueError, TypeError):
        raise e.SealBroken("A message in the database cannot be opened.") from None


def as_base64(data: bytes) -> str:
    """Bytes as the wire and the database have them."""
    return b2a_base64(data, newline=False).decode("ascii")


LOG = logging.getLogger(__name__)


BodyKey: TypeAlias = tuple[str, str, str | None, str | None, str | None]
BoxedRow: TypeAlias = "CopyRow | ThreadRow"


class Bodies:
    """Opens boxes within units. What is kept is bounded; the oldest goes first."""

    def __init__(self, keys: SharedKeys, *, most: int = MAX_CACHED_BODIES) -> None:
        self._keys = keys
        self._most = most
        # Under the whole box and both keys: what was changed at rest is never found here, nor
        # what was opened for someone else.
        self._kept: dict[BodyKey, str] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    async def of_all(self, tx: Tx, reader: Account, rows: Iterable[BoxedRow]) -> list[str | None]:
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

    async def of(self, tx: Tx, reader: Account, row: BoxedRow) -> str | None:
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
        except e.SealBroken:
            LOG.warning("A message was changed where it is stored, and cannot be decrypted.")
            return None
        if len(row.ciphertext) <= MAX_CACHED_BOX:
            self._keep(mark, body)
        return body

    def _keep(self, mark: BodyKey, body: str) -> None:
        with self._lock:
            if len(self._kept) >= self._most:
                del self._kept[next(iter(self._kept))]
            self._kept[mark] = body


SUBJECT_PURPOSE = "thread_subject"


class Subject(NamedTuple):
    """The sequence of the thread's first message, and the words it begins with."""

    first_seq: int
    text: str


SUBJECT_DECODER = msgspec.json.Decoder(Subject)


class Subjects:
    """Seals and opens the subjects of threads."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        # A subject is short and never changes; what was changed at rest is not found under it.
        self._kept = lru_cache(maxsize=MAX_CACHED_SUBJECTS)(self._open)

    def seal(self, thread_id: str, subject: Subject) -> str:
        """The sealed subject, as stored."""
        return self._sealer.seal(SUBJECT_PURPOSE, thread_id, msgspec.json.encode(subject))

    def open(self, thread_id: str, sealed: str) -> Subject:
        """The subject; one that was changed at rest is empty, and its thread stays usable."""
        try:
            return self._kept(thread_id, sealed)
        except (e.SealBroken, msgspec.DecodeError):
            return Subject(1, "")

    def _open(self, thread_id: str, sealed: str) -> Subject:
        return SUBJECT_DECODER.decode(self._sealer.open(SUBJECT_PURPOSE, thread_id, sealed))


def subject_of(content: Content) -> str:
    """The subject of a thread that begins with this: nothing of what we cannot read."""
    return content[:MAX_SUBJECT] if isinstance(content, str) else ""
