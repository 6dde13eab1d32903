"""A hub with a scripted backend behind it, and people who meet it in a room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from folkmoot.app import Hub
from folkmoot.client import Room
from folkmoot.core.message import Response
from folkmoot.core.ports import Interceptor
from folkmoot.gateway.grants import Granting
from folkmoot.gateway.model import Inventory, UpstreamRequest
from folkmoot.rooms import read_patch
from folkmoot.rooms.live import LiveRoom
from folkmoot.settings import BackendSpec, GatewaySpec
from tests.client.support import SOON
from tests.gateway.scripted import Scripted, tool
from tests.transports.rooms.support import ROOM, Person, Town, settings

# What opens all of the backend at the hub.
EVERYTHING = ("github:*", "github://*", "mcp.request.prompts/get:github:*")


def spec(*namespaces: str) -> GatewaySpec:
    """Settings with these backends, which are reached by nobody but the test."""
    off: Any = {"command": ("x",), "enabled": False}
    backends = {name: BackendSpec(name=name, namespace=name, **off) for name in namespaces}
    return GatewaySpec(backends=backends)


class Slow(Scripted):
    """Begins what it is asked, and goes on when the test says so."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.given_up = asyncio.Event()

    async def request(self, wanted: UpstreamRequest) -> Response:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return await super().request(wanted)


class Village(Town):
    def __init__(self, hub: Hub, github: Scripted) -> None:
        super().__init__(hub)
        self.github = github
        self._granting = Granting(hub.behind.rights, hub.store, hub.clock, hub.accounts)

    async def owner(self, *patterns: str, **room: Any) -> Person:
        """Ann, who may use the backend and has a room with it."""
        ann = await self.person("ann")
        await self.grant(ann, *patterns)
        await self.room(ann, **{"backends": ["github"], **room})
        return ann

    async def grant(self, person: Person, *patterns: str) -> None:
        """Let someone use some of it at the hub."""
        await self._granting.grant(person.visitor.principal.name, patterns or EVERYTHING)

    async def revoke(self, person: Person) -> None:
        """Take everything back that was granted."""
        await self._granting.revoke(person.visitor.principal.name, (), everything=True)

    async def set(self, owner: Person, **patch: Any) -> None:
        """Set the room otherwise."""
        await self.hub.rooms.change(owner.visitor, ROOM, read_patch(patch))

    def at(self, person: Person | str) -> Room:
        """The room, to be entered by someone."""
        token = person if isinstance(person, str) else person.token
        return Room(self.hub.base_url, room=ROOM, token=token, backoff=SOON)

    async def live(self, person: Person) -> LiveRoom:
        """The room, as it is in memory."""
        return (await self.hub.rooms.enter(person.visitor, ROOM)).room

    async def said(self, person: Person, after: int) -> list[dict[str, Any]]:
        """What was said after a message, once something was."""
        page = await self.hub.rooms.messages(person.visitor, ROOM, after=after, wait=55)
        return [msgspec.json.decode(one) for one in page.messages]

    async def offers(self, github: Scripted, **inventory: Any) -> None:
        """Have a backend that lists this."""
        listed = {"tools": (tool("create_issue"), tool("deleteRepo")), **inventory}
        self.github = github
        self.hub.behind.gateway.attach(github)
        await self.hub.behind.gateway.arrived("github", Inventory(**listed))


@asynccontextmanager
async def village(
    folder: Path,
    github: Scripted | None = None,
    *,
    interceptors: Sequence[Interceptor] = (),
    inventory: dict[str, Any] | None = None,
    **values: object,
) -> AsyncIterator[Village]:
    """A hub with the backend `github`."""
    hub = Hub(settings(folder, **values), interceptors=interceptors, gateway=spec("github"))
    async with hub.running():
        there = Village(hub, github or Scripted("github"))
        await there.offers(there.github, **(inventory or {}))
        yield there
