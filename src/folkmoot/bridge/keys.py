"""The device's private keys: in a file or the keyring, and exported to another device."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from nacl.exceptions import CryptoError
from nacl.pwhash import argon2id
from nacl.secret import SecretBox
from nacl.utils import random

from folkmoot.bridge.crypto import DeviceKey, decode, encode
from folkmoot.bridge.ledger import PinnedKey
from folkmoot.bridge.limits import (
    MAX_KDF_MEMORY,
    MAX_KDF_PASSES,
    MAX_KEY_FILE_BYTES,
    MAX_PREVIOUS_KEYS,
    MIN_DIFFERENT_CHARACTERS,
    MIN_PASSPHRASE,
)
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.staging import file_errors, staged

OTHERS: Final = 0o077


def read_private(path: Path) -> bytes | None:
    """The content of a file only its owner can read; None if there is no file."""
    with file_errors(path, e.DeviceKeyUnusable):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise e.DeviceKeyUnusable(f"{path}: is not a file.")
            if stat.S_IMODE(mode) & OTHERS:
                raise e.DeviceKeyUnusable(f"{path}: other users can read it. Run: chmod 600 {path}")
            content = file.read(MAX_KEY_FILE_BYTES + 1)
    if len(content) > MAX_KEY_FILE_BYTES:
        raise e.DeviceKeyUnusable(f"{path}: is larger than such a file can be.")
    return content


def write_private(path: Path, content: bytes) -> None:
    """Put a whole file in place at once, on the disk when done, readable by its owner alone."""
    with file_errors(path, e.DeviceKeyUnusable):
        make_folder(path.parent)
        with staged(path, content) as part:
            part.replace(path)
            sync_folder(path.parent)


def put_new(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet, readable by its owner alone."""
    with file_errors(path, e.DeviceKeyUnusable):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let nobody else change a file meanwhile; they wait."""
    with file_errors(path, e.DeviceKeyUnusable):
        make_folder(path.parent)
        # Kept beside the file, which is replaced: a lock on it would be one on the old file.
        lock = path.with_name(f"{path.name}.lock").open("wb")
    with lock:
        with file_errors(path, e.DeviceKeyUnusable):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner can enter, unless it is there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


SERVICE: Final = "folkmoot device key"
LEAST_PRIORITY: Final = 1
"""What `keyring` recommends; below it are those that keep nothing or keep it readable."""


def backend() -> Any:
    """The keyring of this computer; an error that says what to do where there is none."""
    try:
        # A fifth of a second to import, which only those who keep their key there pay.
        import keyring
    except ImportError:
        raise e.DeviceKeyUnusable(
            "The keyring needs the package 'keyring': install folkmoot[keyring], or leave "
            "--keyring out to keep the key in a file."
        ) from None
    found = keyring.get_keyring()
    if found.priority < LEAST_PRIORITY:
        raise e.DeviceKeyUnusable(
            "This computer has no keyring to keep a key in; leave --keyring out to keep it in a "
            "file."
        )
    return found


def put(public: str, private: str) -> None:
    """Save a private key in the keyring, under its public key."""
    ring = backend()
    try:
        ring.set_password(SERVICE, public, private)
    except Exception as error:
        raise failed(error) from error


def get(public: str) -> str | None:
    """The private key that belongs to a public one, if it is kept."""
    ring = backend()
    try:
        found: str | None = ring.get_password(SERVICE, public)
    except Exception as error:
        raise failed(error) from error
    return found


def failed(error: Exception) -> e.DeviceKeyUnusable:
    """What a keyring of whatever kind said; its own words may hold anything."""
    return e.DeviceKeyUnusable(f"The keyring refused ({type(error).__name__}): is it unlocked?")


FILE_NAME: Final = "device-keys.json"


class StoredKey(msgspec.Struct, omit_defaults=True):
    """One key in the file: with its private half, or a note that the keyring has it."""

    public: str
    private: str = ""
    keyring: bool = False
    made: int = 0

    def __repr__(self) -> str:
        return f"Kept({self.public})"

    @property
    def place(self) -> str:
        """Where the private half is."""
        return "keyring" if self.keyring else "file"

    def opened(self, source: Path) -> DeviceKey:
        text = get(self.public) if self.keyring else self.private
        if text is None:
            raise e.DeviceKeyUnusable(
                f"{source}: the keyring no longer has the key {self.public}; import it again."
            )
        key = DeviceKey.read(text, str(source))
        if key.public != self.public:
            raise e.DeviceKeyUnusable(f"{source}: a private key is not that of its public key.")
        return key


class AccountKeys(msgspec.Struct, omit_defaults=True):
    """The keys of one account: the present one and earlier ones, the latest first."""

    hub: str
    handle: str
    current: StoredKey
    previous: list[StoredKey] = []


class _File(msgspec.Struct, omit_defaults=True):
    version: int = 1
    accounts: list[AccountKeys] = []


class Keys:
    """An account's keys, opened: the first is the present one, the rest read old mail."""

    def __init__(self, entry: AccountKeys, keys: list[DeviceKey]) -> None:
        self.entry = entry
        self.all = tuple(keys)

    @property
    def current(self) -> DeviceKey:
        """The key that seals, and is published."""
        return self.all[0]

    def own(self, public: str) -> DeviceKey | None:
        """The key of ours with this public half."""
        return next((key for key in self.all if key.public == public), None)


class KeyStore(Entity):
    """The file of keys. Writers take turns, and each replaces the file as a whole."""

    path: Path

    def find(self, hub: str, handle: str) -> Keys | None:
        """The keys of an account."""
        entry = _find(self._read(), hub, handle)
        return None if entry is None else self._opened(entry)

    def find_published(self, hub: str, public: str) -> Keys | None:
        """The keys of an account on a hub by the one that is published, whatever it is called."""
        for entry in self._read().accounts:
            if entry.hub == hub and entry.current.public == public:
                return self._opened(entry)
        return None

    def make(self, hub: str, handle: str, now: float, *, keyring: bool = False) -> Keys:
        """The keys of an account, with a fresh one if it has none."""
        with self._changing() as file:
            entry = _find(file, hub, handle)
            if entry is None:
                kept = keep(DeviceKey.fresh(), now, keyring=keyring)
                entry = AccountKeys(hub, handle, kept)
                file.accounts.append(entry)
        return self._opened(entry)

    def rotate(self, hub: str, handle: str, key: DeviceKey, now: float) -> Keys:
        """Put another key in place of the present one, which is kept for old mail."""
        with self._changing() as file:
            entry = _find(file, hub, handle)
            if entry is None:
                raise e.DeviceKeyUnusable(f"{self.path}: there is no key of @{handle} on {hub}.")
            entry.previous = [entry.current, *entry.previous][:MAX_PREVIOUS_KEYS]
            entry.current = keep(key, now, keyring=entry.current.keyring)
        return self._opened(entry)

    def adopt(
        self, hub: str, handle: str, keys: list[DeviceKey], now: float, *, keyring: bool = False
    ) -> Keys:
        """Keep keys that were brought from elsewhere; what was the present one reads old mail."""
        with self._changing() as file:
            entry = _find(file, hub, handle)
            brought = [keep(key, now, keyring=keyring) for key in keys]
            known = [] if entry is None else [entry.current, *entry.previous]
            names = {kept.public for kept in brought}
            merged = [*brought, *(kept for kept in known if kept.public not in names)]
            if entry is None:
                entry = AccountKeys(hub, handle, merged[0])
                file.accounts.append(entry)
            entry.current, entry.previous = merged[0], merged[1 : MAX_PREVIOUS_KEYS + 1]
        return self._opened(entry)

    def rename(self, keys: Keys, handle: str) -> None:
        """Know an account by the handle it has now."""
        with self._changing() as file:
            for kept in file.accounts:
                if (kept.hub, kept.current.public) == (keys.entry.hub, keys.current.public):
                    kept.handle = handle

    def _read(self) -> _File:
        content = read_private(self.path)
        if content is None:
            return _File()
        try:
            file = msgspec.json.decode(content, type=_File)
        except msgspec.DecodeError:
            raise e.DeviceKeyUnusable(
                f"{self.path}: is not a valid file of device keys. Fix it or move it away."
            ) from None
        if file.version != 1:
            raise e.DeviceKeyUnusable(f"{self.path}: was written by a newer Folkmoot.")
        return file

    @contextmanager
    def _changing(self) -> Iterator[_File]:
        with locked(self.path):
            file = self._read()
            before = msgspec.json.encode(file)
            yield file
            after = msgspec.json.encode(file)
            if after != before:
                write_private(self.path, msgspec.json.format(after, indent=2) + b"\n")

    def _opened(self, entry: AccountKeys) -> Keys:
        return Keys(entry, [kept.opened(self.path) for kept in (entry.current, *entry.previous)])


def keep(key: DeviceKey, now: float, *, keyring: bool) -> StoredKey:
    """A key's entry in the file; the keyring has its private half before the file says so."""
    if keyring:
        put(key.public, key.written())
        return StoredKey(key.public, keyring=True, made=int(now))
    return StoredKey(key.public, key.written(), made=int(now))


def _find(file: _File, hub: str, handle: str) -> AccountKeys | None:
    return next((it for it in file.accounts if (it.hub, it.handle) == (hub, handle)), None)


FORMAT: Final = "folkmoot-device-key"
VERSION: Final = 1


class Cost(msgspec.Struct, frozen=True):
    """What one guess at a passphrase costs: passes over so many bytes of memory."""

    passes: int = argon2id.OPSLIMIT_MODERATE
    memory: int = argon2id.MEMLIMIT_MODERATE


class KeyExport(msgspec.Struct, frozen=True):
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


class ImportedKeys(msgspec.Struct, frozen=True):
    """The content of an import: the present key, earlier keys, and pinned keys of others."""

    hub: str
    handle: str
    keys: list[str]
    pins: list[PinnedKey] = []

    def __repr__(self) -> str:
        return f"Brought(@{self.handle} on {self.hub})"

    def opened(self) -> list[DeviceKey]:
        return [DeviceKey.read(text, "The file") for text in self.keys]


def check_passphrase(passphrase: str) -> None:
    """Refuse a passphrase that is soon guessed."""
    if len(passphrase) < MIN_PASSPHRASE or len(set(passphrase)) < MIN_DIFFERENT_CHARACTERS:
        raise e.DeviceKeyUnusable(
            f"The passphrase is too easy to guess: take at least {MIN_PASSPHRASE} characters, "
            "such as five words picked at random."
        )


def pack(keys: Keys, pins: list[PinnedKey], passphrase: str, cost: Cost | None = None) -> bytes:
    """The file that takes an account's keys elsewhere."""
    check_passphrase(passphrase)
    cost = cost or Cost()
    entry = keys.entry
    brought = ImportedKeys(entry.hub, entry.handle, [key.written() for key in keys.all], pins)
    salt = random(argon2id.SALTBYTES)
    box = SecretBox(derive(passphrase, salt, cost)).encrypt(msgspec.json.encode(brought))
    export = KeyExport(
        FORMAT, VERSION, entry.hub, entry.handle, "argon2id", cost.passes, cost.memory,
        encode(salt), encode(box),
    )  # fmt: skip
    return msgspec.json.format(msgspec.json.encode(export), indent=2) + b"\n"


def unpack(content: bytes, passphrase: str, source: str) -> ImportedKeys:
    """What a file brings, if the passphrase opens it."""
    try:
        export = msgspec.json.decode(content, type=KeyExport)
        salt, box = decode(export.salt), decode(export.box)
    except (msgspec.DecodeError, ValueError):
        raise e.DeviceKeyUnusable(f"{source}: is not an exported device key.") from None
    if export.version != VERSION:
        raise e.DeviceKeyUnusable(f"{source}: was written by a newer Folkmoot.")
    if not (1 <= export.passes <= MAX_KDF_PASSES and export.memory <= MAX_KDF_MEMORY):
        raise e.DeviceKeyUnusable(
            f"{source}: asks for more memory or time than any such file needs."
        )
    try:
        key = derive(passphrase, salt, Cost(export.passes, export.memory))
        brought = msgspec.json.decode(SecretBox(key).decrypt(box), type=ImportedKeys)
    except CryptoError:
        raise e.DeviceKeyUnusable(
            f"{source}: the passphrase is wrong, or the file was changed."
        ) from None
    except (msgspec.DecodeError, ValueError):
        raise e.DeviceKeyUnusable(f"{source}: is not an exported device key.") from None
    if not brought.keys:
        raise e.DeviceKeyUnusable(f"{source}: holds no key.")
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
