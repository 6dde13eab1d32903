"""Races of approvals, connections and restarts: each call is begun at most once, none is forgotten.

An agent has two connections. What is proposed is approved from four places at once, while the hub
is killed, connections are cut off and others come in their place. Whatever happens, a call is run
once or not at all, and whoever waits for it is told what came of it.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from folkmoot.client import Proposal, Room
from folkmoot.core import errors as e
from tests import process
from tests.amounts import times
from tests.client.support import SOON
from tests.harness import run
from tests.interaction.room_client import rest
from tests.ports import free_port
from tests.siege.wire import Line
from tests.transports.rooms.support import ROOM, town

# Seconds within which everything of a race happens.
MOMENT: Final = 0.03
CALLS: Final = 3
# What may come of a call: it was run, or nobody knows how far it came, or the agent was gone.
ENDS: Final = ("done", "interrupted", "target_left")
# How an approval fails whose hub is killed, or that came too late.
GONE: Final = (e.FolkmootError, OSError, asyncio.IncompleteReadError, AssertionError)


class Agent:
    """One program of the agent's account; what it begins is written down by everyone's hand."""

    def __init__(self, race: Races) -> None:
        self.room = race.room("rob")

        @self.room.tool
        async def act(n: int) -> str:
            race.begun[n] += 1
            await asyncio.sleep(race.chance.random() * MOMENT)
            return "done"

    async def crash(self) -> None:
        """End without a word, and leave everything as it is."""
        session = self.room._session
        if session is not None and session._link is not None:
            session._link.drop()
        await self.room._leave()


class Races:
    """A hub that is killed again and again, and those who use it."""

    def __init__(self, folder: Path, port: int, tokens: dict[str, str], seed: int) -> None:
        self.folder = folder
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.tokens = tokens
        self.chance = random.Random(seed)
        self.begun: Counter[int] = Counter()
        self.ends: Counter[str] = Counter()
        self.agents: list[Agent] = []
        self._hub: process.Process | None = None
        self._number = 0

    def start(self) -> None:
        self._hub = process.Process(
            self.folder,
            port=self.port,
            FOLKMOOT_RATE_LIMITS="off",
            FOLKMOOT_LOG_LEVEL="error",
            FOLKMOOT_ROOMS_RETURN_SECONDS="1.5",
        )

    def stop(self) -> None:
        if self._hub is not None:
            self._hub.__exit__()

    async def kill_hub(self) -> None:
        await asyncio.to_thread(self.stop)
        await asyncio.to_thread(self.start)

    async def crash(self, *agents: Agent) -> None:
        """Agents end, and as many others come in their place."""
        for agent in agents:
            self.agents.remove(agent)
        await asyncio.gather(*(agent.crash() for agent in agents))
        for _ in agents:
            await self.come()

    async def come(self) -> None:
        """Another program of the agent's comes in, however long the hub is away."""
        while True:
            agent = Agent(self)
            try:
                await agent.room.__aenter__()
            except e.FolkmootError:
                await asyncio.sleep(MOMENT)
                continue
            self.agents.append(agent)
            return

    async def run(self, rounds: int) -> None:
        async with self.room("ann") as ann, self.room("bob") as bob:
            for _ in range(2):
                await self.come()
            for _ in range(rounds):
                await self._race(ann, bob)
            for agent in self.agents:
                await agent.room.__aexit__(None, None, None)

    def room(self, who: str) -> Room:
        return Room(self.url, room=ROOM, token=self.tokens[who], backoff=SOON)

    async def _race(self, ann: Room, bob: Room) -> None:
        proposals: dict[int, Proposal] = {}
        for _ in range(CALLS):
            self._number += 1
            call = {"name": "act", "arguments": {"n": self._number}}
            proposals[self._number] = await bob.propose("tools/call", call, to="rob")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._disturb())
            for proposal in proposals.values():
                for approve in (self._by_rest, self._by_tool, self._by_id, self._by_message):
                    tasks.create_task(self._later(approve(ann, proposal)))
        for n, proposal in proposals.items():
            end = await self._end_of(ann, proposal)
            self.ends[end] += 1
            assert end in ENDS, f"call {n} came to {end}"
            assert self.begun[n] <= 1, f"call {n} was begun {self.begun[n]} times"
            assert self.begun[n] == 1 or end != "done"

    async def _disturb(self) -> None:
        await asyncio.sleep(self.chance.random() * MOMENT)
        oldest, newest = self.agents
        kind = self.chance.randrange(7)
        if kind == 6:
            await self.come()
            await self.agents.pop(0).room.__aexit__(None, None, None)
            return
        crashing = [[], [newest], [oldest], [oldest, newest], [newest], [oldest, newest]][kind]
        killing = [self.kill_hub()] if kind in (0, 4, 5) else []
        await asyncio.gather(*killing, self.crash(*crashing))

    async def _later(self, approval: Awaitable[Any]) -> None:
        await asyncio.sleep(self.chance.random() * MOMENT)
        with suppress(*GONE):
            await approval

    async def _by_rest(self, _: Room, proposal: Proposal) -> None:
        path = f"/{ROOM}/proposals/{proposal.id}/approve?wait=0"
        await rest(self.port, self.tokens["ann"], "POST", path)

    async def _by_tool(self, _: Room, proposal: Proposal) -> None:
        given = {"room": ROOM, "proposal": proposal.id, "decision": "fulfil"}
        async with Line(self.port, self.tokens["ann"]) as assistant:
            await assistant.call("room_decide", **given)

    async def _by_id(self, ann: Room, proposal: Proposal) -> None:
        await ann.approve(proposal.id)

    async def _by_message(self, ann: Room, proposal: Proposal) -> None:
        await ann.fulfil(proposal.message)

    async def _end_of(self, ann: Room, proposal: Proposal) -> str:
        """What came of a proposal; where nobody's approval arrived, it is approved now."""
        ended = asyncio.ensure_future(proposal.outcome())
        while not ended.done():
            await asyncio.wait((ended,), timeout=MOMENT)
            with suppress(*GONE):
                await self._by_rest(ann, proposal)
        outcome = ended.result()
        assert outcome.state == "fulfilled"
        if outcome.error is not None:
            return str(outcome.error.reason)
        return str(outcome.result["content"][0]["text"])


async def people(folder: Path) -> dict[str, str]:
    """The tokens of those who are in the room."""
    async with town(folder) as hub:
        made = {name: await hub.person(name) for name in ("ann", "bob")}
        made["rob"] = await hub.person("rob", account_type="agent")
        await hub.room(made["ann"], capabilities=None)
        return {name: person.token for name, person in made.items()}


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("serving.begun-once", "serving.take-over", "serving.interrupted")
@pytest.mark.parametrize("seed", range(2))
def test_each_call_is_begun_at_most_once_and_none_is_forgotten(tmp_path, seed):
    rounds = times(8)
    # At one port, where it can be found again after each kill.
    there = Races(tmp_path, free_port(), run(people(tmp_path)), seed)
    there.start()
    try:
        run(there.run(rounds), 800)
    finally:
        there.stop()
    assert sum(there.ends.values()) == rounds * CALLS
    assert there.ends["done"] > rounds
