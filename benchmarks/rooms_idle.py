"""How much memory a connection takes that does nothing, at the floor and in the hub's rooms."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.mail_servers import Running
from benchmarks.rooms_floor import floor
from benchmarks.rooms_hub import IDLE_ROOMS, hub, idle_room
from benchmarks.rooms_load import Crowd, Seat

GOAL_BYTES = 40 * 1024
SETTLE_SECONDS = 2.0
COLUMNS = "  {:>12} {:<14} {:>9} {:>14}  {}"


def resident(pid: int) -> int:
    """How many bytes of memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def idle(running: Running, seats: list[Seat]) -> tuple[int, float]:
    """How many of the connections were held, and the server's memory for each."""
    before = resident(running.pid)
    crowd = Crowd(running.port, running.pid)
    try:
        await crowd.join(seats)
        await asyncio.sleep(SETTLE_SECONDS)
        return crowd.held, (resident(running.pid) - before) / len(seats)
    finally:
        crowd.leave()


async def measure(
    folder: Path, tokens: list[str], counts: tuple[int, ...], core: int | None
) -> None:
    """Print the memory of each number of connections, each in servers that were just started."""
    print(f"\nrooms, idle: participants spread over {IDLE_ROOMS} durable rooms")
    print(COLUMNS.format("connections", "", "held", "memory each", "").rstrip())
    servers: dict[str, Callable[[], AbstractContextManager[Running]]] = {
        "floor": lambda: floor(core),
        "hub": lambda: hub(folder, core),
    }
    for count in counts:
        seats = [
            Seat(idle_room(number % IDLE_ROOMS), tokens[number // IDLE_ROOMS % len(tokens)])
            for number in range(count)
        ]
        for name, start in servers.items():
            with start() as running:
                held, each = await idle(running, seats)
            met = held == count and each <= GOAL_BYTES
            goal = f"goal ≤ {GOAL_BYTES // 1024} KiB, all held: {'met' if met else 'MISSED'}"
            told = COLUMNS.format(
                f"{count:,}",
                name,
                f"{held:,}",
                f"{each / 1024:.1f} KiB",
                goal if name == "hub" else "",
            )
            print(told.rstrip())
