"""What rooms cost: beside a broadcaster on the same WebSockets that looks at nothing, the floor.

The servers run on one processor and their participants on another. Everything is measured in turns
and compared within a round; shown are the medians of the rounds. "CPU" is the time the server's
process ran for each envelope, which other work on the machine disturbs least.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import uvloop

from benchmarks import rooms_idle, rooms_loading
from benchmarks.mail import processors
from benchmarks.rooms_floor import MOST_CONNECTIONS, floor
from benchmarks.rooms_hub import DURABLE, MEMORY, hub, populate
from benchmarks.rooms_load import Crowd, Heard, Seat
from folkmoot.transports.limits import OPEN_FACTOR
from folkmoot.transports.listen import make_room

PARTICIPANTS = (2, 10, 50)
WINDOW = 512
"""How many envelopes are on their way at full load."""
MANNERS = {"one by one": 1, "16 at once": 16}
"""How many envelopes a participant sends at once."""
FLOOR = "floor"
FSYNC = "fsync"
"""The disk keeps a page for sure: no durable message is faster."""
GOALS = {(MEMORY, 10): 0.5, (MEMORY, 50): 0.7, (DURABLE, 10): 0.3}
"""The least part of the floor's rate, by participants."""
SLOWEST = 0.005
"""What p99 should stay under at half of the maximum load, in seconds."""
PAGE = bytes(4096)
COLUMNS = "{:>12} {:<8} {:<18} {:>11} {:>12} {:>9} {:>8} {:>8} {:>8} {:>8}  {}"


Rounds: TypeAlias = list[dict[str, Heard]]


class Size(NamedTuple):
    """How thoroughly to measure."""

    rounds: int
    seconds: float
    idle: tuple[int, ...]


FULL, QUICK = Size(5, 1.0, (1_000, 10_000)), Size(3, 0.3, (1_000,))


class Line(NamedTuple):
    """One line of the table."""

    participants: int
    subject: str
    load: str
    heard: Heard
    of_floor: tuple[float, float] | None
    """Parts of the floor's rate: as it was, and as one processor could do it."""

    @property
    def verdict(self) -> str:
        """Whether the goal is met, where there is one."""
        if self.of_floor is None:
            return "" if self.subject == FLOOR else goal("p99 < 5 ms", self.heard.p99 < SLOWEST)
        least = GOALS.get((self.subject, self.participants))
        return "" if least is None else goal(f"≥ {least:g}", min(self.of_floor) >= least)

    def __str__(self) -> str:
        heard = self.heard
        return COLUMNS.format(
            self.participants,
            self.subject,
            self.load,
            f"{heard.envelopes:,.0f}",
            f"{heard.deliveries:,.0f}",
            f"{heard.cpu * 1e6:.1f} µs",
            *("", "") if self.of_floor is None else (f"{part:.2f}" for part in self.of_floor),
            f"{heard.p50 * 1e3:.2f}",
            f"{heard.p99 * 1e3:.2f}",
            self.verdict,
        ).rstrip()


def goal(told: str, met: bool) -> str:  # noqa: FBT001
    """A goal, and whether it is met."""
    return f"goal {told}: {'met' if met else 'MISSED'}"


def line(participants: int, subject: str, load: str, rounds: Rounds, *, full: bool) -> Line:
    """The medians of the rounds, and of the ratios within each."""
    mine, floors = [r[subject] for r in rounds], [r[FLOOR] for r in rounds]
    pairs = list(zip(mine, floors, strict=True))
    of_floor = (
        median(m.envelopes / f.envelopes for m, f in pairs),
        median(f.cpu / m.cpu for m, f in pairs),
    )
    heard = Heard(*(median(values) for values in zip(*mine, strict=True)))
    return Line(participants, subject, load, heard, of_floor if full else None)


class Bench:
    """The same participants in all three places."""

    def __init__(self, crowds: dict[str, Crowd], size: Size, folder: Path) -> None:
        self._crowds = crowds
        self._size = size
        self._folder = folder
        self._synced: list[tuple[float, float]] = []

    async def run(self, participants: int) -> AsyncIterator[Line | str]:
        """Full load in two manners, then half of each beside the disk's own time."""
        seconds, crowds = self._size.seconds, self._crowds
        for manner, at_once in MANNERS.items():
            full = await self._rounds(lambda name, n=at_once: crowds[name].full(seconds, WINDOW, n))
            for name in crowds:
                yield line(participants, name, f"full, {manner}", full, full=True)
            half = {name: median(r[name].envelopes for r in full) / 2 for name in crowds}
            self._synced.clear()
            paced = await self._rounds(
                lambda name, n=at_once, half=half: crowds[name].paced(seconds, half[name], n)
            )
            for name in crowds:
                yield line(participants, name, f"half, {manner}", paced, full=False)
            p50, p99 = (f"{median(took) * 1e3:.2f}" for took in zip(*self._synced, strict=True))
            yield COLUMNS.format(participants, FSYNC, "a page", *[""] * 5, p50, p99, "").rstrip()

    async def _rounds(self, measure: Any) -> Rounds:
        rounds = []
        for _ in range(self._size.rounds):
            rounds.append({name: await measure(name) for name in self._crowds})
            self._synced.append(sync_seconds(self._folder))
        return rounds


def sync_seconds(folder: Path, count: int = 200) -> tuple[float, float]:
    """How long the disk takes to keep one page for sure: the median, and 99 of 100 times."""
    took = []
    with (folder / "page").open("wb") as file:
        for _ in range(count):
            began = time.perf_counter()
            os.pwrite(file.fileno(), PAGE, 0)
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return median(took), sorted(took)[count * 99 // 100]


@asynccontextmanager
async def joined(
    stack: ExitStack, folder: Path, tokens: list[str], count: int, core: int | None
) -> AsyncIterator[dict[str, Crowd]]:
    """So many participants in each of the three places."""
    bare = stack.enter_context(floor(core))
    served = stack.enter_context(hub(folder, core))
    crowds = {
        FLOOR: Crowd(bare.port, bare.pid),
        MEMORY: Crowd(served.port, served.pid),
        DURABLE: Crowd(served.port, served.pid),
    }
    try:
        for name, crowd in crowds.items():
            await crowd.join([Seat(name, token) for token in tokens[:count]])
        yield crowds
    finally:
        for crowd in crowds.values():
            crowd.leave()


async def measure(size: Size) -> None:
    """Print both tables."""
    server_core, caller_core = processors()
    make_room(MOST_CONNECTIONS // OPEN_FACTOR)
    everywhere = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        tokens = await populate(folder)
        print(f"\nrooms: {size.rounds} rounds of {size.seconds:g} s in turns; p50 and p99 in ms")
        print("of floor: the part of the floor's rate, as it was and by the processor's time;")
        print("a goal is held against the lesser of the two")
        print("fsync: how long the disk takes to keep a page; no durable message is faster")
        head = (
            "participants",
            "",
            "load",
            "envelopes/s",
            "deliveries/s",
            "CPU",
            "of floor",
            "by CPU",
        )
        print(COLUMNS.format(*head, "p50", "p99", "").rstrip())
        os.sched_setaffinity(0, everywhere if caller_core is None else {caller_core})
        try:
            for count in PARTICIPANTS:
                with ExitStack() as stack:
                    async with joined(stack, folder, tokens, count, server_core) as crowds:
                        async for found in Bench(crowds, size, folder).run(count):
                            print(found, flush=True)
            await rooms_idle.measure(folder, tokens, size.idle, server_core)
        finally:
            os.sched_setaffinity(0, everywhere)


def main(*, quick: bool = False) -> None:
    """Measure how rooms are loaded, rooms that are spoken in, and such as are silent."""
    rooms_loading.main()
    uvloop.run(measure(QUICK if quick else FULL))


if __name__ == "__main__":
    main()
