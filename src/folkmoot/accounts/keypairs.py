"""X25519 key pairs: 32 bytes each, told as 44 characters of base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
from functools import lru_cache
from typing import NamedTuple

from nacl.bindings import crypto_box_beforenm
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey

from folkmoot.core.errors import ArgumentInvalid

KEY_BYTES = 32
KEY_CHARACTERS = 44
MOST_KNOWN = 4_096

_PROBE = hashlib.sha256(b"folkmoot: is this a key?").digest()
"""Any private key shows whether a public one is of low order; this one is nobody's."""


class KeyPair(NamedTuple):
    """A public key as it is told, and its private key, which is only ever stored sealed."""

    public: str
    private: bytes

    def __repr__(self) -> str:
        return f"<KeyPair {self.public}>"


def new_key_pair() -> KeyPair:
    """A fresh key pair."""
    private = PrivateKey.generate()
    return KeyPair(base64.b64encode(bytes(private.public_key)).decode(), bytes(private))


@lru_cache(MOST_KNOWN)
def keeps_secrets(key: bytes) -> bool:
    """Whether a box for a public key is secret: not so for zeros and other points of low order."""
    try:
        crypto_box_beforenm(key, _PROBE)
    except CryptoError:
        return False
    return True


def check_public_key(field: str, text: str) -> str:
    """The key itself, if it is one: 32 bytes in base64; else an error that names the field."""
    try:
        key = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    # Only one text stands for a key: its last character may hide no further bits.
    if len(key) != KEY_BYTES or base64.b64encode(key).decode() != text:
        raise ArgumentInvalid(
            f"{field} must be {KEY_BYTES} bytes in base64 ({KEY_CHARACTERS} characters).",
            field=field,
        )
    if not keeps_secrets(key):
        raise ArgumentInvalid(
            f"{field} must be a public key; with this value no box would be secret.", field=field
        )
    return text
