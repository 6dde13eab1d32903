"""Everyone who uses a hub of many nodes at once, and what must hold of all they did."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.faults.cluster import Cluster, Node
from tests.faults.letters import line
from tests.faults.roamers import Letters, Pulse, Roamer, SessionLetters, Works
from tests.interaction.room_client import rest

ROOMS = 3
SPEAKERS = 3
"""In each room, and one who only listens."""
WRITERS = ("ann", "ben", "cat")
IN_SESSIONS = ("dan", "eve")
RECOVER_SECONDS = 60.0
"""Within which everyone must be heard again, on a machine with much to do."""


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
        tokens: dict[str, str] = {}
        async with line(port) as stranger:
            for name in (*names, *WRITERS, *IN_SESSIONS):
                made = await stranger.call("msg_register", handle=name)
                tokens[name] = made["token"]
        for room in (*self.pulses, Works.room):
            spec: dict[str, Any] = {"name": room, "access": "open"}
            if room == Works.room:
                spec |= {"capabilities": ["*"], "backends": ["tally"]}
            answer = await rest(port, tokens["ann"], "POST", "", spec)
            assert answer.status == 201, answer
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

    async def all_heard(self) -> None:
        """Wait until all that is said from now on is heard by all, and letters go on."""
        said = {one: len(one.sent) + 1 for one in self.roamers if one.speaks}
        letters, proposed = len(self.letters.acknowledged) + 6, len(self.works.proposed) + 2
        in_sessions = len(self.sessions.acknowledged) + 4

        def done() -> bool:
            return (
                all(len(one.acknowledged) >= count for one, count in said.items())
                and len(self.letters.acknowledged) >= letters
                and len(self.sessions.acknowledged) >= in_sessions
                and len(self.works.proposed) >= proposed
            )

        try:
            async with asyncio.timeout(RECOVER_SECONDS):
                while not done():  # noqa: ASYNC110 - nobody sets an event
                    await asyncio.sleep(0.05)
                last = {
                    room: max(one.last for one in self.roamers if one.room == room)
                    for room in self.pulses
                }
                while any(one.last < last[one.room] for one in self.roamers):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        except TimeoutError:
            state = [
                f"{one.name} in {one.room} {one.doing} at {one.port}: {one.last} heard, last "
                f"{one.latest[:300]!r}, {len(one.unsure)} "
                f"unsure, {one.visits} visits, {one.codes[-5:]}, {dict(one.errors)}"
                for one in self.roamers
            ]
            for node in self.there.nodes:
                sys.stdout.write(f"node {node.number} at {node.port}:\n{node.log()}\n")
            raise AssertionError(
                f"not all is well after {RECOVER_SECONDS} s: {state}, letters "
                f"{len(self.letters.acknowledged)} of {letters}, in sessions "
                f"{len(self.sessions.acknowledged)} of {in_sessions}, proposals "
                f"{len(self.works.proposed)} of {proposed}"
            ) from None

    async def all_said(self) -> None:
        """Say nothing more, and wait until everyone has heard everything."""
        for one in self.roamers:
            one.speaks = False
        async with asyncio.timeout(RECOVER_SECONDS):
            while not self._is_quiet():  # noqa: ASYNC110 - nobody sets an event
                await asyncio.sleep(0.05)

    def _is_quiet(self) -> bool:
        lasts = [{one.last for one in self.roamers if one.room == room} for room in self.pulses]
        return all(len(one) == 1 for one in lasts) and not any(one.unsure for one in self.roamers)

    async def check(self) -> None:
        """What is stored is what everyone heard, whichever node is asked."""
        for room in self.pulses:
            here = [one for one in self.roamers if one.room == room]
            kept = await self.history(self.there.nodes[0], room)
            assert [one["seq"] for one in kept] == list(range(1, len(kept) + 1))
            for node in self.there.nodes[1:]:
                # Someone who left meanwhile may be told of too.
                assert (await self.history(node, room))[: len(kept)] == kept
            for roamer in here:
                heard = [json.loads(data) for data in roamer.heard.values()]
                assert heard == kept[: len(heard)], roamer.name
            said = Counter(one["id"] for one in kept if one["kind"] == "chat.message")
            assert said == Counter(id_ for one in here for id_ in one.sent)
            where = {one["id"]: one["seq"] for one in kept}
            for roamer in here:
                assert roamer.acknowledged.items() <= where.items()
        for node in self.there.nodes:
            await self.letters.check(node.port)
            await self.sessions.check(node.port)
        async with asyncio.timeout(RECOVER_SECONDS):
            works = await self.history(self.there.nodes[0], Works.room)
            while not self.works.is_answered(works):
                await asyncio.sleep(0.5)
                works = await self.history(self.there.nodes[0], Works.room)
        self.works.check(works)

    async def history(self, node: Node, room: str) -> list[Any]:
        """All that is kept of a room, as a node tells it."""
        kept: list[Any] = []
        while True:
            path = f"/{room}/messages?after={len(kept)}&limit=500"
            answer = await rest(node.port, self.works.tokens["ann"], "GET", path)
            assert answer.status == 200, answer
            if not (page := answer.json()["messages"]):
                return kept
            kept += page
