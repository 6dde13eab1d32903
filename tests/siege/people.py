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
from typing import Any, Final
from urllib.parse import urlencode

import uvloop
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.siege.wire import (
    FAILURES,
    HUB,
    Line,
    Refused,
    call,
    initialize,
    request,
    rest,
    result,
    rpc,
)

GROUPS: Final = {"mail": 12, "talk": 8, "gateway": 6, "session": 3, "visit": 4}
"""How many people do what."""
PERIODS: Final = {"mail": 1.25, "talk": 1.5, "gateway": 0.2, "session": 0.5, "visit": 0.5}
"""Seconds between two rounds of one person; within the rates that hold by default."""
HEALTH_SECONDS: Final = 0.05
SECONDS: Final = 10.0
"""How long anyone waits for an answer."""

HANDLES: Final = [f"{group}{n}" for group, count in GROUPS.items() for n in range(count)]
FAILED: Final = (*FAILURES, Refused, WebSocketException)


class Notes:
    """When something was done, what, how long it took and how it ended."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, str, float, str]] = []

    async def timed(self, what: str, doing: Awaitable[Any]) -> Any:
        """Do something and note it; a failure is noted too, and answered with `None`."""
        began = time.monotonic()
        try:
            done = await doing
        except FAILED as error:
            said = f"{type(error).__name__}: {error}"[:300]
            self.rows.append((began, what, time.monotonic() - began, said))
            return None
        self.rows.append((began, what, time.monotonic() - began, ""))
        return done


class Mail:
    """What was sent by mail, and what the hub said it has."""

    def __init__(self) -> None:
        self.attempted: set[str] = set()
        self.acknowledged: dict[str, str] = {}
        self.numbers = itertools.count()

    async def send(self, line: Line, token: str, to: str) -> None:
        """Send one, and keep what was acknowledged."""
        body = f"letter {next(self.numbers)} to {to}: come by when you can, the bread is done"
        self.attempted.add(body)
        told = result(await line.ask(call("msg_send", {"to": to, "body": body}, token)))
        self.acknowledged[told["message_id"]] = body

    async def check(self, port: int, tokens: dict[str, str]) -> dict[str, int]:
        """Count what both sides have of it: everything acknowledged, and nothing twice."""
        copies: list[tuple[str, str]] = []
        for token in tokens.values():
            line = Line(port, HUB)
            async for thread in pages(line, token, "msg_threads", "threads", {}):
                which = {"thread_id": thread["id"], "peek": True}
                listed = pages(line, token, "msg_thread", "messages", which)
                found = [(one["id"], one["body"]) async for one in listed]
                copies += [one for one in found if one[1] in self.attempted]
            line.close()
        counted = Counter(copies)
        bodies = Counter(body for _, body in copies)
        return {
            "acknowledged": len(self.acknowledged),
            "lost": sum(counted[each] < 2 for each in self.acknowledged.items()),
            "doubled": sum(count > 2 for count in bodies.values()),
        }


async def pages(line: Line, token: str, tool: str, listed: str, which: dict[str, Any]) -> Any:
    """Everything a tool lists, page by page."""
    cursor = None
    while True:
        arguments = {"limit": 100, **which, **({"cursor": cursor} if cursor else {})}
        page = result(await line.ask(call(tool, arguments, token)))
        for each in page[listed]:
            yield each
        cursor = page["next_cursor"]
        if cursor is None:
            return


class Talker:
    """Someone in a room, on one WebSocket after the other, who misses nothing of it."""

    def __init__(self, handle: str, token: str, room: str, source: str) -> None:
        self.handle, self.room = handle, room
        self.acknowledged: dict[str, int] = {}
        self.sent: list[str] = []
        self.gaps = 0
        self.last: int | None = None
        self.reconnects = -1
        self._token, self._source = token, source
        self._epoch = ""
        self._heard: dict[str, asyncio.Future[None]] = {}
        self._socket: ClientConnection | None = None
        self._open = asyncio.Event()

    async def stay(self, port: int) -> None:
        """Be in the room, and come back whenever the connection ends."""
        while True:
            resume = {"after": self.last, "epoch": self._epoch} if self.last is not None else {}
            query = urlencode({"room": self.room, "conn": self.handle, **resume})
            try:
                async with connect(
                    f"ws://{HUB}:{port}/ws?{query}",
                    additional_headers={"authorization": f"Bearer {self._token}"},
                    compression=None,
                    max_queue=None,
                    max_size=None,
                    open_timeout=SECONDS,
                    close_timeout=1,
                    local_addr=(self._source, 0),
                ) as self._socket:
                    self.reconnects += 1
                    async for data in self._socket:
                        self.hear(json.loads(data))
            except FAILED:
                await asyncio.sleep(0.1)
            finally:
                self._open.clear()

    def hear(self, message: dict[str, Any]) -> None:
        """Take what the room says: in order, without a gap, and one's own as acknowledged."""
        if message["kind"] == "system.welcome":
            self._epoch = message["payload"]["epoch"]
            if self.last is None:
                self.last = message["payload"]["history"]["last_seq"]
            self._open.set()
        elif message["kind"] == "system.error" and "seq" not in message:
            said = message["payload"]
            for id_ in message.get("correlation_id", ()):
                if said["error"] == "id_used":
                    self._arrived(id_, said["seq"])
                elif id_ in self._heard:
                    self._heard.pop(id_).set_exception(Refused(said["message"]))
        elif "seq" in message:
            assert self.last is not None
            self.gaps += message["seq"] != self.last + 1
            self.last = message["seq"]
            if message["from"] == self.handle and message["id"] in self._heard:
                self._arrived(message["id"], message["seq"])

    def _arrived(self, id_: str, seq: int) -> None:
        self.acknowledged[id_] = seq
        if id_ in self._heard:
            self._heard.pop(id_).set_result(None)

    async def say(self) -> None:
        """Say something, and wait until it comes back."""
        id_ = f"{self.handle}-{len(self.sent)}"
        self.sent.append(id_)
        payload = {"text": f"{id_}: the bread is in the oven"}
        message = {"protocol": "mcpx/v1", "id": id_, "kind": "chat.message", "payload": payload}
        self._heard[id_] = asyncio.get_running_loop().create_future()
        heard = self._heard[id_]
        try:
            async with asyncio.timeout(SECONDS):
                await self._open.wait()
                assert self._socket is not None
                await self._socket.send(json.dumps(message))
                await heard
        finally:
            self._heard.pop(id_, None)


class People:
    """Everyone, until they are told to stop."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.port: int = setup["port"]
        self.tokens: dict[str, str] = setup["tokens"]
        self.rooms: list[str] = setup["rooms"]
        self.backends: list[str] = setup["backends"]
        self.slowness: float = setup.get("slowness", 1.0)
        self.notes = Notes()
        self.mail = Mail()
        self.talkers: list[Talker] = []

    async def work(self, over: asyncio.Event) -> None:
        """Have everyone work until it is over."""
        async with asyncio.TaskGroup() as tasks:
            everyone = [tasks.create_task(self._health())]
            for number, (handle, token) in enumerate(self.tokens.items()):
                group = handle.rstrip("0123456789")
                line = Line(self.port, f"127.1.0.{number + 1}", SECONDS)
                doing = getattr(self, f"_{group}")(number, token, line)
                if group == "talk":
                    everyone.append(tasks.create_task(self.talkers[-1].stay(self.port)))
                everyone.append(tasks.create_task(self._round(group, number, doing)))
            await over.wait()
            for task in everyone:
                task.cancel()

    async def _round(self, group: str, number: int, step: Callable[[], Awaitable[None]]) -> None:
        """Do it again and again at even times, each person at another moment."""
        period = PERIODS[group] * self.slowness
        due = time.monotonic() + period * (number % 7) / 7
        while True:
            await asyncio.sleep(max(0, due - time.monotonic()))
            await step()
            due = max(due + period, time.monotonic())

    def _mail(self, number: int, token: str, line: Line) -> Callable[[], Awaitable[None]]:
        writers = [handle for handle in self.tokens if handle.startswith("mail")]
        to = writers[(number + 1) % len(writers)]

        async def step() -> None:
            await self.notes.timed("mail send", self.mail.send(line, token, to))
            await self.notes.timed(
                "mail read", self._called(line, "msg_inbox", {"limit": 5}, token)
            )

        return step

    def _talk(self, number: int, token: str, line: Line) -> Callable[[], Awaitable[None]]:
        handle = list(self.tokens)[number]
        room = self.rooms[number % len(self.rooms)]
        talker = Talker(handle, token, room, f"127.1.1.{number + 1}")
        self.talkers.append(talker)

        async def step() -> None:
            await self.notes.timed("room say", talker.say())

        return step

    def _gateway(self, number: int, token: str, line: Line) -> Callable[[], Awaitable[None]]:
        tool = f"{self.backends[number % len(self.backends)]}_echo"
        raw = call(tool, {"message": "good morning"}, token)

        async def step() -> None:
            await self.notes.timed("tool call", self._passed(line, raw))

        return step

    def _session(self, number: int, token: str, line: Line) -> Callable[[], Awaitable[None]]:
        session = ""

        async def step() -> None:
            nonlocal session
            if not session:
                answer = await self.notes.timed("session open", line.ask(initialize(token)))
                session = answer.headers.get("mcp-session-id", "") if answer else ""
                return
            raw = call("msg_digest", {}, session=session, token=token)
            if await self.notes.timed("session call", self._passed(line, raw)) is None:
                session = ""

        return step

    def _visit(self, number: int, token: str, line: Line) -> Callable[[], Awaitable[None]]:
        raw = rpc("tools/call", {"name": "msg_digest", "arguments": {}}, token=token)

        async def step() -> None:
            await self.notes.timed("visit", self._passed(line, raw))
            line.close()

        return step

    async def _called(self, line: Line, tool: str, arguments: Any, token: str) -> Any:
        return result(await line.ask(call(tool, arguments, token)))

    async def _passed(self, line: Line, raw: bytes) -> bool:
        answer = await line.ask(raw)
        if answer.status != 200 or "result" not in answer.json():
            raise Refused(f"{answer.status} {answer.body[:300]!r}")
        return True

    async def _health(self) -> None:
        """Ask for the hub's health on a connection of its own each time, as a monitor does."""
        raw = request("GET", "/health", headers={"connection": "close"})

        async def asked() -> None:
            line = Line(self.port, HUB, SECONDS)
            answer = await line.ask(raw)
            line.close()
            if answer.status != 200:
                raise Refused(f"{answer.status} {answer.body[:300]!r}")

        due = time.monotonic()
        while True:
            await asyncio.sleep(max(0, due - time.monotonic()))
            await self.notes.timed("health", asked())
            due = max(due + HEALTH_SECONDS * self.slowness, time.monotonic())

    async def check(self) -> dict[str, Any]:
        """What became of everything that was acknowledged."""
        writers = {one: token for one, token in self.tokens.items() if one.startswith("mail")}
        mail = await self.mail.check(self.port, writers)
        rooms = {"acknowledged": 0, "lost": 0, "doubled": 0, "gaps": 0, "reconnects": 0}
        for room in self.rooms:
            here = [talker for talker in self.talkers if talker.room == room]
            kept = await self._history(room)
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

    async def _history(self, room: str) -> list[Any]:
        """All that is kept of a room."""
        token = next(token for one, token in self.tokens.items() if one.startswith("talk"))
        line, after = Line(self.port, HUB), 0
        kept: list[Any] = []
        while True:
            answer = await line.ask(rest("GET", f"/{room}/messages?after={after}&limit=500", token))
            page = answer.json()["messages"]
            if not page:
                line.close()
                return kept
            kept += page
            after = page[-1]["seq"]


async def main() -> None:
    """Work until standard input is closed."""
    setup = json.loads(sys.stdin.readline())
    people, over = People(setup), asyncio.Event()
    asyncio.get_running_loop().add_reader(0, over.set)
    await people.work(over)
    print(json.dumps({"checked": await people.check(), "notes": people.notes.rows}))


if __name__ == "__main__":
    os.nice(int(sys.argv[1]))
    uvloop.run(main())
