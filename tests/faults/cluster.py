"""Three hubs on one PostgreSQL and one NATS, each on a cable of its own that can be cut."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from tests.forge import forked
from tests.nats import NatsProcess
from tests.ports import free_port
from tests.postgres import PostgresServer
from tests.process import Process, environment

NODES = 3
LEASE_SECONDS = 2.0
# How long a node may take to give its rooms away, on a machine with much to do.
DRAIN_SECONDS = 120.0
CHUNK = 65_536
BACKEND = Path(__file__).with_name("tally_backend.py")

Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

LOG_LINES = 60


class Cut(Enum):
    """What is wrong with a cable."""

    # Connections end, and new ones do too.
    CLOSED = "closed"
    # Nothing passes; what was sent arrives when the cable is whole.
    HELD = "held"
    # What is asked arrives, and the answers are lost.
    DEAF = "deaf"


class Cable:
    """A port that leads to a server, unless it is cut."""

    def __init__(self, reach: Callable[[], Awaitable[Ends]]) -> None:
        self.reach = reach
        self._cut: Cut | None = None
        self._passes = asyncio.Event()
        self._passes.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server

    async def lay(self) -> int:
        """Begin; the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self, how: Cut) -> None:
        self._cut = how
        if how is Cut.CLOSED:
            self._abort()
        if how is Cut.HELD:
            self._passes.clear()

    def mend(self) -> None:
        if self._cut is Cut.DEAF:
            # A connection that lost something cannot go on.
            self._abort()
        self._cut = None
        self._passes.set()

    def _abort(self) -> None:
        for each in list(self._open):
            each.transport.abort()

    async def close(self) -> None:
        self._server.close()
        self.mend()
        while self._open:
            self._abort()
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        far: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError):
                await self._passes.wait()
                if self._cut is Cut.CLOSED:
                    return
                answers, far = await self.reach()
                self._open.add(far)
                both = (self._carry(reader, far), self._carry(answers, writer, back=True))
                tasks = [asyncio.ensure_future(each) for each in both]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for each in (writer, far):
                if each is not None:
                    self._open.discard(each)
                    each.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, back: bool = False
    ) -> None:
        while data := await reader.read(CHUNK):
            await self._passes.wait()
            if not (back and self._cut is Cut.DEAF):
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def cut(how: Cut, *cables: Cable) -> AsyncIterator[None]:
    """Cables that are cut meanwhile."""
    for cable in cables:
        cable.cut(how)
    yield
    for cable in cables:
        cable.mend()


class Node:
    """One hub of the cluster, as whoever runs it sees it."""

    def __init__(self, number: int, folder: Path, to_database: Cable, to_nats: Cable) -> None:
        self.number = number
        self.folder = folder
        self.to_database = to_database
        self.to_nats = to_nats
        self.port = free_port()
        self.variables: dict[str, str] = {}
        self._process: Process | None = None

    def __str__(self) -> str:
        return f"node {self.number}"

    async def start(self) -> None:
        """Start it, always at the same port."""
        self._process = await asyncio.to_thread(
            Process, self.folder, port=self.port, **self.variables
        )

    def log(self) -> str:
        """The last lines that it logged."""
        return "" if self._process is None else self._process.logged(LOG_LINES)

    def send(self, number: signal.Signals) -> None:
        assert self._process
        self._process.signal(number)

    async def kill(self) -> None:
        """End it at once."""
        await self._end(signal.SIGKILL, -signal.SIGKILL)

    async def stop(self) -> None:
        """Stop it in good order."""
        await self._end(signal.SIGTERM, 0)

    async def drain(self) -> None:
        """Have it give its rooms away, as an operator does."""
        ran = await asyncio.to_thread(
            forked.run,
            ["drain", "--data", str(self.folder)],
            env=environment(**self.variables),
            timeout=DRAIN_SECONDS,
        )
        assert ran.returncode == 0, ran
        assert "Drained" in ran.stdout

    async def _end(self, number: signal.Signals, expected: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.signal(number)
            code, said = await asyncio.to_thread(process.ended)
            process.__exit__()
            assert code == expected, (self.number, code, said[-2000:])


class Cluster:
    """The servers, the cables and the nodes."""

    def __init__(self, folder: Path, lease_seconds: float, tables: str = "") -> None:
        self.folder = folder
        self.tables = tables
        self.lease_seconds = lease_seconds
        self.tally = folder / "tally"
        self.journal = folder / "journal"
        self.primary: PostgresServer
        self.replica: PostgresServer | None = None
        self.nats: NatsProcess
        self.nodes: list[Node] = []

    async def _reach_database(self) -> Ends:
        return await asyncio.open_unix_connection(str(self.primary.folder / ".s.PGSQL.5432"))

    async def _reach_nats(self) -> Ends:
        return await asyncio.open_connection("127.0.0.1", self.nats.port)

    async def follow(self) -> None:
        """Give the database a replica that has all that is acknowledged."""
        self.replica = await asyncio.to_thread(PostgresServer, of=self.primary)
        await asyncio.to_thread(self.primary.wait_for_replica)

    def remove_replica(self) -> None:
        if self.replica is not None:
            self.replica.remove()

    async def fail_over(self) -> None:
        """The database's server ends, and its replica takes over."""
        old, new = self.primary, self.replica
        assert new is not None
        await asyncio.to_thread(old.kill)
        await asyncio.to_thread(new.promote)
        self.primary, self.replica = new, None
        await asyncio.to_thread(old.remove)

    async def lay(self, stack: AsyncExitStack) -> None:
        """Make everything but the nodes' processes."""
        key = secrets.token_urlsafe(32)
        for number in range(NODES):
            database, nats = Cable(self._reach_database), Cable(self._reach_nats)
            for cable in (database, nats):
                stack.push_async_callback(cable.close)
            node = Node(number, self.folder / f"node{number}", database, nats)
            node.folder.mkdir(mode=0o700, parents=True)
            config = node.folder / "folkmoot.toml"
            config.write_text(
                "[backends.tally]\n"
                f'command = ["{sys.executable}", "-I", "-S", "{BACKEND}", "{self.tally}"]\n'
                "everyone = true\n"
                "[backends.once]\n"
                f'command = ["{sys.executable}", "-I", "-S", "{BACKEND}", "{self.tally}.once", '
                f'"{self.journal}"]\n'
                f"everyone = true\nsingle = true\n{self.tables}"
            )
            at = f"127.0.0.1:{await database.lay()}"
            node.variables = {
                "FOLKMOOT_CONFIG": str(config),
                "FOLKMOOT_MASTER_KEY": key,
                "FOLKMOOT_RATE_LIMITS": "off",
                "FOLKMOOT_LOG_LEVEL": "warning",
                "FOLKMOOT_STORE_URL": f"postgresql://hub@{at}/postgres?sslmode=disable",
                "FOLKMOOT_STORE_SYNCHRONOUS_REPLICA": "true",
                "FOLKMOOT_BUS_URL": f"nats://127.0.0.1:{await nats.lay()}",
                "FOLKMOOT_CLUSTER_ADDRESS": f"http://127.0.0.1:{node.port}",
                "FOLKMOOT_CLUSTER_LEASE_SECONDS": str(self.lease_seconds),
            }
            stack.push_async_callback(node.kill)
            self.nodes.append(node)

    async def owners(self) -> dict[str, int]:
        """Which node has which room."""
        return await self._homes(
            "SELECT r.name, n.address FROM rooms r JOIN room_owners o ON o.room_id = r.id"
            " JOIN nodes n ON n.boot = o.owner"
        )

    async def linking(self) -> dict[str, int]:
        """Which node links which server that only one may link."""
        return await self._homes(
            "SELECT h.namespace, n.address FROM backend_homes h JOIN nodes n ON n.boot = h.process"
        )

    async def _homes(self, query: str) -> dict[str, int]:
        import asyncpg

        numbers = {node.variables["FOLKMOOT_CLUSTER_ADDRESS"]: node.number for node in self.nodes}
        connection = await asyncpg.connect(self.primary.url)
        try:
            rows = await connection.fetch(query)
        finally:
            await connection.close()
        return {name: numbers[address] for name, address in rows}


@asynccontextmanager
async def cluster(
    folder: Path,
    skews: tuple[float, ...] = (0.0,) * NODES,
    lease_seconds: float = LEASE_SECONDS,
    tables: str = "",
) -> AsyncIterator[Cluster]:
    """A hub of three nodes that runs; `tables` are more of their settings."""
    there = Cluster(folder, lease_seconds, tables)
    async with AsyncExitStack() as stack:
        there.nats = stack.enter_context(closing(NatsProcess()))
        there.primary = await asyncio.to_thread(PostgresServer)
        stack.callback(lambda: there.primary.remove())
        stack.callback(there.remove_replica)
        await there.lay(stack)
        for node, skew in zip(there.nodes, skews, strict=True):
            node.variables["TEST_CLOCK_AHEAD"] = str(skew)
        # The first makes the tables.
        await there.nodes[0].start()
        await asyncio.gather(*(node.start() for node in there.nodes[1:]))
        yield there
