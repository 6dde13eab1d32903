"""A hundred in a room of whom ten never read: they are let go, and the others notice nothing."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core.closecodes import CloseCode
from tests.faults.talkers import open_room
from tests.harness import run
from tests.interaction.room_client import ROOM, Seat, chat, joined
from tests.process import Process
from tests.siege.wire import registered
from tests.transports.websocket.support import Client, deaf

READERS, DEAF = 90, 10
UNSENT = 1_048_576
LARGE = "x" * 262_144
# Messages; the system's own buffers hold some MiB for a connection, and only then ours begin.
MOST = 400
# How many messages the readers, who all share one processor with us, may be behind.
AHEAD = 3
# What may wait for those who do not read, and what the hub needs besides.
GROWTH = DEAF * UNSENT + 24 * 1_048_576


async def ended(client: Client) -> int | None:
    """The code with which one was closed who reads after all; None if it came too late."""
    try:
        return int.from_bytes((await client.awoken())[:2], "big")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    finally:
        client.leave()


def resident(hub: Process) -> int:
    status = Path(f"/proc/{hub.child.pid}/status").read_text()
    return next(int(row.split()[1]) * 1024 for row in status.splitlines() if "VmRSS" in row)


class Readers:
    """Those who read, and how many of the large messages each has."""

    def __init__(self, seats: list[Seat]) -> None:
        self._counts = dict.fromkeys(seats, 0)
        self._read = asyncio.Event()

    async def listen(self, seat: Seat) -> None:
        """Read until the end of all."""
        while True:
            data = await seat.socket.recv(decode=False)
            self._counts[seat] += len(data) > len(LARGE)
            self._read.set()
            if b'"the end"' in data:
                return

    async def have(self, number: int) -> None:
        """Wait until all have so many."""
        while min(self._counts.values()) < number:
            self._read.clear()
            await self._read.wait()


async def main(hub: Process) -> None:
    port = hub.port
    handles = [f"one{number}" for number in range(READERS + DEAF)]
    owner, *others = (await registered(port, *handles)).values()
    await open_room(port, owner, ROOM)
    async with AsyncExitStack() as stack:
        speaker = await stack.enter_async_context(joined(port, owner))
        silent = others[:DEAF]
        quiet = [await deaf(port, f"/ws?room={ROOM}&token={token}") for token in silent]
        seats = [await stack.enter_async_context(joined(port, token)) for token in others[DEAF:]]
        readers = Readers(seats)
        before = most = resident(hub)
        async with asyncio.TaskGroup() as tasks:
            for seat in seats:
                tasks.create_task(readers.listen(seat))
            spoken = 0
            while sum(one["kind"] == "system.presence.leave" for one in speaker.heard) < DEAF:
                assert spoken < MOST
                await readers.have(spoken - AHEAD)
                await speaker.said(chat(LARGE))
                most = max(most, resident(hub))
                spoken += 1
            await readers.have(spoken)
            await speaker.said(chat("the end"))
        assert most - before < GROWTH
        assert {await ended(one) for one in quiet} <= {CloseCode.TOO_SLOW, None}
        epoch = speaker.welcome["epoch"]
        for token in silent:
            await check_resumes(port, token, epoch, speaker.heard[-1]["seq"])


async def check_resumes(port: int, token: str, epoch: str, last: int) -> None:
    """Whoever was let go comes back and gets all of it, in order."""
    async with joined(port, token, after=0, epoch=epoch) as seat:
        assert seat.welcome["resume"]["complete"] is True
        told: Any = {"seq": 0}
        for seq in range(1, last + 1):
            told = json.loads(await seat.socket.recv(decode=False))
            assert told["seq"] == seq
        assert told["payload"]["text"] == "the end"


@pytest.mark.long
@pytest.mark.requirement("wire.slow-consumer")
def test_ten_of_a_hundred_who_never_read_are_let_go_and_cost_the_others_nothing(tmp_path):
    limits = {"FOLKMOOT_LIMITS_UNSENT_BYTES": str(UNSENT), "FOLKMOOT_RATE_LIMITS": "off"}
    with Process(tmp_path, **limits) as hub:
        run(main(hub))
        hub.stop()
