"""A proxy in front of one server: on standard input and output, or on a port."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import msgspec

from folkmoot.core.errors import ServerUnreachable
from folkmoot.core.strict import Limits
from folkmoot.mcp.carrier import PROXY_LIMITS, Carrier, Connect
from folkmoot.mcp.server.stdio import StdioFront
from folkmoot.proxy.sessions import SessionLimits, SessionManager
from folkmoot.relay.carrying import carry
from folkmoot.relay.steps import Steps

if TYPE_CHECKING:
    from folkmoot.core.errors import TapeUnwritable
    from folkmoot.mcp.client.target import HttpTarget


class Upstream(msgspec.Struct, frozen=True):
    """The server: how a conversation with it is begun, and its address if it is Streamable HTTP."""

    connect: Connect
    target: HttpTarget | None = None
    told: bool = False
    """Whether the server is told what clients on HTTP say of themselves, such as who they are."""


class ProxyOptions(msgspec.Struct, frozen=True):
    """What can be chosen for a proxy."""

    limits: Limits = PROXY_LIMITS
    sessions: SessionLimits = SessionLimits()
    eras: bool = True
    """Whether a client and a server of different eras are helped to understand each other."""
    discoverable: bool = False
    """Whether `server/discover` is answered in the place of a server that does not know it."""
    headers: tuple[str, ...] = ()
    """Headers of clients that are passed on besides the usual ones."""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


class Proxy:
    """One proxy; it carries while one of its two ways of serving runs."""

    def __init__(
        self,
        upstream: Upstream,
        steps: Steps,
        options: ProxyOptions | None = None,
        failed: asyncio.Future[TapeUnwritable] | None = None,
    ) -> None:
        self.upstream = upstream
        self.steps = steps
        self.options = options or ProxyOptions()
        self.sessions = SessionManager(steps.clock, self.options.sessions)
        self._failed = failed

    async def ended(self) -> None:
        """Wait for a tape that cannot be written, which ends a proxy that listens: it is raised."""
        if self._failed is None:
            await asyncio.Event().wait()
        else:
            raise await self._failed

    async def serve_stdio(self) -> None:
        """Carry the one conversation on standard input and output, until its client leaves.

        Raises `ServerUnreachable` when the server leaves before.
        """
        front = StdioFront(self.steps.clock, limits=self.options.limits)
        await front.open()
        if await self._carry(front):
            raise ServerUnreachable("The server has ended.")

    async def carry(self, client: Carrier) -> None:
        """Carry one conversation, until it ends."""
        await self._carry(client)

    async def _carry(self, client: Carrier) -> bool:
        named = client.session.session_id
        key = secrets.token_hex(16) if named is None else named.value
        return await carry(
            client,
            self.upstream.connect,
            self.steps,
            self.sessions,
            key=key,
            eras=self.options.eras,
            discoverable=self.options.discoverable,
        )

    def listening(self, host: str, port: int) -> AbstractAsyncContextManager[str]:
        """Serve HTTP at `/mcp`, and HTTP+SSE at `/sse`, while entered; the address it has."""
        # An HTTP server takes half a second to import, which standard input need not wait for.
        from folkmoot.relay.listening import listening

        return listening(self, host, port)
