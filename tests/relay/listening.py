"""A proxy that listens, in front of a command or of a server that does what a test wants."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from folkmoot.clock import SystemClock
from folkmoot.proxy.tape import TapeSide
from folkmoot.relay.proxy import ProxiedServer, Proxy, ProxyOptions, assembled
from tests.harness import Answer, ask
from tests.mcp.server import played

BOTH = "application/json, text/event-stream"


class Listening(NamedTuple):
    """A proxy and its port."""

    proxy: Proxy
    port: int

    async def post(self, message: Any, **headers: str) -> Answer:
        """Send a message; `mcp_session_id=` names the header `mcp-session-id`."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        named = {"content-type": "application/json", "accept": BOTH}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await ask(self.port, "/mcp", method="POST", headers=named, body=body)


@asynccontextmanager
async def listening(
    *command: str, url: str = "", options: ProxyOptions | None = None
) -> AsyncIterator[Listening]:
    """A proxy, while entered."""
    server = ProxiedServer(command, url, "http")
    async with (
        assembled(server, SystemClock(), client=TapeSide("http"), options=options) as proxy,
        proxy.listening("127.0.0.1", 0) as where,
    ):
        yield Listening(proxy, int(where.rpartition(":")[2]))


def initialize(id_: Any = 0, version: str = "2025-11-25") -> dict[str, Any]:
    return played.initialize(version) | {"id": id_}
