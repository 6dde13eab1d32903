"""What tests take for one hub: one, or with `TEST_NODES=3` three nodes behind a load balancer.

The nodes have one PostgreSQL and one NATS. Each connection goes to a node chosen at random, once
the nodes have heard what was published before; how soon they must is what `test_two_hubs.py` and
`test_revocation.py` are about. A failed test prints the seed: set `TEST_SEED` to it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import httpx2
import msgspec

from folkmoot.app import Hub
from folkmoot.core.ports import Clock, Interceptor
from folkmoot.settings import GatewaySpec, Settings
from folkmoot.settings.model import BusSettings, ClusterSettings
from tests import nats, postgres
from tests.ports import free_port
from tests.stores import NODES, ON_POSTGRES

SEED = int((os.environ.get("TEST_SEED") or "1").partition(":")[0])
KEY = "ab" * 32
# Of each node to PostgreSQL: tests ask little at a time, and a server has few.
CONNECTIONS = 3
CHUNK_BYTES = 1 << 16
# How long the balancer waits at most for what was published to be heard everywhere.
HEARD_SECONDS = 30.0
LEASE_SECONDS = 60


@asynccontextmanager
async def running(
    given: Settings,
    clock: Clock | None = None,
    interceptors: Sequence[Interceptor] = (),
    *,
    gateway: GatewaySpec | None = None,
) -> AsyncIterator[Hub]:
    """A hub with these settings, on the store and the number of nodes that the run asks for."""
    if not ON_POSTGRES or given.store.url:
        async with Hub(given, clock, interceptors, gateway=gateway).running() as hub:
            yield hub
        return
    url = await postgres.schema_of(given.data_folder)
    store = msgspec.structs.replace(given.store, url=url, connections=CONNECTIONS)
    given = msgspec.structs.replace(given, store=store, master_key=given.master_key or KEY)
    if NODES == 1:
        async with Hub(given, clock, interceptors, gateway=gateway).running() as hub:
            yield hub
        return
    async with AsyncExitStack() as stack:
        hubs = []
        for number in range(NODES):
            hub = Hub(settings_of(given, number), clock, interceptors, gateway=gateway)
            hubs.append(await stack.enter_async_context(hub.running()))
        await nats.until(lambda: all(hub.bus.peers == NODES - 1 for hub in hubs))
        balancer = await stack.enter_async_context(LoadBalancer(hubs).listening(given.port))
        yield cast("Hub", SeveralNodes(hubs, balancer))


class Nodes(list[Hub]):
    """The nodes of one hub, which can be stopped one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.stacks: list[AsyncExitStack] = []

    async def stop(self, place: int) -> None:
        """Stop a node in good order."""
        await self.stacks[place].aclose()


@asynccontextmanager
async def several(
    folder: Path,
    count: int = 2,
    *,
    begun: Callable[[Nodes], Awaitable[None]] | None = None,
    **options: Any,
) -> AsyncIterator[Nodes]:
    """Nodes on one database and bus, started one after the other."""
    nodes = Nodes()
    async with AsyncExitStack() as whole:
        for number in range(count):
            nodes.stacks.append(await whole.enter_async_context(AsyncExitStack()))
            hub = await node(folder, number, **options)
            nodes.append(await nodes.stacks[-1].enter_async_context(hub.running()))
            if begun is not None:
                await begun(nodes)
        yield nodes


async def node(
    folder: Path, number: int, *, gateway: GatewaySpec | None = None, bus: str = "", **values: Any
) -> Hub:
    """A node of the hub that a folder stands for."""
    lease_seconds = values.pop("lease_seconds", LEASE_SECONDS)
    store = {"url": await postgres.schema_of(folder), "connections": CONNECTIONS}
    known = {"data": str(folder / "data"), "master_key": KEY, "rate_limits": "off", "store": store}
    given = msgspec.convert({**known, **values}, Settings)
    return Hub(settings_of(given, number, bus, lease_seconds), gateway=gateway)


def settings_of(
    given: Settings, number: int, bus: str = "", lease_seconds: float = LEASE_SECONDS
) -> Settings:
    """The settings of a node, with a lease that does not lapse on a busy machine."""
    port = free_port()
    cluster = {"address": f"http://127.0.0.1:{port}", "lease_seconds": lease_seconds}
    return msgspec.structs.replace(
        given,
        data=f"{given.data_folder}.{number}" if number else given.data,
        port=port,
        bus=msgspec.convert({"url": bus or nats.SHARED[0].url}, BusSettings),
        cluster=msgspec.convert(cluster, ClusterSettings),
    )


async def move(hub: Hub, address: str) -> None:
    """Have the other nodes think that a node is somewhere else."""
    store: Any = hub.store
    store._lease.node = msgspec.structs.replace(store._lease.node, address=address)
    async with store._pool.acquire() as connection:
        await store._lease.renew(connection)


def port(hub: Hub) -> int:
    return int(hub.base_url.rpartition(":")[2])


def nodes_of(hub: Hub) -> list[Hub]:
    """Every node of what a test takes for one hub."""
    return hub.nodes if isinstance(hub, SeveralNodes) else [hub]


async def heard_everywhere(hub: Hub) -> None:
    """Wait until what one node published was heard by all."""
    if isinstance(hub, SeveralNodes):
        await hub.balancer.heard()


class SeveralNodes:
    """Several nodes as one hub: whoever asks for a service gets that of any node."""

    def __init__(self, nodes: list[Hub], balancer: LoadBalancer) -> None:
        self.nodes = nodes
        self.balancer = balancer
        self.settings = nodes[0].settings
        self.base_url = f"http://127.0.0.1:{balancer.port}"

    def __getattr__(self, name: str) -> Any:
        parts = [getattr(node, name) for node in self.nodes]
        return AllTogether(parts) if name in {"bus", "mcp", "metrics", "rest"} else chosen(parts)

    def stop(self, *, force: bool = False) -> None:
        for node in self.nodes:
            node.stop(force=force)


class AllTogether:
    """The same part of every node: numbers are added, and tables are put together."""

    def __init__(self, of_each: list[Any]) -> None:
        self._of_each = of_each

    def __getattr__(self, name: str) -> Any:
        found = [getattr(part, name) for part in self._of_each]
        if all(isinstance(each, int) for each in found):
            return sum(found)
        if all(isinstance(each, dict) for each in found):
            return {key: value for each in found for key, value in each.items()}
        if all(isinstance(each, set | list) for each in found):
            return [value for each in found for value in each]
        return chosen(found) if callable(found[0]) else AllTogether(found)

    def __len__(self) -> int:
        return sum(map(len, self._of_each))


if NODES > 1:
    # Each request is on a connection of its own, and so goes to any node.
    limits = httpx2.Limits(max_keepalive_connections=0)
    cast("Any", httpx2.AsyncClient.__init__).__kwdefaults__["limits"] = limits

_chance = random.Random(SEED)


def begin(test: str) -> None:
    """Begin the choices of a test, which are the same in every run with one seed."""
    _chance.seed(f"{SEED} {test}")


def chosen(among: Sequence[Any]) -> Any:
    return _chance.choice(among)


class LoadBalancer:
    """Passes each connection on to one of the nodes."""

    port = 0

    def __init__(self, nodes: list[Hub]) -> None:
        self._nodes = nodes
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[LoadBalancer]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(ConnectionError, asyncio.CancelledError):
            try:
                await self._pass_on(reader, writer)
            finally:
                writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.heard()
        number = port(chosen(self._nodes))
        source = (writer.get_extra_info("peername")[0], 0)
        there, back = await asyncio.open_connection("127.0.0.1", number, local_addr=source)
        try:
            sending = asyncio.create_task(pump(reader, back))
            try:
                await pump(there, writer)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        finally:
            back.transport.abort()

    async def heard(self) -> None:
        """Wait until every node has heard what the others published."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARD_SECONDS):
                while any(self._unheard()):  # noqa: ASYNC110 - nobody sets an event for it
                    await asyncio.sleep(0.001)

    def _unheard(self) -> Iterator[bool]:
        for node in self._nodes:
            for other in self._nodes:
                if node is not other and not node.bus._closed:
                    known = node.bus._reader._peers[bytes.fromhex(other.bus.node)]
                    yield known.events < other.bus._writer.published


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on all that comes, and then its end."""
    with suppress(ConnectionError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
