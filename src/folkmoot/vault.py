"""The vault: encrypts what must not be readable in the database, with one data key.

The data key is itself in the database, wrapped under the master key, which is not. To change the
master key is to wrap the data key anew; nothing else that is sealed has to be touched. A new master
key is first *admitted* beside the present one, then *settled on*, which leaves no other. One that
is *awaited* was given to the operator, and stays admitted until a hub starts with it.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Collection
from hashlib import blake2b
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt,
    crypto_aead_xchacha20poly1305_ietf_encrypt,
)
from nacl.exceptions import CryptoError

from folkmoot.core import errors as e
from folkmoot.core.ports import Sealer, Store, Tx, Unit

T = TypeVar("T")

KEY_BYTES = 32
NONCE_BYTES = 24

WRAP_LABEL = b"folkmoot data key wrap v1"
WRAP_PURPOSE = "data_key"
DERIVE_LABEL = b"folkmoot derived key v1 "
WRAPPED = "data_key."
"""Begins the name of each row that holds the data key; the id of its master key ends it."""

MASTER_KEY_ID = "master_key_id"
"""The row that names the master key which was settled on last."""

TO_URL: Final = str.maketrans("+/", "-_", "=")
FROM_URL: Final = str.maketrans("-_", "+/")

AWAITED_ID = "master_key_awaited"
"""The row that names the master key which is awaited, if one is."""


class Master(Protocol):
    """The master key: an id that may be told, and the secret."""

    id: str

    def secret(self) -> bytes:
        """The 32 bytes of the key."""


class SealedIds(Generic[T]):
    """Ids that hold a sealed value, in characters that URLs and headers take.

    They open again after a restart, and only for the row they were made for.
    """

    def __init__(self, sealer: Sealer, purpose: str, value: type[T], longest: int) -> None:
        self._sealer = sealer
        self._purpose = purpose
        self._decode = msgspec.msgpack.Decoder(value).decode
        self._form = re.compile(f"[A-Za-z0-9_-]{{1,{longest}}}")

    def make(self, row: str, value: T) -> str:
        """An id for a value, which may be longer than ids are to be."""
        sealed = self._sealer.seal(self._purpose, row, msgspec.msgpack.encode(value))
        return sealed.translate(TO_URL)

    def open(self, row: str, id_: str) -> T | None:
        """The value of an id; None for one that was not made for this row."""
        if self._form.fullmatch(id_) is None:
            return None
        padded = id_.translate(FROM_URL) + "=" * (-len(id_) % 4)
        try:
            return self._decode(self._sealer.open(self._purpose, row, padded))
        except (e.SealBroken, msgspec.DecodeError):
            return None


class Holders(NamedTuple):
    """The ids of the master key that was settled on, and of the one that is awaited."""

    settled: str | None
    awaited: str | None


class Vault:
    """Seals and opens, each thing for its purpose and row: moved elsewhere, it does not open."""

    __slots__ = ("_key", "awaited_id", "master_id")

    def __init__(self, data_key: bytes, master_id: str, awaited_id: str | None = None) -> None:
        self._key = data_key
        self.master_id = master_id
        self.awaited_id = awaited_id

    def __repr__(self) -> str:
        return f"<Vault of master key {self.master_id}>"

    def __reduce__(self) -> str:
        raise TypeError("A vault is not to be pickled.")

    @classmethod
    async def load(cls, store: Store, master: Master) -> Vault:
        """The vault of a database: made at its first start, refused with any other master key.

        A change of the master key that was cut short ends here, for the key that was given; only
        one that is awaited outlives a start with the present key.
        """
        fresh = secrets.token_bytes(KEY_BYTES)
        data_key, awaited = await store.write(unlock(master, fresh))
        return cls(data_key, master.id, awaited)

    def seal(self, purpose: str, row: str, plaintext: bytes) -> str:
        """The sealed text, which opens only with the same purpose and row."""
        return seal(self._key, purpose, row, plaintext)

    def open(self, purpose: str, row: str, sealed: str) -> bytes:
        """What was sealed; raises `SealBroken` when it was changed or belongs elsewhere."""
        return open_sealed(self._key, purpose, row, sealed)

    def derive(self, purpose: str) -> bytes:
        """A key for one purpose, the same for the life of the database."""
        return blake2b(
            DERIVE_LABEL + purpose.encode(), key=self._key, digest_size=KEY_BYTES
        ).digest()

    async def admit(self, store: Store, master: Master, *, awaited: bool = False) -> None:
        """Wrap the data key under another master key too: from now on either opens the database.

        The first half of a change of the master key. Once the new key is where the hub finds it,
        `settle_on` ends the change; a hub that starts in between does so with the key it is given.
        A key that was admitted before is admitted no more.
        """
        wrapped = wrap(master, self._key)

        async def unit(tx: Tx) -> None:
            await hold(tx, self.master_id)
            await drop_wraps(tx, {self.master_id, master.id})
            await put(tx, WRAPPED + master.id, wrapped)
            await put_awaited(tx, master.id if awaited else None)

        await store.write(unit)
        self.awaited_id = master.id if awaited else None

    async def settle_on(self, store: Store, master: Master) -> None:
        """Let a master key that was admitted be the only one."""

        async def unit(tx: Tx) -> str | None:
            await hold(tx, self.master_id)
            return (await do_settle(tx, master))[1]

        self.awaited_id = await store.write(unit)
        self.master_id = master.id

    async def withdraw(self, store: Store) -> None:
        """Admit no master key but the one that was settled on."""

        async def unit(tx: Tx) -> None:
            await hold(tx, self.master_id)
            await drop_wraps(tx, {self.master_id})
            await put_awaited(tx, None)

        await store.write(unit)
        self.awaited_id = None


def unlock(master: Master, fresh: bytes) -> Unit[tuple[bytes, str | None]]:
    """Open the data key with this master key, leave no way to it but for one that is awaited.

    A database that has no data key is given the fresh one. Answers the key and who is awaited.
    """
    wrapped = wrap(master, fresh)

    async def unit(tx: Tx) -> tuple[bytes, str | None]:
        # Of those who start for the first time at the same moment, one settles on its key.
        await put_once(tx, MASTER_KEY_ID, master.id)
        return await do_settle(tx, master, wrapped)

    return unit


async def do_settle(tx: Tx, master: Master, fresh: str | None = None) -> tuple[bytes, str | None]:
    """Let a master key that opens the data key be the only one, but for one that is awaited.

    A database that has no data key is given the `fresh` one, which is wrapped.
    """
    await hold(tx)
    held = await holders(tx)
    wraps: dict[str, str] = dict(await tx.fetch(WRAPS, SPAN))
    if fresh is not None and not wraps and held.settled == master.id:
        await put(tx, WRAPPED + master.id, fresh)
        wraps = {WRAPPED + master.id: fresh}
    if WRAPPED + master.id not in wraps:
        raise mismatch(master.id, held.settled)
    data_key = unwrap(master, wraps[WRAPPED + master.id])
    # Who starts the hub with the present key once more has not yet put the new one in place.
    awaited = held.awaited if held.settled == master.id else None
    await drop_wraps(tx, {master.id, awaited})
    await put(tx, MASTER_KEY_ID, master.id)
    await put_awaited(tx, awaited)
    return data_key, awaited


async def hold(tx: Tx, settled: str | None = None) -> None:
    """Let nobody else change the master key before this unit ends.

    With the one that was settled on as far as is known: refuse if another was since.
    """
    await tx.execute("UPDATE meta SET value = value WHERE key = ?", (MASTER_KEY_ID,))
    if settled is not None and (recorded := (await holders(tx)).settled) != settled:
        raise mismatch(settled, recorded)


def mismatch(key_id: str, recorded: str | None) -> e.KeyMismatch:
    """What is said of a master key that is not the database's."""
    return e.KeyMismatch(
        f"The master key {key_id} is not the one that opens this database ({recorded}).",
        key_id=key_id,
        recorded=recorded,
    )


async def holders(tx: Tx) -> Holders:
    """Which master keys the database knows by name."""
    rows = await tx.fetch(
        "SELECT key, value FROM meta WHERE key IN (?, ?)", (MASTER_KEY_ID, AWAITED_ID)
    )
    found = {str(key): str(value) for key, value in rows}
    return Holders(found.get(MASTER_KEY_ID), found.get(AWAITED_ID))


SPAN = (WRAPPED, WRAPPED[:-1] + chr(ord(WRAPPED[-1]) + 1))
"""Between these lie the names of all rows that hold the data key."""
WRAPS = "SELECT key, value FROM meta WHERE key > ? AND key < ?"


async def drop_wraps(tx: Tx, kept: Collection[str | None]) -> None:
    """Leave no way to the data key but through these master keys."""
    for name, value in await tx.fetch(WRAPS, SPAN):
        if str(name).removeprefix(WRAPPED) not in kept:
            # What is deleted may stay legible in the file, for whoever has the old key.
            blank = "0" * len(str(value))
            await tx.execute("UPDATE meta SET value = ? WHERE key = ?", (blank, name))
            await tx.execute("DELETE FROM meta WHERE key = ?", (name,))


async def put_awaited(tx: Tx, key_id: str | None) -> None:
    """Remember which master key is awaited."""
    if key_id is None:
        await tx.execute("DELETE FROM meta WHERE key = ?", (AWAITED_ID,))
    else:
        await put(tx, AWAITED_ID, key_id)


async def put_once(tx: Tx, key: str, value: str) -> None:
    """Set a row of what the database knows of itself, unless it is there."""
    await tx.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", (key, value)
    )


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
    """Open a value sealed under this key for this purpose and row."""
    try:
        raw = decoded(sealed.encode("ascii"))
        nonce, ciphertext = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
        return crypto_aead_xchacha20poly1305_ietf_decrypt(
            ciphertext, place(purpose, row), nonce, key
        )
    # Whatever is wrong with it, the answer is the same; its content goes into no error.
    except (CryptoError, binascii.Error, UnicodeEncodeError, ValueError, TypeError):
        raise e.SealBroken(
            f"A {purpose} in the database cannot be opened: it was changed, or is not in its place."
        ) from None


def decoded(text: bytes) -> bytes:
    """What base64 stands for; spare bits at its end may not give it a second spelling."""
    raw = base64.b64decode(text, validate=True)
    if base64.b64encode(raw) != text:
        raise ValueError("not canonical")
    return raw


def place(purpose: str, row: str) -> bytes:
    """Where a sealed text belongs; purposes are names in the program and hold no NUL."""
    return f"{purpose}\0{row}".encode()
