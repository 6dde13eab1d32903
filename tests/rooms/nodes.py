"""One hub on several nodes in one process, each with connections to PostgreSQL and to NATS."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from folkmoot.accounts import Accounts
from folkmoot.rooms import RoomOptions, Rooms, Visitor, read_spec, visitor_of
from folkmoot.vault import Vault
from tests import nats, postgres
from tests.mail.support import KEY, StillClock
from tests.rooms.gathering import Ear, Ears

LEASE_SECONDS = 10.0
"""Longer than a busy machine lets a process wait; who dies ends its lease at once."""


class Member:
    """One node of the hub."""

    def __init__(
        self, bus: Any, store: Any, accounts: Accounts, rooms: Rooms, stack: AsyncExitStack
    ) -> None:
        self.bus, self.store, self.accounts, self.rooms = bus, store, accounts, rooms
        self._stack = stack

    async def create(self, owner: Visitor, name: str = "square", **spec: Any) -> None:
        await self.rooms.create(owner, read_spec({"name": name, **spec}))

    async def join(
        self, visitor: Visitor, name: str = "square", ear: Ear | None = None, **how: Any
    ) -> tuple[Ear, Any]:
        """Come in, and wait for the welcome."""
        ear = ear or Ear()
        room, role = await self.rooms.enter(visitor, name)
        room.join(ear, visitor, role, **how)
        await ear.until_kind("system.welcome")
        return ear, room

    async def host(self, owner: Visitor, **spec: Any) -> tuple[Ear, Any]:
        """Make a room, and come in."""
        await self.create(owner, **spec)
        return await self.join(owner)

    async def said(self, visitor: Visitor) -> bytes:
        """All that was said in the room."""
        page = await self.rooms.messages(visitor, "square", limit=50)
        return b"".join(bytes(each) for each in page.messages)

    def hear_nothing(self) -> None:
        """Let what other nodes send be lost."""
        self.bus.receive(lambda *_: None)

    async def stop(self) -> None:
        """Stop as a hub does: rooms are handed over."""
        await self._stack.aclose()

    async def die(self) -> None:
        """Do nothing more, without a word: the bus is cut and the lease ends."""
        self.hear_nothing()
        self.bus.send = lambda *_: False
        async with self.store._pool.acquire() as connection:
            await connection.execute("UPDATE nodes SET until = 0 WHERE boot = $1", self.bus.node)
        self.store._lease.is_lost = True


class Nodes:
    """All nodes, and the people of the hub."""

    def __init__(self, nodes: list[Member], accounts: Accounts) -> None:
        self.nodes, self.accounts = nodes, accounts

    async def person(self, handle: str) -> Visitor:
        return visitor_of((await self.accounts.register(handle)).account)


@asynccontextmanager
async def running_nodes(
    folder: Path, count: int = 2, urls: Sequence[str] = ("", "", "")
) -> AsyncIterator[Nodes]:
    """Some nodes, each of which may have a NATS server of its own."""
    from folkmoot.store.postgres import HubNode, PostgresStore

    url = await postgres.schema_of(folder)
    key, clock, nodes = secrets.token_bytes(32), StillClock(), []
    async with AsyncExitStack() as all_nodes:
        for number in range(count):
            stack = await all_nodes.enter_async_context(AsyncExitStack())
            bus = await stack.enter_async_context(nats.node(urls[number], key))
            node = HubNode(f"node{number}", bus.node, shared=True, lease_seconds=LEASE_SECONDS)
            store = await PostgresStore.open(url, connections=3, node=node, shared=bus)
            stack.push_async_callback(store.close)
            vault = await Vault.load(store, KEY)
            accounts = Accounts(store, clock, vault, policy="open", owners=store.room_owners)
            rooms = Rooms(
                store,
                clock,
                accounts,
                epoch=store.identity.epoch,
                crowd=Ears,
                options=RoomOptions(chat={}),
                owners=store.room_owners,
                node_bus=bus,
            )
            await stack.enter_async_context(rooms.running())
            nodes.append(Member(bus, store, accounts, rooms, stack))
        await nats.until(lambda: all(one.bus.peers == count - 1 for one in nodes))
        yield Nodes(nodes, nodes[0].accounts)
