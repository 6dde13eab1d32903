"""The floor of rooms: a broadcaster on the hub's WebSockets that looks at nothing it is sent.

`python -m benchmarks.rooms_floor` measures it; with `serve` it runs it and prints its port.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.mail_servers import Running, started
from benchmarks.rooms_load import Crowd, Heard
from folkmoot.transports.answers import Answers
from folkmoot.transports.descriptors import make_room
from folkmoot.transports.guard import Hosts
from folkmoot.transports.listen import listen
from folkmoot.transports.protocol import CROWD
from folkmoot.transports.server import HttpServer
from folkmoot.transports.websocket import (
    Audience,
    Handler,
    Link,
    Refusal,
    UpgradeRequest,
    WebSocketEndpoint,
    text_frame,
)
from folkmoot.web.pages import Pages

PARTICIPANTS = (2, 10, 50)
WINDOW = 512
"""How many envelopes are on their way at full load."""
BURST = 16
MOST_IDLE = 10_000
COLUMNS = "  {:>12} {:<22} {:>11} {:>13} {:>9} {:>9} {:>9}"


class Size(NamedTuple):
    """How thoroughly to measure."""

    seconds: float
    idle: tuple[int, ...]


FULL, QUICK = Size(2.0, (1_000, MOST_IDLE)), Size(0.5, (1_000,))


class Broadcaster:
    """Sends everyone whatever anyone says."""

    def __init__(self) -> None:
        self._audience = Audience()

    async def accept(self, _: UpgradeRequest) -> Callable[[Link], Handler] | Refusal:
        """Let everyone in."""
        return self._enter

    def _enter(self, link: Link) -> Handler:
        self._audience.add(link)
        return self

    def on_text(self, data: bytes) -> None:
        """Pass it on."""
        self._audience.send(text_frame(data))

    def on_close(self, code: int, reason: str) -> None:
        """Nothing to do: a closed link leaves by itself."""


async def serve() -> None:
    """Serve the floor for as long as the process runs."""
    make_room(MOST_IDLE + 100)
    answers = Answers(Pages(version="0", public_url="", metrics=False).error_page)
    app = WebSocketEndpoint(Broadcaster(), hosts=Hosts("127.0.0.1"), answers=answers)
    sockets = listen("127.0.0.1", 0)
    server = HttpServer(app, sockets, max_connections=MOST_IDLE + 100, shutdown_seconds=1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve())
        await server.listening()
        print(f"port {sockets[0].getsockname()[1]}", flush=True)


@contextmanager
def floor(core: int | None) -> Iterator[Running]:
    """The floor in a process of its own."""
    with started([sys.executable, "-m", "benchmarks.rooms_floor", "serve"], {}, core) as running:
        yield running


def resident(pid: int) -> int:
    """How many bytes of memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def measure_idle(running: Running, count: int) -> float:
    """Bytes of the server's memory for each connection that does nothing."""
    before = resident(running.pid)
    crowd = Crowd(running.port, running.pid)
    try:
        await crowd.join(count)
        gc.collect()
        return (resident(running.pid) - before) / count
    finally:
        crowd.leave()


def row(participants: int, load: str, heard: Heard) -> str:
    """A line of the table."""
    return COLUMNS.format(
        participants,
        load,
        f"{heard.envelopes:,.0f}",
        f"{heard.deliveries:,.0f}",
        f"{heard.cpu * 1e6:.1f} µs",
        f"{heard.p50 * 1e3:.2f} ms",
        f"{heard.p99 * 1e3:.2f} ms",
    )


async def measure(size: Size, core: int | None) -> None:
    """Measure full load, and half of it in two manners, for each number of participants."""
    print("\nRooms: the floor, a broadcaster on the same WebSockets that checks nothing")
    print(
        COLUMNS.format("participants", "load", "envelopes/s", "deliveries/s", "CPU", "p50", "p99")
    )
    for count in PARTICIPANTS:
        with floor(core) as running:
            crowd = Crowd(running.port, running.pid)
            await crowd.join(count)
            full = await crowd.full(size.seconds, WINDOW)
            print(row(count, "full", full))
            half = full.envelopes / 2
            print(row(count, "half, one by one", await crowd.paced(size.seconds, half, 1)))
            print(
                row(count, f"half, {BURST} at once", await crowd.paced(size.seconds, half, BURST))
            )
            crowd.leave()
    for idle in size.idle:
        with floor(core) as running:
            each = await measure_idle(running, idle)
            print(f"  {idle:>12,} idle connections: {each / 1024:.1f} KiB of memory each")


def main(*, quick: bool = False) -> None:
    """Measure the floor on one processor, from another."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[-1] if len(cores) > 1 else None
    make_room(MOST_IDLE // CROWD)
    if core is not None:
        os.sched_setaffinity(0, set(cores[:-1]))
    try:
        uvloop.run(measure(QUICK if quick else FULL, core))
    finally:
        os.sched_setaffinity(0, set(cores))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        uvloop.run(serve())
    else:
        main(quick="--quick" in sys.argv)
