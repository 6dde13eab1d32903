"""NaCl boxes: how a body is encrypted for its recipient and read again by either side.

The box is symmetric: sender and recipient reach the same shared key, each with their own private
key and the other's public key. The key of a pair costs one X25519, a box with a known key a
twentieth of it, so keys are kept for a while. All of this runs within units of the store: what is
long in its threads, so that the loop waits for short boxes alone.
"""

from __future__ import annotations

import secrets
from binascii import a2b_base64, b2a_base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from threading import Lock
from typing import NamedTuple, TypeAlias

from nacl.bindings import (
    crypto_box_beforenm,
    crypto_box_easy_afternm,
    crypto_box_open_easy_afternm,
)
from nacl.exceptions import CryptoError

from folkmoot.accounts import Account
from folkmoot.core.errors import SealBroken
from folkmoot.core.ports import Tx
from folkmoot.mail.model import NONCE_BYTES

PrivateKeys: TypeAlias = Callable[[Tx, str], Awaitable[bytes]]
"""Opens, within a unit, the private key of the account with an id."""

MOST_PAIRS = 8_192


class Boxed(NamedTuple):
    """A body in its box, both parts in base64."""

    ciphertext: str
    nonce: str


class SharedKeys:
    """The shared keys of pairs; those that are kept are bounded, the least used go first."""

    def __init__(self, private_keys: PrivateKeys, *, most_pairs: int = MOST_PAIRS) -> None:
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
            raise SealBroken("A public key in the database is not one.") from None
        with self._lock:
            self._kept[pair] = shared
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return shared

    def __len__(self) -> int:
        return len(self._kept)


def close_box(key: bytes, body: str) -> Boxed:
    """Encrypt a body under a fresh nonce."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    ciphertext = crypto_box_easy_afternm(body.encode(), nonce, key)
    return Boxed(as_base64(ciphertext), as_base64(nonce))


def open_box(key: bytes, ciphertext: str, nonce: str) -> str:
    """The body in a box; raises `SealBroken` if it is not what was stored."""
    try:
        sealed = a2b_base64(ciphertext)
        return crypto_box_open_easy_afternm(sealed, a2b_base64(nonce), key).decode()
    except (CryptoError, ValueError, TypeError):
        raise SealBroken("A message in the database cannot be opened.") from None


def as_base64(data: bytes) -> str:
    """Bytes as the wire and the database have them."""
    return b2a_base64(data, newline=False).decode("ascii")
