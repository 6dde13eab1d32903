"""The device: its account, its key, and whether the hub names that key as the account's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from folkmoot.bridge.boxes import fingerprint
from folkmoot.bridge.hub import SideHub
from folkmoot.bridge.keys import Keys, KeyStore
from folkmoot.bridge.ledger import Ledger
from folkmoot.bridge.letter import FORMATS, VERSION, reads_letters
from folkmoot.core.errors import AnswerInvalid, DeviceKeyUnusable, FolkmootError
from folkmoot.core.ports import Clock

Warn = Callable[[str], None]


class Device:
    """Ready once the hub was asked who we are; until then nothing is sealed or opened."""

    def __init__(
        self,
        hub: SideHub,
        handle: str,
        store: KeyStore,
        ledger: Ledger,
        clock: Clock,
        *,
        keyring: bool = False,
        warn: Warn = lambda _: None,
    ) -> None:
        self._hub = hub
        self._given = handle
        self._store = store
        self._ledger = ledger
        self._clock = clock
        self._keyring = keyring
        self._warn = warn
        self._keys: Keys | None = None
        self._lock = asyncio.Lock()
        self.handle = handle
        self.names: frozenset[str] = frozenset()
        """Every handle the account is known to have had."""
        self.problem = ""
        """Why nothing can be sealed with this device's key; empty when all is well."""

    @property
    def keys(self) -> Keys:
        """The account's keys."""
        if self._keys is None:
            raise DeviceKeyUnusable("The hub was not asked yet who you are.")
        return self._keys

    @property
    def owner(self) -> str:
        """What the ledger knows the account by."""
        return self.keys.current.public

    async def ready(self) -> None:
        """Know the account and have its key published, if that has not been done."""
        async with self._lock:
            if self._keys is None:
                await self._settle(await self._hub.call("msg/whoami"))

    async def look_again(self) -> None:
        """Ask the hub anew who we are: the handle may have changed elsewhere."""
        async with self._lock:
            await self._settle(await self._hub.call("msg/whoami"))

    def check_usable(self) -> None:
        """Raise if what this device seals could not be verified by its reader."""
        if self.problem:
            raise DeviceKeyUnusable(self.problem)

    async def _settle(self, profile: dict[str, Any]) -> None:
        handle, published = profile.get("handle"), profile.get("client_public_key")
        if not isinstance(handle, str) or not isinstance(published, str | None):
            raise AnswerInvalid("The hub's answer to 'who am I' cannot be understood.")
        keys = await asyncio.to_thread(self._find, handle, published or "")
        problem = ""
        # A hub that knows nothing of formats would refuse to be told of them.
        formats = FORMATS in profile
        public = keys.current.public
        if not published:
            if await asyncio.to_thread(self._ledger.was_published, public):
                self._warn("the hub no longer named this device's key, so it was published again.")
            await self._publish(public, formats=formats)
        elif published != public:
            problem = foreign(handle, published, public)
        elif formats and not reads_letters(profile):
            await self._publish(public, formats=True)
        if problem and problem != self.problem:
            self._warn(problem)
        if not problem:
            await asyncio.to_thread(self._ledger.note_published, keys.current.public)
        await asyncio.to_thread(self._name, keys, handle)
        self.handle, self.problem, self._keys = handle, problem, keys

    def _find(self, handle: str, published: str) -> Keys:
        """The key of the account, by its handle of now or of before; a fresh one if it has none."""
        hub = self._hub.url
        for find, by in (
            (self._store.find, handle),
            (self._store.find_published, published),
            (self._store.find, self._given),
        ):
            if (keys := find(hub, by)) is not None:
                if keys.entry.handle != handle:
                    self._store.rename(keys, handle)
                if self._ledger.is_new and self._keys is None:
                    self._warn(
                        f"{self._ledger.path} was missing: correspondents' keys are trusted "
                        "again at first contact."
                    )
                return keys
        keys = self._store.make(hub, handle, self._clock.now(), keyring=self._keyring)
        self._warn(
            f"made a device key for @{handle}: {fingerprint(keys.current.public)}. Keep a copy "
            "with 'folkmoot bridge key export FILE': without the key, mail sealed for it is lost."
        )
        return keys

    async def _publish(self, public: str, *, formats: bool) -> None:
        """Have the hub name this key, and say that its owner reads letters."""
        more = {FORMATS: [VERSION]} if formats else {}
        try:
            await self._hub.call("msg/set_profile", client_public_key=public, **more)
        except FolkmootError as error:
            raise DeviceKeyUnusable(
                f"The device key cannot be published: {error.message}"
            ) from None

    def _name(self, keys: Keys, handle: str) -> None:
        self._ledger.add_name(keys.current.public, handle)
        self.names = frozenset(self._ledger.own_names(keys.current.public))


def foreign(handle: str, published: str, own: str) -> str:
    """What to do when the hub names another device's key as the account's."""
    return (
        f"The hub names another key for @{handle} ({shown(published)}) than this device's "
        f"({fingerprint(own)}), so this device seals nothing, and what is sealed for that key "
        "does not open here. If the other is your other device, bring its key here with 'folkmoot "
        "bridge key export' there and 'folkmoot bridge key import' here; to put this device's key "
        "in its place, run 'folkmoot bridge key publish --replace'."
    )


def shown(public: str) -> str:
    """The fingerprint of a key that may be none."""
    try:
        return fingerprint(public)
    except FolkmootError:
        return "which is no key"
