"""Whose key is whose: a correspondent's key is trusted when first met, and then held to."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from folkmoot.bridge.boxes import check_public, fingerprint
from folkmoot.bridge.device import Device
from folkmoot.bridge.hub import SideHub
from folkmoot.bridge.ledger import Ledger, Pin
from folkmoot.bridge.letter import reads_letters
from folkmoot.bridge.modes import NEW, PINNED, VERIFIED
from folkmoot.core.errors import (
    AnswerInvalid,
    CannotSend,
    CannotSendToSelf,
    PeerKeyChanged,
    PeerKeyInvalid,
    ToolRefused,
)
from folkmoot.core.ports import Clock


class Recipient(msgspec.Struct, frozen=True):
    """Whom a message is for, and the key to seal it with; without one the hub can read it."""

    handle: str
    key: str | None
    standing: str = ""
    """How far the key is known to be theirs: new, pinned or verified."""
    letters: bool = False
    """Whether they read letters; everyone reads plain text."""
    note: str = ""


class Peers:
    """Asks the hub for keys, and believes it only where nothing else is known."""

    def __init__(self, hub: SideHub, ledger: Ledger, device: Device, clock: Clock) -> None:
        self._hub = hub
        self._ledger = ledger
        self._device = device
        self._clock = clock

    async def recipient(self, asked: str) -> Recipient:
        """Whom to write to; raises rather than seal with another key than the pinned one."""
        asked = plain_handle(asked)
        pinned = await self._pins(asked)
        try:
            profile = await self._hub.call("msg/lookup", handle=asked)
        except ToolRefused:
            if pinned:
                raise gone(pinned[0]) from None
            if await self._is_listed(asked):
                # They take mail from contacts only; these are the hub's words to a stranger.
                raise ToolRefused(CannotSend.sentence) from None
            raise
        handle = named(profile)
        if handle == self._device.handle:
            raise CannotSendToSelf
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
        held = Pin(
            handle,
            key,
            0,
            letters=reads_letters(profile) or any(pin.letters for pin in pinned),
            verified=any(pin.verified for pin in pinned),
        )
        for name in dict.fromkeys((handle, asked)):
            await asyncio.to_thread(self._trust, name, held)
        if handle != asked:
            await asyncio.to_thread(self._ledger.rename, self._owner, asked, handle)
        standing = standing_of(held) if pinned else NEW
        note = "" if pinned else first_met(handle, key)
        return Recipient(handle, key, standing, held.letters, note)

    async def _is_listed(self, handle: str) -> bool:
        """Whether a search finds someone whom looking up does not."""
        try:
            found = await self._hub.call("msg/search_users", query=handle)
        except ToolRefused:
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
        except ToolRefused:
            if offered is not None:
                found = Pin(handle, self._usable(handle, offered), 0)
                await asyncio.to_thread(self._trust, handle, found)

    async def follow(self, was: str, handle: str) -> bool:
        """Whether someone with a pinned key is called otherwise now, by their old handle."""
        if await asyncio.to_thread(self._ledger.renamed, self._owner, was, handle):
            return True
        if await asyncio.to_thread(self._ledger.pin_of, self._owner, was) is None:
            return False
        try:
            return (await self.recipient(was)).handle == handle
        except (ToolRefused, CannotSendToSelf, PeerKeyChanged, PeerKeyInvalid):
            return False

    @property
    def _owner(self) -> str:
        return self._device.owner

    async def _pins(self, handle: str) -> list[Pin]:
        pin = await asyncio.to_thread(self._ledger.pin_of, self._owner, handle)
        return [pin] if pin is not None and pin.key else []

    def _trust(self, handle: str, found: Pin) -> None:
        """Hold to a key under a handle, with what is known about it."""
        with self._ledger.changing():
            held = self._ledger.trust(self._owner, handle, found.key, self._clock.now())
            if held.key != found.key:
                raise changed(held, found.key)
            if found.letters and not held.letters:
                self._ledger.note_letters(self._owner, handle, found.key)
            if found.verified and not held.verified:
                self._ledger.note_verified(self._owner, handle, found.key)

    def _usable(self, handle: str, offered: Any) -> str:
        key = check_public(offered)
        if self._device.keys.own(key) is not None:
            raise PeerKeyInvalid(f"The hub names this device's own key as @{handle}'s.")
        return key


def plain_handle(text: str) -> str:
    """A handle as it is stored: without the @, in lower case."""
    return text.strip().removeprefix("@").lower()


def named(profile: dict[str, Any]) -> str:
    """The present handle in a profile."""
    handle = profile.get("handle")
    if not isinstance(handle, str) or not handle:
        raise AnswerInvalid("The hub's answer to a lookup cannot be understood.")
    return plain_handle(handle)


def changed(pin: Pin, key: str) -> PeerKeyChanged:
    """That a key is another than the pinned one, with what people compare."""
    return PeerKeyChanged(
        f"The key of @{pin.handle} has changed, so nothing was sent: it was "
        f"{fingerprint(pin.key)} and is said to be {fingerprint(key)} now. Ask @{pin.handle}, not "
        "over this hub, whether the new fingerprint is theirs; if it is, run 'folkmoot bridge "
        f"peers accept @{pin.handle}'.",
        handle=pin.handle,
        pinned=fingerprint(pin.key),
        offered=fingerprint(key),
    )


def gone(pin: Pin) -> PeerKeyChanged:
    """That a pinned key is not named any more."""
    return PeerKeyChanged(
        f"The hub no longer names a key of @{pin.handle}, so nothing was sent: the hub "
        f"could read what you write. It was {fingerprint(pin.key)}. If @{pin.handle} "
        f"really has no key now, run 'folkmoot bridge peers accept @{pin.handle}'.",
        handle=pin.handle,
        pinned=fingerprint(pin.key),
    )


def standing_of(pin: Pin) -> str:
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
