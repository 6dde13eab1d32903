"""A proxy before an HTTP server that does what a test wants, and a client without a library."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx2

from folkmoot.clock import SystemClock
from folkmoot.core.ports import Carried, Interceptor
from folkmoot.mcp.client.http import HttpLink
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.mcp.framing import EventReader, SseEvent
from folkmoot.proxy.chain import Chain
from folkmoot.relay.proxy import Proxy, ProxyOptions, Upstream
from folkmoot.relay.steps import Steps
from tests.mcp.client.places import Asked, Place
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
    ) -> AsyncIterator[Reading]:
        """A request whose answer is read as it comes."""
        body = None if message is None else json.dumps(message).encode()
        asking = self.http.stream(method, self.url, content=body, headers=BOTH | named(headers))
        async with asking as answer:
            yield Reading(answer)

    def told(self) -> list[tuple[str, Any]]:
        """What is on the tape: directions, and methods or ids."""
        return [(way_of(each), what(each.envelope.message)) for each in self.tape.carried]


class Reading:
    """A stream that is read event by event."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.status = answer.status_code
        self._chunks = answer.aiter_bytes()
        self._reader = EventReader(2**27)
        self._events: list[SseEvent] = []

    async def next(self) -> SseEvent:
        """The next event."""
        while not self._events:
            self._events = self._reader.feed(await anext(self._chunks))
        return self._events.pop(0)

    async def all(self) -> list[SseEvent]:
        """Every event until the stream ends."""
        async for chunk in self._chunks:
            self._events += self._reader.feed(chunk)
        return self._events


def named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def way_of(carried: Carried) -> str:
    return carried.envelope.context.direction.value


def what(message: Any) -> Any:
    return getattr(message, "method", None) or message.id


@asynccontextmanager
async def before(
    url: str, interceptors: Sequence[Interceptor] = (), **options: Any
) -> AsyncIterator[Standing]:
    """A proxy before a Streamable HTTP server."""
    clock, tape = SystemClock(), MemoryTape()
    async with HttpTarget(url) as target, httpx2.AsyncClient(verify=False, timeout=30) as http:
        upstream = Upstream(partial(HttpLink, target, clock), target)
        proxy = Proxy(upstream, Steps(Chain(interceptors), tape, clock), ProxyOptions(**options))
        async with proxy.listening("127.0.0.1", 0) as there:
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
