"""One hub on several nodes in one process, each with connections to PostgreSQL and to NATS."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from folkmoot.core import errors as e
from folkmoot.rooms import Visitor
from tests import nats, postgres
from tests.clocks import StillClock
from tests.rooms.gathering import Ear, Gathering, chat, gathered

# Longer than a busy machine lets a process wait; who dies ends its lease at once.
LEASE_SECONDS = 10.0


class Member(Gathering):
    """One node of the hub."""

    bus: Any = None
    stack: Any = None

    async def host(self, owner: Visitor, **spec: Any) -> tuple[Ear, Any]:
        """Make a room, and come in."""
        await self.create(owner, **spec)
        return await self.join(owner)

    async def said(self, visitor: Visitor) -> bytes:
        """All that was said in the room."""
        page = await self.rooms.messages(visitor, "square", limit=50)
        return b"".join(map(bytes, page.messages))

    async def say_at_last(self, visitor: Visitor, text: str, **members: Any) -> None:
        """Say something as soon as a node has the room."""
        while True:
            with suppress(e.RoomUnavailable):
                await self.rooms.post(visitor, "square", chat(text, **members))
                return
            await asyncio.sleep(0.2)

    def hear_nothing(self) -> None:
        """Let what other nodes send be lost."""
        self.bus.receive(lambda *_: None)

    async def execute(self, sql: str, *given: Any) -> None:
        async with self.store._pool.acquire() as connection:
            await connection.execute(sql, *given)

    async def count(self, table: str) -> int:
        async with self.store._pool.acquire() as connection:
            return int(await connection.fetchval(f"SELECT COUNT(*) FROM {table}"))

    async def stop(self) -> None:
        """Stop as a hub does: rooms are handed over."""
        await self.stack.aclose()

    async def die(self) -> None:
        """Do nothing more, without a word: the bus is cut and the lease ends."""
        self.hear_nothing()
        self.bus.send = lambda *_: False
        await self.execute("UPDATE nodes SET until = 0 WHERE boot = $1", self.bus.node)
        self.store._lease.is_lost = True


@asynccontextmanager
async def running_nodes(
    folder: Path, count: int = 2, urls: Sequence[str] = ("", "", "")
) -> AsyncIterator[list[Member]]:
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
            hub = await gathered(store, clock, node_bus=bus)
            await stack.enter_async_context(hub.rooms.running())
            nodes.append(Member(store, clock, hub.accounts, hub.rooms, bus=bus, stack=stack))
        await nats.until(lambda: all(one.bus.peers == count - 1 for one in nodes))
        yield nodes
