"""A hub with a room in it, and people who come to it on WebSockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close

from folkmoot.app import Hub
from folkmoot.core.ports import Clock
from folkmoot.rooms import Visitor, read_spec
from tests.mcp_harness import settings
from tests.nodes import running

ROOM = "plaza"


class Person(NamedTuple):
    """Someone with an account."""

    token: str
    visitor: Visitor


class Town:
    """A running hub."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub

    async def person(self, handle: str, **arguments: Any) -> Person:
        token = (await self.hub.accounts.register(handle, **arguments)).token
        return Person(token, await self.hub.rooms.authenticate(token))

    async def room(self, owner: Person, name: str = ROOM, **spec: Any) -> None:
        """A new room; everyone may come in and do anything, unless told."""
        given = {"name": name, "access": "open", "capabilities": ["*"], **spec}
        await self.hub.rooms.create(owner.visitor, read_spec(given))

    def url(self, token: str = "", **query: object) -> str:
        """Where a room is joined."""
        given = {"room": ROOM, **({"token": token} if token else {}), **query}
        scheme, _, place = self.hub.base_url.partition("://")
        return f"{scheme.replace('http', 'ws')}://{place}/ws?{urlencode(given)}"

    @asynccontextmanager
    async def joined(self, token: str, **query: object) -> AsyncIterator[Seat]:
        """Someone who has come in and read the welcome."""
        async with connect(self.url(token, **query), max_size=None, compression=None) as socket:
            welcome = json.loads(await socket.recv())
            assert welcome["kind"] == "system.welcome"
            yield Seat(socket, welcome)


@asynccontextmanager
async def town(folder: Path, clock: Clock | None = None, **values: object) -> AsyncIterator[Town]:
    """A hub and nothing in it."""
    async with running(settings(folder, **values), clock) as hub:
        yield Town(hub)


class Seat:
    """One connection in a room."""

    def __init__(self, socket: ClientConnection, welcome: dict[str, Any]) -> None:
        self.socket = socket
        self.welcome = welcome["payload"]

    async def say(self, text: str, **members: object) -> None:
        """Chat."""
        await self.send({"kind": "chat.message", "payload": {"text": text}, **members})

    async def send(self, message: Mapping[str, object]) -> None:
        await self.socket.send(json.dumps({"protocol": "mcpx/v1", **message}))

    async def hear(self) -> dict[str, Any]:
        """The next message, whatever it is."""
        told: dict[str, Any] = json.loads(await self.socket.recv())
        return told

    async def heard(self, text: str) -> dict[str, Any]:
        """The next message that says this; presence and the like are passed over."""
        while True:
            told = await self.hear()
            if told["payload"].get("text") == text:
                return told

    async def ended(self) -> Close:
        """How the hub closes, once it does."""
        return await ending(self.socket)


async def ending(socket: ClientConnection) -> Close:
    """How the hub closes a connection, which it does without being asked."""
    with suppress(ConnectionClosed):
        while True:
            await socket.recv()
    end = socket.protocol.close_rcvd
    assert end is not None
    return end
