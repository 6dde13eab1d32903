"""A hundred in a room of whom ten never read: they are let go, and the others notice nothing."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from folkmoot.core.closecodes import CloseCode
from tests.faults.letters import line
from tests.harness import read_answer, run
from tests.interaction.room_client import ROOM, Seat, address, chat, joined, rest
from tests.process import Process
from tests.transports.websocket.support import CLOSE, Client, handshake

READERS, DEAF = 90, 10
UNSENT = 1_048_576
LARGE = "x" * 262_144
MOST = 400
"""Messages; the system's own buffers hold some MiB for a connection, and only then ours begin."""
AHEAD = 3
"""How many messages the readers, who all share one processor with us, may be behind."""
GROWTH = DEAF * UNSENT + 24 * 1_048_576
"""What may wait for those who do not read, and what the hub needs besides."""


class Silent:
    """A client that joins and reads nothing until it is asked to."""

    def __init__(self, client: Client) -> None:
        self._client = client
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]

    async def ended(self) -> int | None:
        """Read everything after all, and answer the code of the close; None if it came too late."""
        self._client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        try:
            while True:
                opcode, payload = await self._client.receive()
                if opcode == CLOSE:
                    return int.from_bytes(payload[:2], "big")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None


@asynccontextmanager
async def silent(port: int, token: str) -> AsyncIterator[Silent]:
    url = urlsplit(address(port, token))
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
    client = Client(*await asyncio.open_connection(sock=made, limit=2048))
    try:
        client.writer.write(handshake(f"{url.path}?{url.query}"))
        assert (await read_answer(client.reader)).status == 101
        yield Silent(client)
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


async def tokens(port: int) -> list[str]:
    async with line(port) as stranger:
        handles = [f"one{number}" for number in range(READERS + DEAF)]
        made = [await stranger.call("msg_register", handle=handle) for handle in handles]
    return [one["token"] for one in made]


def gone(seat: Seat) -> int:
    """How many were heard to leave."""
    return sum(one["kind"] == "system.presence.leave" for one in seat.heard)


async def main(hub: Process) -> None:
    port = hub.port
    owner, *others = await tokens(port)
    spec = {"name": ROOM, "access": "open"}
    assert (await rest(port, owner, "POST", "", spec)).status == 201
    async with AsyncExitStack() as stack:
        speaker = await stack.enter_async_context(joined(port, owner))
        deaf = others[:DEAF]
        quiet = [await stack.enter_async_context(silent(port, token)) for token in deaf]
        seats = [await stack.enter_async_context(joined(port, token)) for token in others[DEAF:]]
        readers = Readers(seats)
        before = most = resident(hub)
        async with asyncio.TaskGroup() as tasks:
            for seat in seats:
                tasks.create_task(readers.listen(seat))
            spoken = 0
            while gone(speaker) < DEAF:
                assert spoken < MOST
                await readers.have(spoken - AHEAD)
                await speaker.said(chat(LARGE))
                most = max(most, resident(hub))
                spoken += 1
            await readers.have(spoken)
            await speaker.said(chat("the end"))
        assert most - before < GROWTH
        assert {await one.ended() for one in quiet} <= {CloseCode.TOO_SLOW, None}
        epoch = speaker.welcome["epoch"]
        for token in deaf:
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
