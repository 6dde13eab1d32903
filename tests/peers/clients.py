"""The SDK's own client, on any transport, and what it hears besides the answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import mcp_types as types
from anyio import BrokenResourceError
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.peers.servers import Place
from tests.process import environment

LEGACY: Final = "legacy"
MODERN: Final = "2026-07-28"
SECONDS: Final = 60.0
MOST: Final = 64 * 1024 * 1024


class Ears:
    """What a client is told and asked; it answers every question in the same way."""

    def __init__(self) -> None:
        self.notices: list[Any] = []
        self.asked: list[Any] = []
        self._news = asyncio.Event()

    async def hear(self, message: Any) -> None:
        """Take whatever the server says by itself."""
        if isinstance(message, Exception):
            raise message
        self.notices.append(message.model_dump(by_alias=True, exclude_none=True))
        self._news.set()

    async def until(self, method: str, seconds: float = SECONDS, *, count: int = 1) -> Any:
        """The first notification of a method, once there is one, or so many."""
        async with asyncio.timeout(seconds):
            while True:
                found = [each for each in self.notices if each.get("method") == method]
                if len(found) >= count:
                    return found[0]
                self._news.clear()
                await self._news.wait()

    async def sample(self, _: Any, params: types.CreateMessageRequestParams) -> Any:
        """Answer in the place of a model."""
        self.asked.append(params.model_dump(by_alias=True, exclude_none=True))
        text = types.TextContent(type="text", text="The model says ✓")
        return types.CreateMessageResult(
            role="assistant", content=text, model="none", stop_reason="endTurn"
        )

    async def elicit(self, _: Any, params: types.ElicitRequestParams) -> Any:
        """Answer in the place of a person."""
        self.asked.append(params.model_dump(by_alias=True, exclude_none=True))
        return types.ElicitResult(action="accept", content={"name": "Ada", "integer": 7})

    async def roots(self, _: Any) -> Any:
        """The folders of the client."""
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada", name="home")])

    def callbacks(self) -> dict[str, Any]:
        """The options of a client with these ears."""
        return {
            "message_handler": self.hear,
            "sampling_callback": self.sample,
            "elicitation_callback": self.elicit,
            "list_roots_callback": self.roots,
        }


@asynccontextmanager
async def client_of(
    place: Place, ears: Ears | None = None, *, mode: str = LEGACY
) -> AsyncIterator[Client]:
    """The SDK's client of a server, while entered; without ears it declares nothing."""
    options: dict[str, Any] = {} if ears is None else ears.callbacks()
    left = False
    try:
        async with (
            _transport(place) as transport,
            Client(transport, mode=mode, **options) as client,
        ):
            yield client
            left = True
    except* BrokenResourceError:
        # The SDK fails if it is closed while the answer to a call that it cancelled arrives.
        if not left:
            raise


@asynccontextmanager
async def _transport(place: Place) -> AsyncIterator[Any]:
    if place.transport == "stdio":
        command, *arguments = place.command
        with Path("/dev/null").open("w") as log:  # noqa: ASYNC230 - never waits
            told = StdioServerParameters(command=command, args=arguments, env=environment())
            yield stdio_client(told, errlog=log)
    elif place.transport == "sse":
        yield sse_client(place.url, httpx_client_factory=_http)
    else:
        async with _http() as http:
            yield streamable_http_client(place.url, http_client=http)


def _http(
    headers: dict[str, str] | None = None, timeout: Any = SECONDS, auth: Any = None
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, verify=False)


def command_of(*arguments: str) -> Place:
    """A command of ours that speaks on standard input and output."""
    return Place("stdio", (sys.executable, "-m", "folkmoot", *arguments))
