"""Whose key is whose: this device's key at the hub, and the pinned keys of correspondents.

A correspondent's key is trusted when first met; another one in its place is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import field

from folkmoot.bridge.calls import SideHub
from folkmoot.bridge.crypto import (
    FORMATS,
    VERSION,
    check_public,
    fingerprint,
    reads_letters,
)
from folkmoot.bridge.keys import Keys, KeyStore
from folkmoot.bridge.ledger import Ledger, PinnedKey
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.ports import Clock

BRIDGE: Final = "bridge"
"""The member of messages and results that is the bridge's own; a hub's is never passed on."""

E2E: Final = "e2e"
SERVER_ASSISTED: Final = "server_assisted"
NOT_VERIFIED: Final = "not_verified"

MODES: Final = {
    E2E: "Sealed between this device's key and the one pinned here for the other side. The hub "
    "could not read it, unless it named a key of its own when you first met: `key` says whether "
    "you have compared it.",
    SERVER_ASSISTED: "The hub handed it over as text, so it could read it, and could have written "
    "it.",
    NOT_VERIFIED: "Not shown. It does not open here, or is not what the hub says it is; `error` "
    "says why.",
}


NEW, PINNED, VERIFIED = "new", "pinned", "verified"
"""A correspondent's key: first seen now, the one seen before, or compared by the two people."""


def mark(mode: str, *, key: str = "", note: str = "", **more: Any) -> dict[str, Any]:
    """The bridge's note on one message; only a key compared by the user counts as verified."""
    said: dict[str, Any] = {"mode": mode, "verified": key == VERIFIED, **more}
    if key:
        said["key"] = key
    if note:
        said["note"] = note
    return said


Warn = Callable[[str], None]


class Device(Entity):
    """Ready once the hub was asked who we are; until then nothing is sealed or opened."""

    hub: SideHub
    given: str
    store: KeyStore
    ledger: Ledger
    clock: Clock
    keyring: bool = False
    warn: Warn = lambda _: None
    _keys: Keys | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    names: frozenset[str] = frozenset()
    """Every handle the account is known to have had."""
    problem: str = ""
    """Why nothing can be sealed with this device's key; empty when all is well."""

    def __post_init__(self) -> None:
        self.handle = self.given

    @property
    def keys(self) -> Keys:
        """The account's keys."""
        if self._keys is None:
            raise e.DeviceKeyUnusable("The hub was not asked yet who you are.")
        return self._keys

    @property
    def owner(self) -> str:
        """What the ledger knows the account by."""
        return self.keys.current.public

    async def ready(self) -> None:
        """Know the account and have its key published, if that has not been done."""
        async with self._lock:
            if self._keys is None:
                await self._resolve(await self.hub.call("msg/whoami"))

    async def look_again(self) -> None:
        """Ask the hub anew who we are: the handle may have changed elsewhere."""
        async with self._lock:
            await self._resolve(await self.hub.call("msg/whoami"))

    def check_usable(self) -> None:
        """Raise if what this device seals could not be verified by its reader."""
        if self.problem:
            raise e.DeviceKeyUnusable(self.problem)

    async def _resolve(self, profile: dict[str, Any]) -> None:
        handle, published = profile.get("handle"), profile.get("client_public_key")
        if not isinstance(handle, str) or not isinstance(published, str | None):
            raise e.AnswerInvalid("The hub's answer to 'who am I' cannot be understood.")
        keys = await asyncio.to_thread(self._find, handle, published or "")
        problem = ""
        # A hub that knows nothing of formats would refuse to be told of them.
        formats = FORMATS in profile
        public = keys.current.public
        if not published:
            if await asyncio.to_thread(self.ledger.was_published, public):
                self.warn("the hub no longer named this device's key, so it was published again.")
            problem = await self._publish(public, formats=formats)
        elif published != public:
            problem = foreign(handle, published, public)
        elif formats and not reads_letters(profile):
            problem = await self._publish(public, formats=True)
        if problem and problem != self.problem:
            self.warn(problem)
        if not problem:
            await asyncio.to_thread(self.ledger.note_published, keys.current.public)
        await asyncio.to_thread(self._name, keys, handle)
        self.handle, self.problem, self._keys = handle, problem, keys

    def _find(self, handle: str, published: str) -> Keys:
        """The key of the account, by its handle of now or of before; a fresh one if it has none."""
        hub = self.hub.url
        for find, by in (
            (self.store.find, handle),
            (self.store.find_published, published),
            (self.store.find, self.given),
        ):
            if (keys := find(hub, by)) is not None:
                if keys.entry.handle != handle:
                    self.store.rename(keys, handle)
                if self.ledger.is_new and self._keys is None:
                    self.warn(
                        f"{self.ledger.path} was missing: correspondents' keys are trusted "
                        "again at first contact."
                    )
                return keys
        keys = self.store.make(hub, handle, self.clock.now(), keyring=self.keyring)
        self.warn(
            f"made a device key for @{handle}: {fingerprint(keys.current.public)}. Keep a copy "
            "with 'folkmoot bridge key export FILE': without the key, mail sealed for it is lost."
        )
        return keys

    async def _publish(self, public: str, *, formats: bool) -> str:
        """Have the hub name this key, and say that its owner reads letters; why it does not."""
        more = {FORMATS: [VERSION]} if formats else {}
        try:
            await self.hub.call("msg/set_profile", client_public_key=public, **more)
        except e.ToolRefused as error:
            return (
                f"The hub does not take this device's key ({error.message.rstrip('.')}), so this "
                "device seals nothing. Create a token that can change your account in the hub's "
                "pages, and save it here with 'folkmoot account add'."
            )
        except e.FolkmootError as error:
            raise e.DeviceKeyUnusable(
                f"The device key cannot be published: {error.message}"
            ) from None
        return ""

    def _name(self, keys: Keys, handle: str) -> None:
        self.ledger.add_name(keys.current.public, handle)
        self.names = frozenset(self.ledger.own_names(keys.current.public))


def foreign(handle: str, published: str, own: str) -> str:
    """What to do when the hub names another device's key as the account's."""
    return (
        f"The hub names another key for @{handle} ({fingerprint_or_none(published)}) than this "
        f"device's ({fingerprint(own)}), so this device seals nothing, and what is sealed for "
        "that key does not open here. If the other is your other device, bring its key here with "
        "'folkmoot bridge key export' there and 'folkmoot bridge key import' here; to put this "
        "device's key in its place, run 'folkmoot bridge key publish --replace'."
    )


def fingerprint_or_none(public: str) -> str:
    """The fingerprint of a key that may be none."""
    try:
        return fingerprint(public)
    except e.FolkmootError:
        return "which is no key"


class Recipient(msgspec.Struct, frozen=True):
    """Whom a message is for, and the key to seal it with; without one the hub can read it."""

    handle: str
    key: str | None
    standing: str = ""
    """How far the key is known to be theirs: new, pinned or verified."""
    letters: bool = False
    """Whether they read letters; everyone reads plain text."""
    note: str = ""


class Peers(Entity):
    """Asks the hub for keys, and believes it only where nothing else is known."""

    hub: SideHub
    ledger: Ledger
    device: Device
    clock: Clock

    async def recipient(self, asked: str) -> Recipient:
        """Whom to write to; raises rather than seal with another key than the pinned one."""
        asked = plain_handle(asked)
        pinned = await self._pins(asked)
        try:
            profile = await self.hub.call("msg/lookup", handle=asked)
        except e.ToolRefused:
            if pinned:
                raise gone(pinned[0]) from None
            if await self._is_listed(asked):
                # They take mail from contacts only; these are the hub's words to a stranger.
                raise e.ToolRefused(e.CannotSend.sentence) from None
            raise
        handle = named(profile)
        if handle == self.device.handle:
            raise e.CannotSendToSelf
        if handle != asked:
            pinned += await self._pins(handle)
        offered = profile.get("client_public_key")
        if not offered:
            if pinned:
                raise gone(pinned[0])
            return Recipient(handle, None)
        key = self._usable(handle, offered)
        for pin in pinned:
            if pin.key != key:
                raise changed(pin, key)
        held = PinnedKey(
            handle,
            key,
            0,
            letters=reads_letters(profile) or any(pin.letters for pin in pinned),
            verified=any(pin.verified for pin in pinned),
        )
        for name in dict.fromkeys((handle, asked)):
            await asyncio.to_thread(self._trust, name, held)
        if handle != asked:
            await asyncio.to_thread(self.ledger.rename, self._owner, asked, handle)
        standing = standing_of(held) if pinned else NEW
        note = "" if pinned else first_met(handle, key)
        return Recipient(handle, key, standing, held.letters, note)

    async def _is_listed(self, handle: str) -> bool:
        """Whether a search finds someone whom looking up does not."""
        try:
            found = await self.hub.call("msg/search_users", query=handle)
        except e.ToolRefused:
            return False
        results = found.get("results")
        return isinstance(results, list) and any(
            isinstance(each, dict) and each.get("handle") == handle for each in results
        )

    async def meet(self, handle: str, offered: str | None) -> None:
        """Pin someone new: the key the hub names, or that of a message of theirs if it hides it."""
        if await self._pins(handle):
            return
        try:
            await self.recipient(handle)
        except e.ToolRefused:
            if offered is not None:
                found = PinnedKey(handle, self._usable(handle, offered), 0)
                await asyncio.to_thread(self._trust, handle, found)

    async def follow(self, was: str, handle: str) -> bool:
        """Whether someone with a pinned key is called otherwise now, by their old handle."""
        if await asyncio.to_thread(self.ledger.renamed, self._owner, was, handle):
            return True
        if await asyncio.to_thread(self.ledger.pin_of, self._owner, was) is None:
            return False
        try:
            return (await self.recipient(was)).handle == handle
        except (e.ToolRefused, e.CannotSendToSelf, e.PeerKeyChanged, e.PeerKeyInvalid):
            return False

    @property
    def _owner(self) -> str:
        return self.device.owner

    async def _pins(self, handle: str) -> list[PinnedKey]:
        pin = await asyncio.to_thread(self.ledger.pin_of, self._owner, handle)
        return [pin] if pin is not None and pin.key else []

    def _trust(self, handle: str, found: PinnedKey) -> None:
        """Hold to a key under a handle, with what is known about it."""
        with self.ledger.changing():
            held = self.ledger.trust(self._owner, handle, found.key, self.clock.now())
            if held.key != found.key:
                raise changed(held, found.key)
            if found.letters and not held.letters:
                self.ledger.note_letters(self._owner, handle, found.key)
            if found.verified and not held.verified:
                self.ledger.note_verified(self._owner, handle, found.key)

    def _usable(self, handle: str, offered: Any) -> str:
        key = check_public(offered)
        if self.device.keys.own(key) is not None:
            raise e.PeerKeyInvalid(f"The hub names this device's own key as @{handle}'s.")
        return key


def plain_handle(text: str) -> str:
    """A handle as it is stored: without the @, in lower case."""
    return text.strip().removeprefix("@").lower()


def named(profile: dict[str, Any]) -> str:
    """The present handle in a profile."""
    handle = profile.get("handle")
    if not isinstance(handle, str) or not handle:
        raise e.AnswerInvalid("The hub's answer to a lookup cannot be understood.")
    return plain_handle(handle)


def changed(pin: PinnedKey, key: str) -> e.PeerKeyChanged:
    """That a key is another than the pinned one, with what people compare."""
    return e.PeerKeyChanged(
        f"The key of @{pin.handle} has changed, so nothing was sent: it was "
        f"{fingerprint(pin.key)} and is said to be {fingerprint(key)} now. Ask @{pin.handle}, not "
        "over this hub, whether the new fingerprint is theirs; if it is, run 'folkmoot bridge "
        f"peers accept @{pin.handle}'.",
        handle=pin.handle,
        pinned=fingerprint(pin.key),
        offered=fingerprint(key),
    )


def gone(pin: PinnedKey) -> e.PeerKeyChanged:
    """That a pinned key is not named any more."""
    return e.PeerKeyChanged(
        f"The hub no longer names a key of @{pin.handle}, so nothing was sent: the hub "
        f"could read what you write. It was {fingerprint(pin.key)}. If @{pin.handle} "
        f"really has no key now, run 'folkmoot bridge peers accept @{pin.handle}'.",
        handle=pin.handle,
        pinned=fingerprint(pin.key),
    )


def standing_of(pin: PinnedKey) -> str:
    """How far a pinned key is known to be its owner's."""
    return VERIFIED if pin.verified else PINNED


def first_met(handle: str, key: str) -> str:
    """What to say of a key that was trusted because there was none to compare it with."""
    return (
        f"This is the first message sealed for @{handle}. The hub names {fingerprint(key)} as "
        "their key, and from now on no other is accepted; nobody has verified it yet. To be sure, "
        "ask them for their fingerprint, not over this hub, and run 'folkmoot bridge peers verify "
        f"@{handle}'."
    )
