"""Everyone who uses a hub of many nodes at once, and what must hold of all they did."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence

from tests.faults.cluster import Cluster
from tests.faults.roamers import Letters, Pulse, Roamer, SessionLetters, Works
from tests.faults.talkers import check_room, open_room
from tests.harness import reached
from tests.siege.wire import history, registered

ROOMS = 3
# In each room, and one who only listens.
SPEAKERS = 3
WRITERS = ("ann", "ben", "cat")
IN_SESSIONS = ("dan", "eve")
# Within which everyone must be heard again, on a machine with much to do.
RECOVER_SECONDS = 60.0


class Crowd:
    """Everyone who uses the hub."""

    def __init__(self, there: Cluster) -> None:
        self.there = there
        self.over = asyncio.Event()
        self.pulses = {f"room-{number}": Pulse() for number in range(ROOMS)}
        self.roamers: list[Roamer] = []
        self.letters = Letters(self.port)
        self.sessions = SessionLetters(self.port)
        self.works = Works(self.port, there.tally)

    @property
    def all(self) -> Sequence[Roamer | Letters | Works]:
        """Everyone who remembers what was refused."""
        return [*self.roamers, self.letters, self.sessions, self.works]

    def port(self) -> int:
        """Any node."""
        return random.choice(self.there.nodes).port

    async def begin(self) -> None:
        """Make accounts and rooms."""
        port = self.there.nodes[0].port
        names = [f"speaker{number}" for number in range(SPEAKERS)] + ["listener"]
        tokens = await registered(port, *names, *WRITERS, *IN_SESSIONS)
        for room in self.pulses:
            await open_room(port, tokens["ann"], room)
        await open_room(port, tokens["ann"], Works.room, capabilities=["*"], backends=["tally"])
        self.roamers = [
            Roamer(name, tokens[name], room, pulse, self.port, speaks=name != "listener")
            for room, pulse in self.pulses.items()
            for name in names
        ]
        self.letters.tokens = self.works.tokens = {name: tokens[name] for name in WRITERS}
        self.sessions.tokens = {name: tokens[name] for name in IN_SESSIONS}

    def start(self, tasks: asyncio.TaskGroup) -> None:
        for roamer in self.roamers:
            tasks.create_task(roamer.roam(self.over))
        for letters in (self.letters, self.sessions):
            for handle in letters.tokens:
                tasks.create_task(letters.write(handle, self.over))
        tasks.create_task(self.works.run(self.over))

    def within(self, room: str) -> list[Roamer]:
        return [one for one in self.roamers if one.room == room]

    async def all_heard(self) -> None:
        """Wait until all that is said from now on is heard by all, and letters go on."""
        wanted = {one: len(one.sent) + 1 for one in self.roamers if one.speaks}
        more = {"letters": 6, "sessions": 4, "works": 2}
        before = self.counts()

        def is_done() -> bool:
            now = self.counts()
            return all(len(one.acknowledged) >= count for one, count in wanted.items()) and all(
                now[what] >= before[what] + count for what, count in more.items()
            )

        try:
            async with asyncio.timeout(RECOVER_SECONDS):
                await reached(is_done)
                last = {room: max(one.last for one in self.within(room)) for room in self.pulses}
                await reached(lambda: all(one.last >= last[one.room] for one in self.roamers))
        except TimeoutError:
            for node in self.there.nodes:
                sys.stdout.write(f"node {node.number} at {node.port}:\n{node.log()}\n")
            raise AssertionError(
                f"not all is well after {RECOVER_SECONDS} s: {list(map(str, self.roamers))}, "
                f"{self.counts()} since {before}"
            ) from None

    def counts(self) -> dict[str, int]:
        """How many letters and proposals there are."""
        return {
            "letters": len(self.letters.acknowledged),
            "sessions": len(self.sessions.acknowledged),
            "works": len(self.works.proposed),
        }

    async def all_said(self) -> None:
        """Say nothing more, and wait until everyone has heard everything."""
        for one in self.roamers:
            one.speaks = False
        async with asyncio.timeout(RECOVER_SECONDS):
            await reached(lambda: is_quiet(self.roamers))

    async def check(self) -> None:
        """What is stored is what everyone heard, whichever node is asked."""
        ports, token = [node.port for node in self.there.nodes], self.works.tokens["ann"]
        for room in self.pulses:
            await check_room(self.within(room), token, *ports)
        for port in ports:
            await self.letters.check(port)
            await self.sessions.check(port)
        async with asyncio.timeout(RECOVER_SECONDS):
            works = await history(ports[0], token, Works.room)
            while not self.works.is_answered(works):
                await asyncio.sleep(0.5)
                works = await history(ports[0], token, Works.room)
        self.works.check(works)


def is_quiet(roamers: list[Roamer]) -> bool:
    """Whether everyone has heard all that anyone said."""
    places = {(one.room, one.last) for one in roamers}
    return len(places) == len({one.room for one in roamers}) and not any(
        one.unsure for one in roamers
    )
