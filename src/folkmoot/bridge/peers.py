"""Whose key is whose: a correspondent's key is trusted when first met, and then held to."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from folkmoot.bridge.boxes import check_public, fingerprint
from folkmoot.bridge.device import Device
from folkmoot.bridge.hub import SideHub
from folkmoot.bridge.ledger import Ledger, Pin
from folkmoot.core.errors import AnswerInvalid, PeerKeyChanged, PeerKeyInvalid, ToolRefused
from folkmoot.core.ports import Clock


class Recipient(msgspec.Struct, frozen=True):
    """Whom a message is for, and the key to seal it with; without one the hub can read it."""

    handle: str
    key: str | None
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
            raise
        handle = named(profile)
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
        note = "" if pinned else first_met(handle, key)
        for name in dict.fromkeys((handle, asked)):
            await asyncio.to_thread(self._trust, name, key)
        if handle != asked:
            await asyncio.to_thread(self._ledger.rename, self._owner, asked, handle)
        return Recipient(handle, key, note)

    async def meet(self, handle: str, offered: str | None) -> None:
        """Pin someone new: the key the hub names, or that of a message of theirs if it hides it."""
        if await self._pins(handle):
            return
        try:
            await self.recipient(handle)
        except ToolRefused:
            if offered is not None:
                await asyncio.to_thread(self._trust, handle, self._usable(handle, offered))

    async def follow(self, was: str, handle: str) -> bool:
        """Whether someone with a pinned key is called otherwise now, by their old handle."""
        if await asyncio.to_thread(self._ledger.renamed, self._owner, was, handle):
            return True
        if await asyncio.to_thread(self._ledger.pin_of, self._owner, was) is None:
            return False
        try:
            return (await self.recipient(was)).handle == handle
        except (ToolRefused, PeerKeyChanged, PeerKeyInvalid):
            return False

    @property
    def _owner(self) -> str:
        return self._device.owner

    async def _pins(self, handle: str) -> list[Pin]:
        pin = await asyncio.to_thread(self._ledger.pin_of, self._owner, handle)
        return [pin] if pin is not None and pin.key else []

    def _trust(self, handle: str, key: str) -> None:
        held = self._ledger.trust(self._owner, handle, key, self._clock.now())
        if held.key != key:
            raise changed(held, key)

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
        f"The hub no longer names a key of @{pin.handle}, so nothing was sent: what you write "
        f"would be readable to the hub. It was {fingerprint(pin.key)}. If @{pin.handle} really "
        f"has none any more, run 'folkmoot bridge peers accept @{pin.handle}'.",
        handle=pin.handle,
        pinned=fingerprint(pin.key),
    )


def first_met(handle: str, key: str) -> str:
    """What to say when a key was trusted because there was none to compare it with."""
    return (
        f"This is the first message sealed for @{handle}; the key {fingerprint(key)} is trusted "
        "from now on. Compare it with them if it matters."
    )
