"""X25519 key pairs: 32 bytes each, told as 44 characters of base64."""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from nacl.public import PrivateKey

from folkmoot.core.errors import ArgumentInvalid

KEY_BYTES = 32
KEY_CHARACTERS = 44


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
    return text
