"""Connections are accepted many at a time, and begun in turn by address."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

from folkmoot.transports import accept
from folkmoot.transports.accept import Listener
from folkmoot.transports.limits import LISTEN_BACKLOG, MAX_BEGUN_PER_TURN
from folkmoot.transports.listen import listen
from tests.conftest import settings_of
from tests.harness import reached

SECONDS = 60


class Noted(asyncio.Protocol):
    """A connection that is noted by where it comes from, and sends a byte."""

    def __init__(self, begun: asyncio.Queue[str], here: set[asyncio.BaseTransport]) -> None:
        self._begun = begun
        self._here = here
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(b"!")
        self._transport = transport
        self._here.add(transport)
        self._begun.put_nowait(transport.get_extra_info("peername")[0])

    def connection_lost(self, exc: Exception | None) -> None:
        assert self._transport is not None
        self._here.discard(self._transport)


class Door:
    """A listener, its port, the order in which its connections began and how many it closed."""

    def __init__(self, most: int = 1000) -> None:
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.here: set[asyncio.BaseTransport] = set()
        self.turned_away = 0
        self.socket = listen("127.0.0.1", 0)[0]
        self.port: int = self.socket.getsockname()[1]
        self.listener = Listener(
            self.socket,
            lambda: Noted(self.begun, self.here),
            most=most,
            address_of=str,
            turned_away=self._turn_away,
        )

    def _turn_away(self) -> None:
        self.turned_away += 1

    async def wait_for(self, count: int) -> list[str]:
        """Where so many connections come from, in their order."""
        async with asyncio.timeout(SECONDS):
            return [await self.begun.get() for _ in range(count)]


@pytest.fixture
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Door]:
    """A listener on a free port."""
    made = Door(**settings_of(request))
    try:
        yield made
    finally:
        made.listener.close()
        await made.listener.wait_closed()


@contextmanager
def connected(port: int, *sources: str) -> Iterator[list[socket.socket]]:
    """Connections from these addresses, all of them there before the loop turns again."""
    made = []
    try:
        for source in sources:
            one = socket.socket()
            made.append(one)
            one.bind((source, 0))
            one.connect(("127.0.0.1", port))
        yield made
    finally:
        for one in made:
            one.close()


async def test_a_crowd_from_one_address_waits_for_itself(door):
    crowd = ["127.0.0.2"] * 100
    with connected(door.port, *crowd, "127.0.0.3"):
        order = await door.wait_for(101)
    assert order.index("127.0.0.3") <= MAX_BEGUN_PER_TURN


async def test_many_are_accepted_in_one_turn(door):
    with connected(door.port, *["127.0.0.2"] * 100):
        await door.wait_for(1)
        queued = struct.unpack_from("I", tcp_info(door.socket), UNACKED)[0]
        assert queued == 0
        assert len(await door.wait_for(99)) == 99


@pytest.mark.settings(most=20)
async def test_of_one_address_only_so_many_wait(door):
    crowd = ["127.0.0.2"] * 30
    with connected(door.port, *crowd, "127.0.0.3") as sockets:
        order = await door.wait_for(11)
        assert door.turned_away == 20
        assert sorted(order) == ["127.0.0.2"] * 10 + ["127.0.0.3"]
        for closed in sockets[10:30]:
            closed.settimeout(SECONDS)
            assert closed.recv(1) == b""


@pytest.mark.settings(most=5)
async def test_of_all_only_so_many_wait(door):
    with connected(door.port, *(f"127.0.0.{last}" for last in range(2, 12))):
        await door.wait_for(5)
        assert door.turned_away == 5


async def test_without_descriptors_connections_wait_in_the_queue(door, monkeypatch):
    monkeypatch.setattr(accept, "ACCEPT_PAUSE_SECONDS", 0.01)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with connected(door.port, "127.0.0.2"):
        fillers = [socket.socket()]
        resource.setrlimit(resource.RLIMIT_NOFILE, (fillers[0].fileno() + 5, hard))
        try:
            while True:
                try:
                    fillers.append(socket.socket())
                except OSError:
                    break
            await asyncio.sleep(0.05)
            assert door.begun.empty()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for each in fillers:
                each.close()
        assert await door.wait_for(1) == ["127.0.0.2"]


async def test_what_was_not_begun_is_let_go_at_the_end(door):
    with connected(door.port, *["127.0.0.2"] * 50) as sockets:
        await door.wait_for(1)
        served = set(door.here)
        door.listener.close()
        await door.listener.wait_closed()
        # What was being begun is begun, and let go too: nobody else would ever end it.
        await reached(lambda: door.here <= served)
        sockets[-1].settimeout(SECONDS)
        with suppress(ConnectionResetError):
            assert sockets[-1].recv(1) == b""
        with pytest.raises(ConnectionRefusedError), connected(door.port, "127.0.0.2"):
            pass


SOMAXCONN = int(Path("/proc/sys/net/core/somaxconn").read_text())
# Where the system says of a listening socket how many wait in its queue, and how many may.
UNACKED, SACKED = 24, 28


def tcp_info(listening: socket.socket) -> bytes:
    """What the system knows of a socket."""
    return listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)


async def test_the_queue_is_as_long_as_the_system_allows(door):
    assert struct.unpack_from("I", tcp_info(door.socket), SACKED)[0] == min(
        LISTEN_BACKLOG, SOMAXCONN
    )
