"""The bridge of one account: its parts, put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from folkmoot.bridge.device import Device, Warn
from folkmoot.bridge.guarding import Guarding
from folkmoot.bridge.hub import SideHub
from folkmoot.bridge.keys import KeyStore
from folkmoot.bridge.ledger import Ledger
from folkmoot.bridge.marking import Marker
from folkmoot.bridge.opening import Opening
from folkmoot.bridge.peers import Peers
from folkmoot.bridge.sealing import Sealing
from folkmoot.bridge.telling import Telling
from folkmoot.core.ports import Clock, Interceptor
from folkmoot.taskgroups import group

LAST_SECONDS: Final = 2.0
"""How long what was read last may take to be marked when the bridge ends."""


class Account(msgspec.Struct, frozen=True):
    """Whose mail it is, and what opens the hub for them."""

    hub: str
    handle: str
    token: str

    def __repr__(self) -> str:
        return f"Account(@{self.handle} on {self.hub})"


class Places(msgspec.Struct, frozen=True):
    """Where the bridge keeps its keys and its ledger, and whether new keys go to the keyring."""

    keys: Path
    ledger: Path
    keyring: bool = False


class Bridge(msgspec.Struct, frozen=True):
    """The interceptors in their order, and those parts that others need."""

    device: Device
    ledger: Ledger
    marker: Marker
    interceptors: tuple[Interceptor, ...]


@asynccontextmanager
async def bridging(
    account: Account, places: Places, clock: Clock, warn: Warn
) -> AsyncIterator[Bridge]:
    """A bridge at work, while entered; what was read last is marked before it ends."""
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(SideHub(account.hub, account.token))
        ledger = Ledger(places.ledger)
        stack.callback(ledger.close)
        store = KeyStore(places.keys)
        device = Device(
            hub, account.handle, store, ledger, clock, keyring=places.keyring, warn=warn
        )
        peers, marker = Peers(hub, ledger, device, clock), Marker(hub, warn)
        interceptors: tuple[Interceptor, ...] = (
            Guarding(device),
            Sealing(device, peers, ledger, hub, clock),
            Opening(device, peers, ledger, marker),
            Telling(device, ledger, marker),
        )
        async with group() as tasks:
            marking = tasks.create_task(marker.run())
            try:
                yield Bridge(device, ledger, marker, interceptors)
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST_SECONDS):
                        await marker.settled()
                marking.cancel()
