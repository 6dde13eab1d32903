"""A proxy before an HTTP server that does what a test wants, and a client without a library."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import httpx2

from folkmoot.clock import SystemClock
from folkmoot.core.ports import Interceptor
from folkmoot.mcp.client.http import HttpLink
from folkmoot.mcp.client.stdio import StdioLink
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.proxy.chain import Chain
from folkmoot.relay.proxy import Proxy, ProxyOptions, Upstream
from folkmoot.relay.steps import Steps
from tests.mcp.client.places import Asked, Place
from tests.mcp.server.played import Events
from tests.relay.carriers import MemoryTape

BOTH = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


class Standing:
    """The proxy, what stands behind it, and how to reach it."""

    def __init__(self, url: str, proxy: Proxy, tape: MemoryTape, http: httpx2.AsyncClient) -> None:
        self.url = url
        self.proxy = proxy
        self.tape = tape
        self.http = http

    async def post(self, message: Any, **headers: str) -> httpx2.Response:
        """One message, and the whole answer to it."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.http.post(self.url, content=body, headers=BOTH | named(headers))

    @asynccontextmanager
    async def stream(
        self, method: str, message: Any = None, **headers: str
    ) -> AsyncIterator[Events]:
        """A request whose answer is read as it comes."""
        body = None if message is None else json.dumps(message).encode()
        asking = self.http.stream(method, self.url, content=body, headers=BOTH | named(headers))
        async with asking as answer:
            yield Events(answer)

    def told(self) -> list[tuple[str, Any]]:
        """What is on the tape: directions, and methods or ids."""
        passed = [each.envelope for each in self.tape.carried]
        return [
            (each.context.direction.value, getattr(each.message, "method", "") or each.message.id)
            for each in passed
        ]


def named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@asynccontextmanager
async def before(
    url: str | Sequence[str], interceptors: Sequence[Interceptor] = (), **options: Any
) -> AsyncIterator[Standing]:
    """A proxy before a Streamable HTTP server, or before a command."""
    clock, tape = SystemClock(), MemoryTape()
    steps = Steps(Chain(interceptors), tape, clock)
    async with AsyncExitStack() as stack:
        if isinstance(url, str):
            target = await stack.enter_async_context(HttpTarget(url))
            upstream = Upstream(partial(HttpLink, target, clock), target)
        else:
            upstream = Upstream(partial(StdioLink, url, clock))
        http = await stack.enter_async_context(httpx2.AsyncClient(verify=False, timeout=30))
        proxy = Proxy(upstream, steps, ProxyOptions(**options))
        there = await stack.enter_async_context(proxy.listening("127.0.0.1", 0))
        yield Standing(f"{there}/mcp", proxy, tape, http)


@asynccontextmanager
async def standing(
    do: Callable[[Asked], Awaitable[None]],
    interceptors: Sequence[Interceptor] = (),
    **options: Any,
) -> AsyncIterator[tuple[Standing, Place]]:
    """A proxy before a server that does this with every request; eras are let be."""
    options.setdefault("eras", False)
    async with Place(do).open() as place, before(place.url, interceptors, **options) as proxy:
        yield proxy, place
