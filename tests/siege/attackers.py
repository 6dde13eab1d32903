"""Carries the rows of `attacks` out, for a time, from addresses of 127.0.0.0/8.

`python -m tests.siege.attackers` reads a setup on standard input, attacks until the time is over or
its standard input closes, and prints what came back as JSON.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import uvloop

from tests.siege.attacks import ATTACKS, Attack, Frames, Held, Poured, Shots, Target
from tests.siege.wire import FAILURES, connect, rest

ANSWER_SECONDS: Final = 10.0
# How many requests of one attack may be in flight.
AT_ONCE: Final = 50
# How fast the connections of one attack are opened that are then held.
OPENED_PER_SECOND: Final = 50.0
# How fast those that the hub closed are opened again.
REOPENED_PER_SECOND: Final = 10.0
CHUNK: Final = 262_144
SMALL_BUFFER: Final = 4096
REFUSED: Final = re.compile(rb'"isError":\s*true|"error":')
FIRST_NETWORK: Final = 20


class Attacker:
    """One attack, and what came of it."""

    def __init__(self, attack: Attack, number: int, port: int, sends: Sequence[bytes]) -> None:
        self.attack = attack
        self.outcomes: Counter[str] = Counter()
        self._port = port
        self._sends = sends
        self._network = FIRST_NETWORK + number
        self._next_opening = 0.0

    async def run(self) -> None:
        """Attack until cancelled."""
        how = self.attack.how
        async with asyncio.TaskGroup() as tasks:
            if isinstance(how, Shots):
                await self._shoot(how, tasks)
            elif isinstance(how, Held):
                for number in range(how.connections):
                    tasks.create_task(self._hold(how, self._source(number % how.addresses)))
                    await asyncio.sleep(1 / OPENED_PER_SECOND)
            elif isinstance(how, Poured):
                for number in range(how.connections):
                    tasks.create_task(self._pour(how, self._source(number % how.addresses)))
            else:
                tasks.create_task(self._stream(how))

    def _source(self, number: int) -> str:
        return f"127.{self._network}.{number // 200}.{1 + number % 200}"

    async def _shoot(self, how: Shots, tasks: asyncio.TaskGroup) -> None:
        # Attackers do not know of each other: each begins at a moment of its own.
        begin = time.monotonic() + random.Random(self._network).random() / how.rate
        due, free = begin, asyncio.Semaphore(AT_ONCE)
        for number, raw in enumerate(itertools.cycle(self._sends)):
            await asyncio.sleep(max(0, due - time.monotonic()))
            await free.acquire()
            shot = tasks.create_task(self._shot(raw, self._source(number % how.addresses)))
            shot.add_done_callback(lambda _: free.release())
            due = max(due + 1 / how.rate, time.monotonic() - 1)

    async def _shot(self, raw: bytes, source: str) -> None:
        """One request; its answer is looked at as far as it comes at once."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await connect(self._port, source)
                try:
                    writer.write(raw)
                    self._count(await reader.read(CHUNK))
                finally:
                    writer.transport.abort()
        except TimeoutError:
            self.outcomes["no answer"] += 1
        except FAILURES:
            self.outcomes["closed"] += 1

    def _count(self, answer: bytes) -> None:
        if not answer:
            self.outcomes["closed"] += 1
            return
        status = answer[9:12].decode("latin-1")
        refused = status == "200" and REFUSED.search(answer)
        self.outcomes[f"{status} with an error" if refused else status] += 1

    async def _hold(self, how: Held, source: str) -> None:
        """A connection that is kept, and opened again when the hub closed it."""
        for raw in itertools.cycle(self._sends):
            try:
                buffer = 0 if how.reads else SMALL_BUFFER
                reader, writer = await connect(self._port, source, receive_buffer=buffer)
            except FAILURES:
                self.outcomes["closed"] += 1
                await self._turn()
                continue
            self.outcomes["opened"] += 1
            if not how.reads:
                writer.transport.pause_reading()  # type: ignore[attr-defined]
            try:
                writer.write(raw)
                await self._kept(how, reader, writer)
            finally:
                writer.transport.abort()
            await self._turn()

    async def _pour(self, how: Poured, source: str) -> None:
        """A connection that is written to as fast as the hub reads, up to the rate."""
        head, piece = self._sends
        while True:
            try:
                _, writer = await connect(self._port, source, receive_buffer=SMALL_BUFFER)
                self.outcomes["opened"] += 1
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                try:
                    writer.write(head)
                    due = time.monotonic()
                    while not writer.transport.is_closing():
                        writer.write(piece)
                        await writer.drain()
                        self.outcomes["KiB"] += len(piece) // 1024
                        due = max(due, time.monotonic() - 0.1) + len(piece) / how.bytes_per_second
                        await asyncio.sleep(max(0, due - time.monotonic()))
                finally:
                    writer.transport.abort()
            except FAILURES:
                pass
            self.outcomes["closed"] += 1
            await self._turn()

    async def _turn(self) -> None:
        """Wait for one's turn to open a connection again."""
        now = time.monotonic()
        self._next_opening = max(now + 1, self._next_opening + 1 / REOPENED_PER_SECOND)
        await asyncio.sleep(self._next_opening - now)

    async def _kept(
        self, how: Held, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        is_websocket = False
        while not writer.transport.is_closing():
            if how.drip:
                writer.write(how.drip)
            try:
                async with asyncio.timeout(how.drip_seconds):
                    if not how.reads:
                        await asyncio.sleep(2 * how.drip_seconds)
                    while answer := await reader.read(CHUNK):
                        if not is_websocket:
                            self._count(answer)
                            is_websocket = answer.startswith(b"HTTP/1.1 101 ")
                        if not is_websocket:
                            return
                    self.outcomes["closed"] += 1
                    return
            except TimeoutError:
                continue
            except FAILURES:
                self.outcomes["closed"] += 1
                return

    async def _stream(self, how: Frames) -> None:
        head, *frames = self._sends
        while True:
            try:
                reader, writer = await connect(self._port, self._source(0))
                try:
                    writer.write(head)
                    self._count(await reader.readuntil(b"\r\n\r\n"))
                    async with asyncio.TaskGroup() as tasks:
                        hearing = tasks.create_task(self._hear(reader))
                        due = time.monotonic()
                        for raw in itertools.cycle(frames):
                            if hearing.done() or writer.transport.is_closing():
                                break
                            writer.write(raw)
                            self.outcomes["sent"] += 1
                            due += 1 / how.rate
                            await asyncio.sleep(max(0, due - time.monotonic()))
                finally:
                    writer.transport.abort()
            except* FAILURES:
                self.outcomes["closed"] += 1
            await asyncio.sleep(0.5)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        while heard := await reader.read(CHUNK):
            self.outcomes["refused"] += heard.count(b'"kind":"system.error"')


def carried_out(everyone: Sequence[Attacker], seconds: float) -> float:
    """The share of single requests that was sent; less than all where we lack a processor."""
    shots = [each for each in everyone if isinstance(each.attack.how, Shots)]
    planned = sum(each.attack.how.rate * seconds for each in shots)
    return sum(each.outcomes.total() for each in shots) / planned if planned else 1.0


async def main() -> None:
    """Attack until the time is over, or nobody is there any more who started us."""
    setup: dict[str, Any] = json.loads(sys.stdin.readline())
    target = Target(**setup["target"])
    port: int = setup["port"]
    _, writer = await connect(port, "127.0.0.1")
    writer.write(rest("POST", "", target.token(0), {"name": "unknown"}))
    everyone = [
        Attacker(attack, number, port, attack.sends(target))
        for number, attack in enumerate(ATTACKS)
        if setup["only"] in ("", attack.name)
    ]
    print("ready", flush=True)
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, over.set)
    used, began = time.process_time(), time.monotonic()
    try:
        async with asyncio.timeout(setup["seconds"]), asyncio.TaskGroup() as tasks:
            attacks = [tasks.create_task(each.run()) for each in everyone]
            await over.wait()
            for attack in attacks:
                attack.cancel()
    except TimeoutError:
        pass
    writer.transport.abort()
    told = {
        "outcomes": {each.attack.name: each.outcomes for each in everyone},
        "carried_out": carried_out(everyone, time.monotonic() - began),
        "cpu": time.process_time() - used,
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    os.nice(int(sys.argv[1]))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    uvloop.run(main())
