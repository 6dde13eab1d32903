"""What the tests of the console's rooms share: a room, its people, and an agent with tools."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import Any, Literal, Self, TypeVar

from folkmoot.client import Context, Room

T = TypeVar("T")
# What the console of a page says while its hub is away.
LOST = ("net::ERR_", "WebSocket", "503")
PER_TURN = 10


class Background:
    """A loop in a thread of its own: Playwright has that of the test."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._leave = asyncio.Event()
        self._staying: Future[None] | None = None

    async def stay(self, entered: threading.Event) -> None:
        """Be there until it is time to leave."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        entered = threading.Event()
        self._staying = asyncio.run_coroutine_threadsafe(self.stay(entered), self._loop)
        assert entered.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._staying
        self._loop.call_soon_threadsafe(self._leave.set)
        self._staying.result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T], seconds: float = 30) -> T:
        """What something that is done there comes to."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)


class Agent(Background):
    """An agent in a room, which notes what it did."""

    def __init__(self, hub: str, token: str, room: str) -> None:
        super().__init__()
        self.done: list[str] = []
        self.room = Room(hub, room=room, token=token)

    async def stay(self, entered: threading.Event) -> None:
        """Offer a tool that writes files."""

        @self.room.tool
        async def write_file(
            path: str, text: str, mode: Literal["new", "append"] = "new", lines: int = 1
        ) -> str:
            """Writes a file."""
            self.done.append(path)
            return f"Wrote {path}: {text} ({mode}, {lines})"

        async with self.room:
            entered.set()
            await self._leave.wait()


class Crowd(Background):
    """Many people in one room."""

    def __init__(self, hub: str, tokens: list[str], room: str) -> None:
        super().__init__()
        self.rooms = [Room(hub, room=room, token=token) for token in tokens]

    async def stay(self, entered: threading.Event) -> None:
        """Have everyone enter."""
        async with AsyncExitStack() as stack:
            for room in self.rooms:
                await stack.enter_async_context(room)
            entered.set()
            await self._leave.wait()

    def say(self, each: int) -> None:
        """Have everyone say so much; one of them says the last word."""

        async def speak(room: Room) -> None:
            for number in range(each):
                await room.say(f"Word **{number}** of {room.me.id}", format="markdown")

        async def everyone() -> None:
            await asyncio.gather(*map(speak, self.rooms))
            await self.rooms[0].say("The last word")

        self.run(everyone(), 300)

    def mumble(self, words: int, between: int) -> None:
        """Have the first of them say so many words, with protocol before each."""

        async def speak() -> None:
            room = self.rooms[0]
            for number in range(words):
                status = {"status": "busy"}
                sent = (room.send("participant.status", status) for _ in range(between))
                await asyncio.gather(*sent)
                await room.say(f"Word {number}")

        self.run(speak(), 120)


class Workers(Crowd):
    """A few agents who talk, think, call each other's tools, and ask for decisions all the time."""

    async def stay(self, entered: threading.Event) -> None:
        for room in self.rooms:
            room.tool(self.look_up)
        await super().stay(entered)

    async def look_up(self, name: str, context: Context) -> str:
        await context.progress(1, total=2, message="Halfway")
        return f"{name}: " + "found " * 20

    def work(self, messages: int, seconds: float = 0) -> None:
        """Have them write so many messages, spread over this time; the last is a word."""
        end = self.rooms[0].last_seq + messages
        pause = seconds / messages * PER_TURN * len(self.rooms)

        async def busy(room: Room, other: Room) -> None:
            turn, due = 0, time.monotonic()
            while room.last_seq < end:
                await self.take_turn(room, other, turn)
                turn, due = turn + 1, due + pause
                await asyncio.sleep(max(0, due - time.monotonic()))

        async def everyone() -> None:
            pairs = zip(self.rooms, self.rooms[1:] + self.rooms[:1], strict=True)
            await asyncio.gather(*(busy(*pair) for pair in pairs))
            await self.rooms[0].say(f"That was {messages}.")

        self.run(everyone(), seconds + 300)

    async def take_turn(self, room: Room, other: Room, turn: int) -> None:
        """About `PER_TURN` messages of every kind that a page draws in its own way."""
        text = f"Turn **{turn}**: @{other.me.id}, see `{turn}`\n\n- one\n- two"
        await room.say(text, format="markdown")
        await room.say(f"About {turn}", thread_id=f"thread-{turn % 50}")
        thinking = await room.send("reasoning.start", {"text": f"Why {turn}?"})
        for kind in ("thought", "conclusion"):
            thought = {"text": "It may be so. " * 10}
            await room.send(f"reasoning.{kind}", thought, correlation_id=[thinking.id])
        wanted = {"name": f"thing {turn}"}
        await room.call(other.me.id, "look_up", wanted, on_progress=lambda _: None)
        await room.send("participant.status", {"status": f"at turn {turn}"})
        if turn % 25 == 0:
            params = {"name": "look_up", "arguments": wanted}
            asked = await room.propose("tools/call", params, to=other.me.id)
            await other.reject(asked.message, "Not now.")
