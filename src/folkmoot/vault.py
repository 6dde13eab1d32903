"""The vault: what must not lie readable in the database is sealed under one data key.

The data key is itself in the database, wrapped under the master key, which is not. To change the
master key is to wrap the data key anew; nothing else that is sealed has to be touched.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from hashlib import blake2b
from typing import Protocol

from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
)
from nacl.exceptions import CryptoError

from folkmoot.core.errors import KeyMismatch, SealBroken
from folkmoot.core.ports import Store, Tx, Unit

KEY_BYTES = 32
NONCE_BYTES = 24

WRAP_LABEL = b"folkmoot data key wrap v1"
WRAP_PURPOSE = "data_key"
WRAPPED = "data_key."
"""Begins the name of each row that holds the data key; the id of its master key ends it."""

MASTER_KEY_ID = "master_key_id"


class Master(Protocol):
    """The master key: an id that may be told, and the secret."""

    id: str

    def secret(self) -> bytes:
        """The 32 bytes of the key."""
        ...


class Vault:
    """Seals and opens, each thing for its purpose and row: moved elsewhere, it does not open."""

    __slots__ = ("_key", "master_id")

    def __init__(self, data_key: bytes, master_id: str) -> None:
        self._key = data_key
        self.master_id = master_id
        """The id of the master key the data key is wrapped under."""

    def __repr__(self) -> str:
        return f"<Vault of master key {self.master_id}>"

    def __reduce__(self) -> str:
        raise TypeError("A vault is not to be pickled.")

    @classmethod
    async def load(cls, store: Store, master: Master) -> Vault:
        """The vault of a database: made at its first start, refused with any other master key.

        A change of the master key that was cut short ends here, for the key that was given.
        """
        fresh = secrets.token_bytes(KEY_BYTES)
        data_key = await store.write(settle(master, fresh))
        return cls(data_key, master.id)

    def seal(self, purpose: str, row: str, plaintext: bytes) -> str:
        """The sealed text, which opens only with the same purpose and row."""
        return seal(self._key, purpose, row, plaintext)

    def open(self, purpose: str, row: str, sealed: str) -> bytes:
        """What was sealed; raises `SealBroken` when it was changed or belongs elsewhere."""
        return open_sealed(self._key, purpose, row, sealed)

    async def admit(self, store: Store, master: Master) -> None:
        """Wrap the data key under another master key too: from now on either opens the database.

        The first half of a change of the master key. Once the new key is where the hub finds it,
        `settle_on` ends the change; a hub that starts in between does so with the key it is given.
        """
        wrapped = wrap(master, self._key)

        async def unit(tx: Tx) -> None:
            await put(tx, WRAPPED + master.id, wrapped)

        await store.write(unit)

    async def settle_on(self, store: Store, master: Master) -> None:
        """Let a master key that was admitted be the only one."""
        await store.write(settle(master, self._key))
        self.master_id = master.id


def settle(master: Master, fresh: bytes) -> Unit[bytes]:
    """Open the data key with this master key and leave no other way to it.

    A database that has no data key is given the fresh one.
    """
    wrapped = wrap(master, fresh)

    async def unit(tx: Tx) -> bytes:
        row = await tx.fetch_one("SELECT value FROM meta WHERE key = ?", (WRAPPED + master.id,))
        if row is None:
            await refuse_stranger(tx, master)
            await put(tx, WRAPPED + master.id, wrapped)
        data_key = unwrap(master, wrapped if row is None else str(row[0]))
        await put(tx, MASTER_KEY_ID, master.id)
        await tx.execute(
            "DELETE FROM meta WHERE key > ? AND key < ? AND key <> ?", (*SPAN, WRAPPED + master.id)
        )
        return data_key

    return unit


async def refuse_stranger(tx: Tx, master: Master) -> None:
    """Refuse a master key that opens nothing here, where another one does or should."""
    row = await tx.fetch_one("SELECT value FROM meta WHERE key = ?", (MASTER_KEY_ID,))
    recorded = str(row[0]) if row else None
    wraps = await tx.fetch("SELECT key FROM meta WHERE key > ? AND key < ?", SPAN)
    if wraps or recorded not in {None, master.id}:
        raise KeyMismatch(
            f"The master key {master.id} is not the one this database was made with ({recorded}).",
            key_id=master.id,
            recorded=recorded,
        )


SPAN = (WRAPPED, WRAPPED[:-1] + chr(ord(WRAPPED[-1]) + 1))
"""Between these lie the names of all rows that hold the data key."""


async def put(tx: Tx, key: str, value: str) -> None:
    """Set a row of what the database knows of itself."""
    await tx.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def wrap(master: Master, data_key: bytes) -> str:
    """The data key, sealed under the master key."""
    return seal(wrapping_key(master), WRAP_PURPOSE, master.id, data_key)


def unwrap(master: Master, wrapped: str) -> bytes:
    """The data key; raises `SealBroken` when the row was changed."""
    return open_sealed(wrapping_key(master), WRAP_PURPOSE, master.id, wrapped)


def wrapping_key(master: Master) -> bytes:
    """The master key's own key for this one purpose."""
    return blake2b(WRAP_LABEL, key=master.secret(), digest_size=KEY_BYTES).digest()


def seal(key: bytes, purpose: str, row: str, plaintext: bytes) -> str:
    """XChaCha20-Poly1305 under a random nonce, as base64: nonce, ciphertext, tag."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    sealed = crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, place(purpose, row), nonce, key)
    return base64.b64encode(nonce + sealed).decode("ascii")


def open_sealed(key: bytes, purpose: str, row: str, sealed: str) -> bytes:
    """What was sealed under this key for this place."""
    try:
        raw = base64.b64decode(sealed.encode("ascii"), validate=True)
        nonce, ciphertext = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
        return crypto_aead_xchacha20poly1305_ietf_decrypt(
            ciphertext, place(purpose, row), nonce, key
        )
    # Whatever is wrong with it, the answer is the same; its content goes into no error.
    except (CryptoError, binascii.Error, UnicodeEncodeError, ValueError, TypeError):
        raise SealBroken(
            f"A {purpose} in the database cannot be opened: it was changed, or is not in its place."
        ) from None


def place(purpose: str, row: str) -> bytes:
    """Where a sealed text belongs; purposes are names in the program and hold no NUL."""
    return f"{purpose}\0{row}".encode()
