"""Taking a device's keys elsewhere: one file, sealed under a passphrase.

The passphrase is made a key with Argon2id, and that key seals the rest with a secretbox. With the
keys go the pins, so that the next device trusts whom this one trusts.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id
from nacl.secret import SecretBox
from nacl.utils import random

from folkmoot.bridge.boxes import DeviceKey, decode, encode
from folkmoot.bridge.keys import Keys
from folkmoot.bridge.ledger import Pin
from folkmoot.core.errors import DeviceKeyUnusable

FORMAT: Final = "folkmoot-device-key"
VERSION: Final = 1
LEAST_CHARACTERS: Final = 12
LEAST_DIFFERENT: Final = 5
MOST_PASSES: Final = 16
MOST_MEMORY: Final = 1024 * 1024 * 1024
"""What a file may ask of whoever imports it."""


class Cost(msgspec.Struct, frozen=True):
    """What one guess at a passphrase costs: passes over so many bytes of memory."""

    passes: int = argon2id.OPSLIMIT_MODERATE
    memory: int = argon2id.MEMLIMIT_MODERATE


class Export(msgspec.Struct, frozen=True):
    """The file: what is not secret of it, and the box."""

    format: Literal["folkmoot-device-key"]
    version: int
    hub: str
    handle: str
    kdf: Literal["argon2id"]
    passes: int
    memory: int
    salt: str
    box: str


class Brought(msgspec.Struct, frozen=True):
    """What a file brings: the present key first, then earlier ones, and whom they trust."""

    hub: str
    handle: str
    keys: list[str]
    pins: list[Pin] = []

    def __repr__(self) -> str:
        return f"Brought(@{self.handle} on {self.hub})"

    def opened(self) -> list[DeviceKey]:
        """The keys themselves."""
        return [DeviceKey.read(text, "The file") for text in self.keys]


def check_passphrase(passphrase: str) -> None:
    """Refuse a passphrase that is soon guessed."""
    if len(passphrase) < LEAST_CHARACTERS or len(set(passphrase)) < LEAST_DIFFERENT:
        raise DeviceKeyUnusable(
            f"The passphrase is too easy to guess: take at least {LEAST_CHARACTERS} characters, "
            "such as five words picked at random."
        )


def pack(keys: Keys, pins: list[Pin], passphrase: str, cost: Cost | None = None) -> bytes:
    """The file that takes an account's keys elsewhere."""
    check_passphrase(passphrase)
    cost = cost or Cost()
    entry = keys.entry
    brought = Brought(entry.hub, entry.handle, [key.written() for key in keys.all], pins)
    salt = random(argon2id.SALTBYTES)
    box = SecretBox(derive(passphrase, salt, cost)).encrypt(msgspec.json.encode(brought))
    export = Export(
        FORMAT, VERSION, entry.hub, entry.handle, "argon2id", cost.passes, cost.memory,
        encode(salt), encode(box),
    )  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(export), indent=2) + b"\n"


def unpack(content: bytes, passphrase: str, source: str) -> Brought:
    """What a file brings, if the passphrase opens it."""
    try:
        export = msgspec.json.decode(content, type=Export)
        salt, box = decode(export.salt), decode(export.box)
    except (msgspec.DecodeError, ValueError):
        raise DeviceKeyUnusable(f"{source}: is not an exported device key.") from None
    if export.version != VERSION:
        raise DeviceKeyUnusable(f"{source}: was written by a newer Folkmoot.")
    if not (1 <= export.passes <= MOST_PASSES and export.memory <= MOST_MEMORY):
        raise DeviceKeyUnusable(f"{source}: asks for more memory or time than any such file needs.")
    try:
        key = derive(passphrase, salt, Cost(export.passes, export.memory))
        brought = msgspec.json.decode(SecretBox(key).decrypt(box), type=Brought)
    except CryptoError:
        raise DeviceKeyUnusable(
            f"{source}: the passphrase is wrong, or the file was changed."
        ) from None
    except (msgspec.DecodeError, ValueError):
        raise DeviceKeyUnusable(f"{source}: is not an exported device key.") from None
    if not brought.keys:
        raise DeviceKeyUnusable(f"{source}: holds no key.")
    return brought


def derive(passphrase: str, salt: bytes, cost: Cost) -> bytes:
    """The key that a passphrase makes."""
    return argon2id.kdf(
        SecretBox.KEY_SIZE,
        passphrase.encode("utf-8", "surrogateescape"),
        salt,
        opslimit=cost.passes,
        memlimit=cost.memory,
    )
