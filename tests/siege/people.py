"""Good people: they write, talk, call tools, time every answer and remember all of it.

`python -m tests.siege.people` reads a setup on standard input, works until that is closed, checks
what is kept at the hub and prints a report as JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import uvloop
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from tests.faults.letters import threads
from tests.faults.talkers import Talker
from tests.siege.wire import (
    FAILURES,
    Line,
    Refused,
    call,
    history,
    initialize,
    passed,
    request,
)

# How many people do what.
GROUPS: Final = {"mail": 12, "talk": 8, "gateway": 6, "session": 3, "visit": 4}
# Seconds between two rounds of one person; within the rates that hold by default.
PERIODS: Final = {"mail": 1.25, "talk": 1.5, "gateway": 0.2, "session": 0.5, "visit": 0.5}
HEALTH_SECONDS: Final = 0.05
# How long anyone waits for an answer.
SECONDS: Final = 10.0

HANDLES: Final = [f"{group}{n}" for group, count in GROUPS.items() for n in range(count)]
FAILED: Final = (*FAILURES, Refused, WebSocketException)


class Notes:
    """When something was done, what, how long it took and how it ended."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, str, float, str]] = []

    async def timed(self, what: str, doing: Awaitable[Any]) -> Any:
        """Do something and note it; a failure is noted too, and answered with `None`."""
        began, done, said = time.monotonic(), None, ""
        try:
            done = await doing
        except FAILED as error:
            said = f"{type(error).__name__}: {error}"[:300]
        self.rows.append((began, what, time.monotonic() - began, said))
        return done


class Mail:
    """What was sent by mail, and what the hub said it has."""

    def __init__(self) -> None:
        self.attempted: set[str] = set()
        self.acknowledged: dict[str, str] = {}
        self.numbers = itertools.count()

    async def send(self, line: Line, to: str) -> None:
        """Send one, and keep what was acknowledged."""
        body = f"letter {next(self.numbers)} to {to}: come by when you can, the bread is done"
        self.attempted.add(body)
        told = await line.call("msg_send", to=to, body=body)
        self.acknowledged[told["message_id"]] = body

    async def check(self, port: int, tokens: dict[str, str]) -> dict[str, int]:
        """Count what both sides have of it: everything acknowledged, and nothing twice."""
        copies: list[tuple[str, str]] = []
        for token in tokens.values():
            async with Line(port, token, seconds=SECONDS) as line:
                found, _ = await threads(line)
                copies += [one for one in found if one[1] in self.attempted]
        counted = Counter(copies)
        bodies = Counter(body for _, body in copies)
        return {
            "acknowledged": len(self.acknowledged),
            "lost": sum(counted[each] < 2 for each in self.acknowledged.items()),
            "doubled": sum(count > 2 for count in bodies.values()),
        }


class Regular(Talker):
    """Someone in a room who misses nothing of it, and counts what goes wrong."""

    longest = 50

    def __init__(self, name: str, token: str, room: str, source: str) -> None:
        super().__init__(name, token, room, speaks=False)
        self.gaps = 0
        self.reconnects = -1
        self._source = source
        self._news = asyncio.Event()
        self._refusals: dict[str, str] = {}
        self._socket: ClientConnection | None = None

    async def keep(self, port: int) -> None:
        """Be in the room, and come back whenever the connection ends."""
        while True:
            options = {"open_timeout": SECONDS, "local_addr": (self._source, 0)}
            with suppress(*FAILED):
                async with self.door(port, close_timeout=1, **options) as socket:
                    await self.come_in(socket)
                    self._socket = socket
                    self.reconnects += 1
                    self._news.set()
                    await self.listen(socket, self._news, self._news.set)
            self._socket = None
            await asyncio.sleep(0.1)

    def hear(self, data: bytes) -> None:
        """Take what the room says; after a gap one goes on from there."""
        seq = json.loads(data).get("seq", self.last + 1)
        if seq != self.last + 1:
            self.gaps += 1
            self.heard = dict.fromkeys(range(1, seq), b"")
        super().hear(data)

    def refused(self, id_: str, told: Any) -> None:
        if told["error"] == "id_used":
            super().refused(id_, told)
        else:
            self._refusals[id_] = told["message"]

    async def speak(self) -> None:
        """Say something, and wait until it comes back."""
        id_ = self.new()
        async with asyncio.timeout(SECONDS):
            while self._socket is None:
                await self._changed()
            await self.say(self._socket, id_)
            while id_ not in self.acknowledged:
                if id_ in self._refusals:
                    raise Refused(self._refusals[id_])
                await self._changed()

    async def _changed(self) -> None:
        self._news.clear()
        await self._news.wait()


@dataclass
class Someone:
    """One person, and what they use."""

    number: int
    token: str
    line: Line
    talker: Regular | None = None
    session: str = ""


class People:
    """Everyone, until they are told to stop."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.port: int = setup["port"]
        self.tokens: dict[str, str] = setup["tokens"]
        self.rooms: list[str] = setup["rooms"]
        self.backends: list[str] = setup["backends"]
        self.notes = Notes()
        self.mail = Mail()
        self.talkers: list[Regular] = []

    async def work(self, over: asyncio.Event) -> None:
        """Have everyone work until it is over."""
        async with asyncio.TaskGroup() as tasks:
            everyone = [tasks.create_task(self._round("health", 0, self._health))]
            for number, (handle, token) in enumerate(self.tokens.items()):
                group = handle.rstrip("0123456789")
                line = Line(self.port, token, f"127.1.0.{number + 1}", SECONDS)
                one = Someone(number, token, line)
                if group == "talk":
                    room = self.rooms[number % len(self.rooms)]
                    one.talker = Regular(handle, token, room, f"127.1.1.{number + 1}")
                    self.talkers.append(one.talker)
                    everyone.append(tasks.create_task(one.talker.keep(self.port)))
                step = partial(getattr(self, f"_{group}"), one)
                everyone.append(tasks.create_task(self._round(group, number, step)))
            await over.wait()
            for task in everyone:
                task.cancel()

    async def _round(self, group: str, number: int, step: Callable[[], Awaitable[None]]) -> None:
        """Do it again and again at even times, each person at another moment."""
        period = PERIODS.get(group, HEALTH_SECONDS)
        due = time.monotonic() + period * (number % 7) / 7
        while True:
            await asyncio.sleep(max(0, due - time.monotonic()))
            await step()
            due = max(due + period, time.monotonic())

    async def _mail(self, one: Someone) -> None:
        to = f"mail{(one.number + 1) % GROUPS['mail']}"
        await self.notes.timed("mail send", self.mail.send(one.line, to))
        await self.notes.timed("mail read", one.line.call("msg_inbox", limit=5))

    async def _talk(self, one: Someone) -> None:
        assert one.talker
        await self.notes.timed("room say", one.talker.speak())

    async def _gateway(self, one: Someone) -> None:
        tool = f"{self.backends[one.number % len(self.backends)]}_echo"
        raw = call(tool, {"message": "good morning"}, one.token)
        await self.notes.timed("tool call", self._passed(one.line, raw))

    async def _session(self, one: Someone) -> None:
        if not one.session:
            answer = await self.notes.timed("session open", one.line.ask(initialize(one.token)))
            one.session = answer.headers.get("mcp-session-id", "") if answer else ""
            return
        raw = call("msg_digest", {}, one.token, one.session)
        if await self.notes.timed("session call", self._passed(one.line, raw)) is None:
            one.session = ""

    async def _visit(self, one: Someone) -> None:
        raw = call("msg_digest", {}, one.token)
        await self.notes.timed("visit", self._passed(one.line, raw))
        one.line.close()

    async def _passed(self, line: Line, raw: bytes) -> str:
        return passed(await line.ask(raw))

    async def _health(self) -> None:
        """Ask for the hub's health on a connection of its own each time, as a monitor does."""

        async def asked() -> None:
            async with Line(self.port, seconds=SECONDS) as line:
                answer = await line.ask(request("GET", "/health", headers={"connection": "close"}))
            if answer.status != 200:
                raise Refused(f"{answer.status} {answer.body[:300]!r}")

        await self.notes.timed("health", asked())

    async def check(self) -> dict[str, Any]:
        """What became of everything that was acknowledged."""
        writers = {one: token for one, token in self.tokens.items() if one.startswith("mail")}
        mail = await self.mail.check(self.port, writers)
        rooms = {"acknowledged": 0, "lost": 0, "doubled": 0, "gaps": 0, "reconnects": 0}
        for room in self.rooms:
            here = [talker for talker in self.talkers if talker.room == room]
            kept = await history(self.port, here[0].token, room)
            ids = Counter(one["id"] for one in kept)
            seqs = {one["id"]: one["seq"] for one in kept}
            for talker in here:
                told = talker.acknowledged
                rooms["acknowledged"] += len(told)
                rooms["lost"] += sum(seqs.get(id_) != seq for id_, seq in told.items())
                rooms["doubled"] += sum(ids[id_] > 1 for id_ in talker.sent)
                rooms["gaps"] += talker.gaps
                rooms["reconnects"] += max(0, talker.reconnects)
        return {"mail": mail, "rooms": rooms}


async def main() -> None:
    """Work until standard input is closed."""
    setup = json.loads(sys.stdin.readline())
    people, over = People(setup), asyncio.Event()
    asyncio.get_running_loop().add_reader(0, over.set)
    print("ready", flush=True)
    await people.work(over)
    print(json.dumps({"checked": await people.check(), "notes": people.notes.rows}))


if __name__ == "__main__":
    os.nice(int(sys.argv[1]))
    uvloop.run(main())
