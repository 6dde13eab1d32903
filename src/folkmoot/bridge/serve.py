"""The bridge of one account, run on standard input and output for the client that started it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from folkmoot.bridge.calls import SideHub
from folkmoot.bridge.identity import Device, Peers, Warn
from folkmoot.bridge.keys import KeyStore
from folkmoot.bridge.ledger import Ledger
from folkmoot.bridge.limits import LAST_MARK_SECONDS
from folkmoot.bridge.mail import MailDecryption, MailEncryption
from folkmoot.bridge.reading import Marker
from folkmoot.bridge.tools import CallGuard, ToolDescriptions
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import ProtocolMessage
from folkmoot.core.ports import Clock, Interceptor
from folkmoot.core.transport import Headers, TransportContext
from folkmoot.mcp.carrier import Carrier
from folkmoot.mcp.client.http import HttpLink
from folkmoot.mcp.client.target import HttpTarget, TokenSource
from folkmoot.mcp.server.stdio import StdioFront
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.sessions import SessionManager
from folkmoot.relay.pump import carry
from folkmoot.relay.steps import Steps
from folkmoot.taskgroups import group


class Handover(Carrier):
    """A transport that reports each message it has taken."""

    def __init__(self, inner: Carrier, handed: Callable[[MessageEnvelope[Any]], None]) -> None:
        super().__init__(inner.receives, inner.clock, inner.limits)
        self._inner = inner
        self._handed = handed

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        """The next message of the client."""
        return await self._inner.receive_envelope()

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Hand a message to the client."""
        await self._inner.send_envelope(envelope)
        self._handed(envelope)

    def current_context(self) -> TransportContext:
        """What the carrier can say of itself."""
        return self._inner.current_context()

    async def close(self) -> None:
        """End it in good order."""
        await self._inner.close()

    @property
    def waiting(self) -> bool:
        """Whether a message was received already."""
        return self._inner.waiting


class BridgeAccount(msgspec.Struct, frozen=True):
    """The account whose mail is bridged, with its token for the hub."""

    hub: str
    handle: str
    token: str
    tokens: TokenSource | None = None
    """Gives the token of the moment, where it does not last."""

    def __repr__(self) -> str:
        return f"Account(@{self.handle} on {self.hub})"


class BridgeFiles(msgspec.Struct, frozen=True):
    """Where the bridge keeps its keys and its ledger, and whether new keys go to the keyring."""

    keys: Path
    ledger: Path
    keyring: bool = False


class Bridge(msgspec.Struct, frozen=True):
    """The interceptors in their order, and the parts shared with others."""

    device: Device
    ledger: Ledger
    marker: Marker
    interceptors: tuple[Interceptor, ...]


@asynccontextmanager
async def open_bridge(
    account: BridgeAccount, places: BridgeFiles, clock: Clock, warn: Warn
) -> AsyncIterator[Bridge]:
    """A bridge at work, while entered; what was read last is marked before it ends."""
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(SideHub(account.hub, account.token, account.tokens))
        ledger = Ledger(places.ledger)
        stack.callback(ledger.close)
        store = KeyStore(places.keys)
        device = Device(
            hub, account.handle, store, ledger, clock, keyring=places.keyring, warn=warn
        )
        peers, marker = Peers(hub, ledger, device, clock), Marker(hub, warn)
        interceptors: tuple[Interceptor, ...] = (
            CallGuard(device),
            MailEncryption(device, peers, ledger, hub, clock),
            MailDecryption(device, peers, ledger, marker),
            ToolDescriptions(device, ledger, marker),
        )
        async with group() as tasks:
            marking = tasks.create_task(marker.run())
            try:
                yield Bridge(device, ledger, marker, interceptors)
            finally:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST_MARK_SECONDS):
                        await marker.wait_marked()
                marking.cancel()


async def serve_bridge(account: BridgeAccount, places: BridgeFiles, warn: Warn) -> None:
    """Carry the client's conversation with the hub, until one of them ends it."""
    clock = SystemClock()
    headers = Headers.of([("authorization", f"Bearer {account.token}")])
    async with (
        open_bridge(account, places, clock, warn) as bridge,
        HttpTarget(f"{account.hub}/mcp", headers=headers, tokens=account.tokens) as target,
    ):
        try:
            await bridge.device.ready()
        except e.HubUnreachable as error:
            warn(f"{error.message} The bridge goes on, and asks again when it is used.")
        front = StdioFront(clock)
        await front.open()
        await carry(
            Handover(front, bridge.marker.handed),
            partial(HttpLink, target, clock),
            Steps(Chain(bridge.interceptors), None, clock),
            SessionManager(clock),
            key=secrets.token_hex(16),
        )
