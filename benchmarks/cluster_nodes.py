"""What a message costs on three nodes of a hub, beside one node of the same.

Both hubs run at the same time, on one PostgreSQL and one NATS server, and are used in turns.
Counted is the processor's time of all nodes of a hub; that of PostgreSQL and NATS is shown beside
it, since it may be another machine's. Each sender has one message on its way, as people do.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks import mail
from benchmarks.cluster_fence import server_seconds
from benchmarks.mail_load import Load, cpu_of
from benchmarks.mail_servers import Running
from benchmarks.rooms_hub import DURABLE, hub, populate
from benchmarks.rooms_load import Crowd, Seat
from tests import nats, postgres

NODES: Final = 3
ROOM_GOALS: Final = {30: 2.2, 120: 1.3}
"""The most that a message may cost on three nodes, as a multiple of one, by senders."""
MAIL_GOAL: Final = 1.25
CALLERS: Final = 30
COLUMNS: Final = "{:<40} {:>14} {:>14} {:>8}  {}"


class Servers(NamedTuple):
    """What all nodes use."""

    postgres: postgres.PostgresServer
    nats: nats.NatsProcess

    def seconds(self) -> float:
        """The processor's time of both."""
        return server_seconds(self.postgres) + cpu_of(self.nats.pid)


class Cost(NamedTuple):
    """Seconds of the processor for one message."""

    nodes: float
    servers: float


class Cluster(NamedTuple):
    """The nodes of a hub, with people and rooms in it."""

    nodes: list[Running]
    people: list[mail.Person]

    def seconds(self) -> float:
        """The processor's time of all nodes."""
        return sum(cpu_of(node.pid) for node in self.nodes)


Measure = Callable[[], Awaitable[float]]
"""Does something for a while; how many messages that were."""


@asynccontextmanager
async def opened(folder: Path, servers: Servers, count: int) -> AsyncIterator[Cluster]:
    """A hub of so many nodes."""
    async with AsyncExitStack() as stack:
        url, key = await postgres.schema_of(folder, given=servers.postgres.url), secrets.token_hex()
        given = {"store": {"url": url}, "master_key": key}
        folder.mkdir(0o700)  # noqa: ASYNC240 - nothing else runs yet
        tokens = await populate(folder / "first", **given)
        nodes = []
        for number in range(count):
            data = folder / str(number)
            data.mkdir(0o700)
            variables = {"FOLKMOOT_STORE_URL": url, "FOLKMOOT_MASTER_KEY": key}
            if count > 1:
                variables |= {
                    "FOLKMOOT_BUS_URL": servers.nats.url,
                    "FOLKMOOT_CLUSTER_ADDRESS": f"http://127.0.0.1:{nats.free_port()}",
                }
            nodes.append(stack.enter_context(hub(data, None, **variables)))
        yield Cluster(nodes, [mail.Person(f"person_{n}", token) for n, token in enumerate(tokens)])


async def compare(
    what: str,
    rounds: int,
    goal: float,
    servers: Servers,
    subjects: list[tuple[Cluster, Measure]],
) -> None:
    """Print a line: what a message costs on one node and on several, and the ratio."""

    async def cost(cluster: Cluster, measure: Measure) -> Cost:
        ours, theirs = cluster.seconds(), servers.seconds()
        count = await measure()
        return Cost((cluster.seconds() - ours) / count, (servers.seconds() - theirs) / count)

    for _, measure in subjects:
        await measure()
    found = [[await cost(*subject) for subject in subjects] for _ in range(rounds)]
    ratio = median(many.nodes / one.nodes for one, many in found)
    with_servers = median(sum(many) / sum(one) for one, many in found)

    def shown(part: Callable[[Cost], float]) -> list[str]:
        return [f"{median(map(part, column)) * 1e6:,.0f} µs" for column in zip(*found, strict=True)]

    ours, theirs = shown(lambda cost: cost.nodes), shown(lambda cost: cost.servers)
    met = "met" if ratio <= goal else "MISSED"
    told = f"goal ≤ {goal:g}: {met}; servers {' and '.join(theirs)}, with them {with_servers:.2f}"
    print(COLUMNS.format(what, *ours, f"{ratio:.2f}", told), flush=True)


class Spread(Crowd):
    """Participants of one room whose connections are at the nodes of a hub in turns."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.nodes[0].port, cluster.nodes[0].pid)
        self._ports = [node.port for node in cluster.nodes]

    def port_of(self, number: int) -> int:
        """The port of a participant's node."""
        return self._ports[number % len(self._ports)]

    async def converse(self, seconds: float, senders: int) -> int:
        """Have so many messages on their way for a while; how many were heard."""
        self._heard, self._at_once = 0, 1
        self._say(senders)
        await asyncio.sleep(seconds)
        self._at_once = self._owed = 0
        await self._silence()
        return self._heard


async def compare_rooms(
    seconds: float, rounds: int, servers: Servers, clusters: list[Cluster]
) -> None:
    """Messages that many say in one durable room."""
    for senders, goal in ROOM_GOALS.items():
        crowds = [Spread(cluster) for cluster in clusters]
        try:
            for cluster, crowd in zip(clusters, crowds, strict=True):
                who = islice(cycle(cluster.people), senders)
                await crowd.join([Seat(DURABLE, person.token) for person in who])

            async def measure(crowd: Spread, senders: int = senders) -> float:
                return await crowd.converse(seconds, senders)

            subjects = [(each, partial(measure, crowd))
                        for each, crowd in zip(clusters, crowds, strict=True)]  # fmt: skip
            what = f"CPU of a message in a room, {senders} senders"
            await compare(what, rounds, goal, servers, subjects)
        finally:
            for crowd in crowds:
                crowd.leave()


async def compare_mail(
    seconds: float, rounds: int, servers: Servers, clusters: list[Cluster]
) -> None:
    """Letters that are sent, and read by their recipients."""
    for what, script in (
        ("CPU of msg/send, 30 callers", mail.writing),
        ("CPU of a letter sent and read", mail.conversing),
    ):
        async with AsyncExitStack() as stack:
            subjects = []
            for cluster in clusters:
                loads = [Load(node.port, node.pid) for node in cluster.nodes]
                for first, load in enumerate(loads):
                    stack.callback(load.close)
                    numbers = range(first, CALLERS, len(loads))
                    await load.connect([script(cluster.people, number) for number in numbers])
                calls = len(script(cluster.people, 0))
                subjects.append((cluster, partial(call_all, loads, seconds, calls)))
            await compare(what, rounds, MAIL_GOAL, servers, subjects)


async def call_all(loads: list[Load], seconds: float, calls: int) -> float:
    """Let the callers of all nodes call; how many letters that were, of so many calls each."""
    await asyncio.gather(*(load.measure(seconds, sleepless=False) for load in loads))
    return sum(load.answered for load in loads) / calls


async def measure(
    server: postgres.PostgresServer, folder: Path, seconds: float, rounds: int
) -> None:
    """Print the table."""
    print(COLUMNS.format("", "one node", "three nodes", "ratio", "").rstrip())
    with closing(nats.NatsProcess()) as bus:
        servers = Servers(server, bus)
        async with (
            opened(folder / "one", servers, 1) as one,
            opened(folder / "three", servers, NODES) as three,
        ):
            await compare_rooms(seconds, rounds, servers, [one, three])
            await compare_mail(seconds, rounds, servers, [one, three])
