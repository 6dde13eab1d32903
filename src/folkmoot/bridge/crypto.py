"""Encryption end to end: key pairs, NaCl boxes on the wire, and the letter that lies in a box.

A letter binds a body to its message, so that its box cannot be passed off as another message.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from typing import Any, Final

import msgspec
from nacl.bindings import (
    crypto_box_beforenm,
    crypto_box_easy_afternm,
    crypto_box_keypair,
    crypto_box_open_easy_afternm,
    crypto_scalarmult_base,
)
from nacl.exceptions import CryptoError
from nacl.utils import random

from folkmoot.core import errors as e

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 24
TAG_BYTES: Final = 16
GROUPS: Final = 8
"""Groups of four digits that people compare: 128 bits."""

_PROBE: Final = hashlib.sha256(b"folkmoot bridge: is this a key?").digest()
"""Any private key shows whether a public one is of small order; this one is nobody's."""


class Payload(msgspec.Struct, frozen=True, gc=False):
    """A box as it is on the wire."""

    ciphertext: str
    nonce: str
    sender_public_key: str


class DeviceKey:
    """A private key of this device, with its public key."""

    __slots__ = ("_private", "public")

    def __init__(self, private: bytes) -> None:
        if len(private) != KEY_BYTES:
            raise e.DeviceKeyUnusable(f"A device key has {KEY_BYTES} bytes.")
        self._private = private
        self.public = encode(crypto_scalarmult_base(private))

    @classmethod
    def fresh(cls) -> DeviceKey:
        """A key nobody has had before."""
        return cls(crypto_box_keypair()[1])

    @classmethod
    def read(cls, text: str, source: str) -> DeviceKey:
        """The key that is written in base64; `source` is for the error."""
        try:
            return cls(base64.b64decode(text.encode("ascii"), validate=True))
        except (ValueError, e.DeviceKeyUnusable):
            raise e.DeviceKeyUnusable(f"{source}: does not hold a device key.") from None

    def written(self) -> str:
        """The private key as text, as `read` takes it."""
        return encode(self._private)

    def shared_with(self, public: str) -> bytes:
        """The key this device shares with the owner of a public key."""
        return crypto_box_beforenm(public_bytes(public), self._private)

    def __repr__(self) -> str:
        return f"<DeviceKey {fingerprint(self.public)}>"

    def __reduce__(self) -> str:
        raise TypeError("A device key is not to be pickled.")


def seal(key: DeviceKey, recipient: str, content: bytes) -> Payload:
    """Put content into a box for the owner of a public key."""
    nonce = random(NONCE_BYTES)
    box = crypto_box_easy_afternm(content, nonce, key.shared_with(recipient))
    return Payload(encode(box), encode(nonce), key.public)


def unseal(key: DeviceKey, other: str, payload: Payload) -> bytes | None:
    """Open a box between these two keys; None if it is malformed or sealed with others."""
    try:
        nonce, box = parts(payload)
        return crypto_box_open_easy_afternm(box, nonce, key.shared_with(other))
    except (CryptoError, ValueError, TypeError, e.PeerKeyInvalid):
        return None


def read_payload(value: Any) -> Payload | None:
    """The box that a hub hands over; None if it is none."""
    try:
        payload = msgspec.convert(value, Payload)
        nonce, box = parts(payload)
        public_bytes(payload.sender_public_key)
    except (msgspec.ValidationError, ValueError, e.PeerKeyInvalid):
        return None
    return payload if len(nonce) == NONCE_BYTES and len(box) >= TAG_BYTES else None


def digest(payload: Payload) -> str:
    """The digest that identifies a box, whatever its spelling."""
    nonce, box = parts(payload)
    return hashlib.sha256(nonce + box).hexdigest()


def parts(payload: Payload) -> tuple[bytes, bytes]:
    """Nonce and box as bytes; `ValueError` when they are not base64."""
    return decode(payload.nonce), decode(payload.ciphertext)


def check_public(text: Any) -> str:
    """A correspondent's public key, if it is one that a box can be closed for."""
    crypto = public_bytes(text)
    try:
        crypto_box_beforenm(crypto, _PROBE)
    except CryptoError:
        raise e.PeerKeyInvalid(
            "The hub names a key that gives no secrecy to anyone; nothing was sent."
        ) from None
    return encode(crypto)


def public_bytes(text: Any) -> bytes:
    """The bytes of a public key, of which there is one spelling."""
    try:
        key = decode(text)
    except (ValueError, AttributeError):
        key = b""
    if len(key) != KEY_BYTES or encode(key) != text:
        raise e.PeerKeyInvalid(f"A public key must be {KEY_BYTES} bytes in base64.")
    return key


def fingerprint(public: str) -> str:
    """The fingerprint of a key, for two people to compare."""
    digits = hashlib.sha256(public_bytes(public)).hexdigest()
    return " ".join(digits[4 * n : 4 * n + 4] for n in range(GROUPS))


def encode(data: bytes) -> str:
    """Bytes as the wire has them."""
    return base64.b64encode(data).decode("ascii")


def decode(text: str) -> bytes:
    """The bytes that are written in base64, strictly; `ValueError` if they are not."""
    try:
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except UnicodeEncodeError as error:
        raise ValueError(str(error)) from None


VERSION: Final = "folkmoot-mail-1"
FAMILY: Final = "folkmoot-mail-"
FORMATS: Final = "payload_formats"
"""The member of a profile that says what its device reads in a box beside plain text."""


class Letter(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A body, bound to its message. `re` is the message it answers; `id` makes each one new."""

    v: str
    from_: str = msgspec.field(name="from")
    to: str
    id: str
    ts: int
    body: str
    re: str | None = None


class LetterUnreadable(ValueError):
    """What lies in the box is no letter and no text; the message says why."""


class _Versioned(msgspec.Struct, gc=False):
    v: str


_read = msgspec.json.Decoder(Letter)
_version = msgspec.json.Decoder(_Versioned)


def new_letter(sender: str, recipient: str, body: str, now: float, re: str | None = None) -> Letter:
    """A letter that was never written before."""
    return Letter(VERSION, sender, recipient, str(uuid.uuid4()), int(now), body, re)


def reads_letters(profile: dict[str, Any]) -> bool:
    """Whether a profile says that its device reads letters."""
    named = profile.get(FORMATS)
    return isinstance(named, list) and VERSION in named


def write_letter(letter: Letter) -> bytes:
    """The letter as it goes into the box."""
    return msgspec.json.encode(letter)


def read_letter(content: bytes) -> Letter | str:
    """The letter in a box, or the plain text that other programs put there: it is bound to nothing.

    Raises `Unreadable` for what a newer bridge wrote, and for what is not text.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise LetterUnreadable("what is in it is not text") from None
    try:
        version = _version.decode(content).v
    except (msgspec.DecodeError, RecursionError):
        return text
    if not version.startswith(FAMILY):
        return text
    if version != VERSION:
        raise LetterUnreadable("it was written by a newer bridge; update this one")
    try:
        return _read.decode(content)
    except msgspec.DecodeError:
        raise LetterUnreadable("it is not a whole letter") from None
