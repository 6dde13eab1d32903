"""A hub of three nodes keeps its promises, whichever process, cable or server fails.

Each round breaks something while people talk, write and decide. A round that fails names its seed,
and `TEST_SEED=1:7 pytest -m long tests/faults/test_nodes.py` does round 7 of the seed 1 again.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import chain, cycle
from pathlib import Path

import pytest

from folkmoot.core.closecodes import CloseCode
from tests import nats, postgres
from tests.amounts import TIMES, times
from tests.faults import roamers
from tests.faults.cluster import LEASE_SECONDS, Cluster, Cut, Node, cluster, cut
from tests.faults.crowd import Crowd, is_quiet
from tests.faults.letters import GONE as HUB_GONE
from tests.faults.roamers import Pulse, Roamer
from tests.faults.talkers import open_room
from tests.harness import reached
from tests.siege.wire import Line, registered

pytestmark = [pytest.mark.long, postgres.needs_own()[-1], nats.NEEDED[-1]]

SEED, _, ONLY = (os.environ.get("TEST_SEED") or "403").partition(":")
ROUNDS = 20
CUT_LEASE_SECONDS = 3.0
# How much longer than two leases a silence can last on a machine with much to do.
BUSY_SECONDS = 3.0
# By how many seconds the clocks of the nodes' machines are wrong at first.
SKEWS = (0.0, 90.0, -3600.0)
MOST_SKEWED = 86_400.0

Fault = Callable[["Faults"], Awaitable[str]]


class Faults:
    """What can happen to a cluster; each mends what it broke, and says what it was."""

    def __init__(self, crowd: Crowd, chance: random.Random) -> None:
        self.crowd = crowd
        self.there = crowd.there
        self.chance = chance

    async def victim(self) -> Node:
        """A node, mostly one that has a room."""
        owners = sorted((await self.there.owners()).values()) or [0]
        mostly, place = self.chance.random() < 0.8, self.chance.random()
        numbers = owners if mostly else range(len(self.there.nodes))
        return self.there.nodes[numbers[int(place * len(numbers))]]

    async def killed(self) -> str:
        node = await self.victim()
        await node.kill()
        # Sometimes it is back before anyone knows that it was gone.
        away = self.chance.choice([0.0, LEASE_SECONDS + 2])
        await asyncio.sleep(away)
        await node.start()
        return f"{node} killed, back after {away:.0f} s"

    async def killed_unheard(self) -> str:
        """What a node asked of the database arrives long after it was killed."""
        node = await self.victim()
        async with cut(Cut.HELD, node.to_database):
            await asyncio.sleep(0.5)
            await node.kill()
            await asyncio.sleep(LEASE_SECONDS + 2)
        await node.start()
        return f"{node} killed, and what it asked of PostgreSQL arrives later"

    async def vanished(self) -> str:
        """A node loses its power: nobody is told that its connections have ended."""
        node = await self.victim()
        async with cut(Cut.HELD, node.to_database, node.to_nats):
            node.send(signal.SIGSTOP)
            # By then the server has ended what the node had begun.
            await asyncio.sleep(LEASE_SECONDS + 6)
            silence = self.silence()
            await node.kill()
        await node.start()
        return f"{node} vanished for a while; silence meanwhile {silence:.1f} s"

    async def two_killed(self) -> str:
        nodes = self.chance.sample(self.there.nodes, 2)
        await asyncio.gather(*(node.kill() for node in nodes))
        await asyncio.sleep(1)
        await asyncio.gather(*(node.start() for node in nodes))
        return f"nodes {list(map(str, nodes))} killed"

    async def paused(self) -> str:
        node, seconds = await self.victim(), self.chance.uniform(0.5, 1.5) * LEASE_SECONDS + 1
        node.send(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        node.send(signal.SIGCONT)
        return f"{node} paused for {seconds:.1f} s"

    async def database_cut(self) -> str:
        return await self._cut("PostgreSQL", [await self.victim()])

    async def database_gone(self) -> str:
        return await self._cut("PostgreSQL", self.there.nodes)

    async def nats_cut(self) -> str:
        return await self._cut("NATS", [await self.victim()])

    async def nats_gone(self) -> str:
        return await self._cut("NATS", self.there.nodes)

    async def _cut(self, what: str, nodes: list[Node]) -> str:
        how, seconds = self.chance.choice(list(Cut)), self.chance.uniform(0.3, 4.0)
        cables = [node.to_nats if what == "NATS" else node.to_database for node in nodes]
        async with cut(how, *cables):
            await asyncio.sleep(seconds)
        return f"{what} {how.value} for {len(nodes)} nodes from {nodes[0]} for {seconds:.1f} s"

    async def nats_restarted(self) -> str:
        self.there.nats.kill()
        await asyncio.sleep(self.chance.uniform(0, 2))
        await asyncio.to_thread(self.there.nats.start)
        return "NATS killed and started"

    async def database_crashed(self) -> str:
        primary = self.there.primary
        await asyncio.to_thread(primary.kill)
        await asyncio.to_thread(primary.start)
        return "PostgreSQL crashed"

    async def failed_over(self) -> str:
        await self.there.follow()
        await self.crowd.all_heard()
        await self.there.fail_over()
        return "PostgreSQL failed over to its replica"

    async def rolled(self) -> str:
        gaps = []
        for node in self.there.nodes:
            await self.crowd.all_heard()
            gaps.append(await self.silence_at(node.stop))
            await node.start()
        return f"rolling restart; silence at each stop {gaps}"

    async def stopped(self) -> str:
        node = await self.victim()
        silence = await self.silence_at(node.stop)
        ahead = self.chance.uniform(-MOST_SKEWED, MOST_SKEWED)
        node.variables["TEST_CLOCK_AHEAD"] = str(ahead)
        await node.start()
        return f"{node} stopped, back with a clock {ahead:.0f} s ahead; silence meanwhile {silence}"

    async def drained(self) -> str:
        node = await self.victim()
        silence = await self.silence_at(node.drain)
        await node.stop()
        await node.start()
        return f"{node} drained and restarted; silence at the drain {silence}"

    async def two_at_once(self) -> str:
        """A node pauses or stops while a server, or the way to one, fails."""
        kinds: list[Fault] = [
            self.chance.choice([Faults.paused, Faults.stopped]),
            self.chance.choice([Faults.database_cut, Faults.nats_cut, Faults.nats_gone]),
        ]
        # Each has chances of its own, since nobody knows which of the two asks first.
        both = [Faults(self.crowd, random.Random(self.chance.random())) for _ in kinds]
        told = await asyncio.gather(*(kind(one) for kind, one in zip(kinds, both, strict=True)))
        return " while ".join(told)

    async def silence_at(self, what: Callable[[], Awaitable[None]]) -> str:
        """How long some room was silent while a node left."""
        self.silence()
        await what()
        await asyncio.sleep(0.5)
        return f"{self.silence():.2f} s"

    def silence(self) -> float:
        """The longest time since the last look in which nothing was said in some room."""
        return max(pulse.longest() for pulse in self.crowd.pulses.values())


# One for each round, in an order that the seed decides.
KINDS = [
    *(Faults.killed, Faults.paused, Faults.database_cut, Faults.nats_cut) * 2,
    *(Faults.stopped, Faults.killed_unheard, Faults.database_gone, Faults.nats_gone),
    *(Faults.drained, Faults.failed_over, Faults.two_at_once, Faults.two_killed),
    *(Faults.vanished, Faults.nats_restarted, Faults.database_crashed, Faults.rolled),
]


def tell(line: str) -> None:
    """Say how it goes: a test that fails shows it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def one_round(crowd: Crowd, number: int, kind: Fault) -> None:
    faults = Faults(crowd, random.Random(f"{SEED}:{number}"))
    faults.silence()
    began = time.monotonic()
    what = await kind(faults)
    mended = time.monotonic()
    tell(f"TEST_SEED={SEED}:{number} {what}")
    await crowd.all_heard()
    tell(
        f"    {mended - began:.1f} s, all well {time.monotonic() - mended:.1f} s later; "
        f"longest silence {faults.silence():.1f} s"
    )


@pytest.mark.timeout(900 * TIMES)
@pytest.mark.requirement("room.durable", "durable.answered-is-kept")
async def test_nothing_is_lost_doubled_or_reordered_whatever_fails(tmp_path):
    count = times(ROUNDS)
    kinds = [*KINDS * (count // len(KINDS)), *KINDS[: count % len(KINDS)]]
    random.Random(SEED).shuffle(kinds)
    async with cluster(tmp_path, SKEWS) as there:
        crowd = Crowd(there)
        await crowd.begin()
        async with asyncio.TaskGroup() as tasks:
            crowd.start(tasks)
            try:
                await crowd.all_heard()
                for number, kind in enumerate(kinds):
                    if ONLY in ("", str(number)):
                        await one_round(crowd, number, kind)
                await crowd.all_said()
            finally:
                crowd.over.set()
        await crowd.check()
        for node in there.nodes:
            await node.stop()
        messages = sum(len(one.acknowledged) for one in crowd.roamers)
        closes = dict(Counter(code for one in crowd.roamers for code in one.codes))
        errors = dict(sum((one.errors for one in crowd.all), Counter[str]()))
        tell(f"messages {messages}, {crowd.counts()}, closes {closes}, errors {errors}")


@pytest.mark.parametrize("how", Cut)
async def test_rooms_whose_owner_alone_loses_the_database_go_on_within_two_leases(
    tmp_path, how, monkeypatch
):
    monkeypatch.setattr(roamers, "PATIENCE_SECONDS", 100.0)
    async with cluster(tmp_path, lease_seconds=CUT_LEASE_SECONDS) as there:
        port = there.nodes[0].port
        tokens = await registered(port, "ann", "ben", "cat")
        await open_room(port, tokens["ann"], "square")
        over = asyncio.Event()
        pulses, people = [Pulse() for _ in tokens], list[Roamer]()
        for (name, token), pulse, node in zip(tokens.items(), pulses, there.nodes, strict=True):
            # Whoever is closed goes to a node that is ready, as a load balancer has it.
            others = [other.port for other in there.nodes[1:] if other is not node]
            ports = chain([node.port], cycle(others))
            people.append(Roamer(name, token, "square", pulse, ports.__next__, speaks=True))
        async with asyncio.TaskGroup() as tasks:
            try:
                for one in people:
                    # The first has the room loaded, at the node of its own.
                    tasks.create_task(one.roam(over))
                    await reached(partial(bool, one.acknowledged))
                assert await there.owners() == {"square": 0}
                for pulse in pulses:
                    pulse.longest()
                said = {one: len(one.sent) for one in people}
                there.nodes[0].to_database.cut(how)
                # All that is said after the cut is heard by all, while the cut stays.
                await reached(lambda: all(len(one.acknowledged) > said[one] + 20 for one in people))
                silences = [pulse.longest() for pulse in pulses]
                tell(f"{how.value}: silence at each node {[f'{one:.1f}' for one in silences]} s")
                assert (await there.owners())["square"] != 0
                assert max(silences) < 2 * CUT_LEASE_SECONDS + BUSY_SECONDS
                # Whoever was there was closed once, and did not lose patience.
                assert people[0].codes in ([CloseCode.INTERNAL], [CloseCode.RESTARTING])
                there.nodes[0].to_database.mend()
                for one in people:
                    one.speaks = False
                await reached(lambda: is_quiet(people))
            finally:
                over.set()


async def use_one_server(there: Cluster, answered: Counter[int], over: asyncio.Event) -> None:
    """Call the tool of a server that one node links, at all nodes, and move its link about."""

    async def call(node: Node) -> None:
        number = node.number
        while not over.is_set():
            with suppress(*HUB_GONE, TimeoutError):
                async with asyncio.timeout(4), Line(node.port, tokens[node.number]) as mine:
                    while not over.is_set():
                        answer = await mine.answer("once:note", {"number": number})
                        number += len(there.nodes)
                        answered[node.number] += b"isError" not in answer.body
            await asyncio.sleep(0.05)

    made = await registered(there.nodes[0].port, "ann", "ben", "cat")
    tokens = list(made.values())
    async with asyncio.TaskGroup() as tasks:
        for node in there.nodes:
            for _ in range(5):
                tasks.create_task(call(node))


def asked_in_order(journal: Path) -> list[str]:
    """The processes that a journal names, none of which was asked after a later one."""
    lines = [each.split() for each in journal.read_text().splitlines()]
    processes = list(dict.fromkeys(process for process, *_ in lines))
    latest = 0
    for number, (process, *what) in enumerate(lines):
        place = processes.index(process)
        assert place >= latest, (
            f"line {number}: {process} was asked {what} after {processes[latest]}: "
            f"{lines[number - 5 : number + 2]}"
        )
        latest = place
    return processes


@pytest.mark.timeout(900 * TIMES)
async def test_a_server_that_one_node_links_is_never_asked_after_its_successor(tmp_path):
    chance, count = random.Random(f"{SEED}:once"), times(ROUNDS)
    answered, over = Counter[int](), asyncio.Event()
    async with cluster(tmp_path) as there, asyncio.TaskGroup() as tasks:
        tasks.create_task(use_one_server(there, answered, over))
        try:
            for number in range(count):
                before = answered.total()
                await reached(partial(lambda least: answered.total() > least, before + 5))
                node = there.nodes[(await there.linking()).get("once", number % 3)]
                away = chance.uniform(0.8, 2.0) * LEASE_SECONDS
                how = chance.choice(["paused", "killed", "stopped", *Cut])
                tell(f"{number}: {node} {how} for {away:.1f} s")
                if isinstance(how, Cut):
                    async with cut(how, node.to_database):
                        await asyncio.sleep(away)
                elif how == "paused":
                    node.send(signal.SIGSTOP)
                    await asyncio.sleep(away)
                    node.send(signal.SIGCONT)
                else:
                    await (node.kill if how == "killed" else node.stop)()
                    await asyncio.sleep(away)
                    await node.start()
            processes = asked_in_order(there.journal)
            tell(f"{len(processes)} processes, {answered.total()} answers")
            assert len(processes) > count / 3
        finally:
            over.set()
