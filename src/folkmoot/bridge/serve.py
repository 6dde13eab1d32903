"""The bridge on standard input and output, for the client that started it."""

from __future__ import annotations

import secrets
from functools import partial

from folkmoot.bridge.bridge import Account, Places, bridging
from folkmoot.bridge.device import Warn
from folkmoot.bridge.handover import Handover
from folkmoot.clock import SystemClock
from folkmoot.core.errors import HubUnreachable
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.http import HttpLink
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.mcp.server.stdio import StdioFront
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.sessions import SessionManager
from folkmoot.relay.carrying import carry
from folkmoot.relay.steps import Steps


async def serve_bridge(account: Account, places: Places, warn: Warn) -> None:
    """Carry the client's conversation with the hub, until one of them ends it."""
    clock = SystemClock()
    headers = Headers.of([("authorization", f"Bearer {account.token}")])
    async with (
        bridging(account, places, clock, warn) as bridge,
        HttpTarget(f"{account.hub}/mcp", headers=headers) as target,
    ):
        try:
            await bridge.device.ready()
        except HubUnreachable as error:
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
