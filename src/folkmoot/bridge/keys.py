"""The device keys of a person: one for each of their accounts, and those they had before.

They lie in one file beside the credentials; a private key is in it, or in the computer's keyring.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from folkmoot.bridge import osring
from folkmoot.bridge.boxes import DeviceKey
from folkmoot.bridge.files import locked, read_private, write_private
from folkmoot.core.errors import DeviceKeyUnusable

FILE_NAME: Final = "device-keys.json"
MOST_PREVIOUS: Final = 16
"""Earlier keys that are kept to read old mail with; the oldest goes first."""


class Kept(msgspec.Struct, omit_defaults=True):
    """One key as the file has it: with its private half, or where the keyring has that."""

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
        """The key itself."""
        text = osring.get(self.public) if self.keyring else self.private
        if text is None:
            raise DeviceKeyUnusable(
                f"{source}: the keyring no longer has the key {self.public}; import it again."
            )
        key = DeviceKey.read(text, str(source))
        if key.public != self.public:
            raise DeviceKeyUnusable(f"{source}: a private key is not that of its public key.")
        return key


class Entry(msgspec.Struct, omit_defaults=True):
    """The keys of one account: the present one and earlier ones, the latest first."""

    hub: str
    handle: str
    current: Kept
    previous: list[Kept] = []


class _File(msgspec.Struct, omit_defaults=True):
    version: int = 1
    accounts: list[Entry] = []


class Keys:
    """An account's keys, opened: the first is the present one, the rest read old mail."""

    def __init__(self, entry: Entry, keys: list[DeviceKey]) -> None:
        self.entry = entry
        self.all = tuple(keys)

    @property
    def current(self) -> DeviceKey:
        """The key that seals, and is published."""
        return self.all[0]

    def own(self, public: str) -> DeviceKey | None:
        """The key of ours with this public half."""
        return next((key for key in self.all if key.public == public), None)


class KeyStore:
    """The file. Everyone who changes it waits for the others, and it is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

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
                entry = Entry(hub, handle, kept)
                file.accounts.append(entry)
        return self._opened(entry)

    def rotate(self, hub: str, handle: str, key: DeviceKey, now: float) -> Keys:
        """Put another key in place of the present one, which is kept for old mail."""
        with self._changing() as file:
            entry = _find(file, hub, handle)
            if entry is None:
                raise DeviceKeyUnusable(f"{self.path}: there is no key of @{handle} on {hub}.")
            entry.previous = [entry.current, *entry.previous][:MOST_PREVIOUS]
            entry.current = keep(key, now, keyring=entry.current.keyring)
        return self._opened(entry)

    def take(
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
                entry = Entry(hub, handle, merged[0])
                file.accounts.append(entry)
            entry.current, entry.previous = merged[0], merged[1 : MOST_PREVIOUS + 1]
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
            raise DeviceKeyUnusable(
                f"{self.path}: is not a valid file of device keys. Fix it or move it away."
            ) from None
        if file.version != 1:
            raise DeviceKeyUnusable(f"{self.path}: was written by a newer Folkmoot.")
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

    def _opened(self, entry: Entry) -> Keys:
        return Keys(entry, [kept.opened(self.path) for kept in (entry.current, *entry.previous)])


def keep(key: DeviceKey, now: float, *, keyring: bool) -> Kept:
    """A key as the file has it; one for the keyring is there before the file says so."""
    if keyring:
        osring.put(key.public, key.written())
        return Kept(key.public, keyring=True, made=int(now))
    return Kept(key.public, key.written(), made=int(now))


def _find(file: _File, hub: str, handle: str) -> Entry | None:
    return next((it for it in file.accounts if (it.hub, it.handle) == (hub, handle)), None)
