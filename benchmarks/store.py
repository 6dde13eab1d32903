"""What a durable write and a read cost, by where they run, beside an idle and a busy loop.

The floor is one 4 KiB write with its sync, measured anew for each line, since a disk is not always
equally quick. "lag" is how late the loop woke a task that slept a millisecond: what everybody else
pays.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import uvloop

from benchmarks.store_rivals import CommitThreadWriter, LoopWriter
from folkmoot.core.ports import Tx, Unit
from folkmoot.store import SqliteStore

SECONDS = 0.35
BODY = "x" * 300
STATEMENTS = 3
SWITCH_INTERVALS = (0.005, 0.0001)
COLUMNS = "{:<22} {:<5} {:>7} {:>7} {:>9} {:>6} {:>7} {:>7} {:>7} {:>8}"


class Measured(NamedTuple):
    """One line of the table; times in milliseconds."""

    what: str
    loop: str
    switch: float
    callers: int
    floor: float
    rate: float
    p50: float
    p99: float
    lag: float


class Subject(Protocol):
    """What is measured."""

    async def write(self, unit: Unit[Any]) -> Any:
        """Commit a unit."""
        ...

    async def read(self, query: Unit[Any]) -> Any:
        """Run a query."""
        ...

    async def close(self) -> None:
        """Let go of the files."""
        ...


async def open_store(path: Path) -> Subject:
    return await SqliteStore.open(path)


class InThreads:
    """Our store, asked as if every query were long."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.write = store.write
        self.close = store.close

    async def read(self, query: Unit[Any]) -> Any:
        """Run a query in a thread."""
        return await self._store.read(query, long=True)


async def open_threads(path: Path) -> Subject:
    return InThreads(await SqliteStore.open(path))


async def open_commit_thread(path: Path) -> Subject:
    return CommitThreadWriter(path)


async def open_loop(path: Path) -> Subject:
    return LoopWriter(path)


WRITERS: dict[str, Callable[[Path], Awaitable[Subject]]] = {
    "writer thread (ours)": open_store,
    "commit in a thread": open_commit_thread,
    "all in the loop": open_loop,
}
READERS = {
    "short reads (ours)": open_store,
    "long reads (ours)": open_threads,
    "all in the loop": open_loop,
}


async def make_table(tx: Tx) -> None:
    await tx.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT)")


async def write_note(tx: Tx) -> None:
    for _ in range(STATEMENTS):
        await tx.execute("INSERT INTO notes (body) VALUES (?)", (BODY,))


async def read_note(tx: Tx) -> object:
    return await tx.fetch("SELECT id, body FROM notes WHERE id BETWEEN 500 AND 520")


def fill(count: int) -> Unit[int]:
    async def unit(tx: Tx) -> int:
        return await tx.execute(
            "INSERT INTO notes (body) WITH RECURSIVE n (i) AS "
            "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT ? FROM n",
            (count, BODY),
        )

    return unit


def sync_floor(folder: Path, times: int = 40) -> float:
    """Milliseconds for one small write with its sync."""
    with tempfile.TemporaryFile(dir=folder) as file:
        started = time.perf_counter()
        for number in range(times):
            os.pwrite(file.fileno(), b"x" * 4096, number * 4096)
            os.fdatasync(file.fileno())
        return (time.perf_counter() - started) / times * 1000


async def measure(
    ask: Callable[[], Awaitable[Any]], callers: int, *, busy: bool
) -> tuple[float, float, float, float]:
    """Rate, median and 99th percentile of asking, and the loop's lag."""
    times: list[float] = []
    lags: list[float] = []
    began = time.perf_counter()
    end = began + SECONDS

    async def caller() -> None:
        # Once at least: on a busy machine the time may be over before it begins.
        while (started := time.perf_counter()) < end or not times:
            await ask()
            times.append(time.perf_counter() - started)

    async def ticker() -> None:
        while (started := time.perf_counter()) < end or not lags:
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - started - 0.001)

    async def spinner() -> None:
        while (started := time.perf_counter()) < end:
            while time.perf_counter() < started + 0.001:
                sum(range(50))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(ticker())
        if busy:
            tasks.create_task(spinner())
        for _ in range(callers):
            tasks.create_task(caller())
    rate = len(times) / (time.perf_counter() - began)
    return (
        rate,
        percentile(times, 50) * 1000,
        percentile(times, 99) * 1000,
        percentile(lags, 99) * 1000,
    )


def percentile(values: list[float], part: int) -> float:
    return sorted(values)[len(values) * part // 100]


@asynccontextmanager
async def opened(open_: Callable[[Path], Awaitable[Subject]], rows: int) -> AsyncIterator[Subject]:
    with tempfile.TemporaryDirectory() as folder:
        subject = await open_(Path(folder) / "bench.db")
        await subject.write(make_table)
        await subject.write(fill(rows))
        await subject.write(write_note)  # What the fill left to be done is done before this.
        yield subject
        await subject.close()


async def measure_all(
    what: str, open_: Callable[[Path], Awaitable[Subject]], interval: float, *, write: bool
) -> list[Measured]:
    found = []
    unit = write_note if write else read_note
    for busy in (False, True):
        for callers in (1, 8, 32):
            async with opened(open_, 1_000) as subject:
                sys.setswitchinterval(interval)
                floor = sync_floor(Path(tempfile.gettempdir()))
                ask = partial(subject.write if write else subject.read, unit)
                values = await measure(ask, callers, busy=busy)
            loop = "busy" if busy else "idle"
            found.append(Measured(what, loop, interval * 1000, callers, floor, *values))
    return found


def run() -> list[Measured]:
    """Every writer and reader, at each switch interval."""
    found: list[Measured] = []
    before = sys.getswitchinterval()
    try:
        for interval in SWITCH_INTERVALS:
            for what, open_ in WRITERS.items():
                found += uvloop.run(measure_all(what, open_, interval, write=True))
        for what, open_ in READERS.items():
            found += uvloop.run(measure_all(what, open_, SWITCH_INTERVALS[-1], write=False))
    finally:
        sys.setswitchinterval(before)
    return found


async def growth() -> list[tuple[int, float]]:
    """Microseconds a write at two sizes of the database, 32 writers."""
    found = []
    for rows in (1_000, 300_000):
        async with opened(open_store, rows) as subject:
            rate, *_ = await measure(partial(subject.write, write_note), 32, busy=False)
            found.append((rows, 1_000_000 / rate))
    return found


def main() -> None:
    """Print the table."""
    found = run()
    sizes = uvloop.run(growth())
    print(f"\nstore: a unit is {STATEMENTS} rows of {len(BODY)} bytes, synchronous=FULL")
    print("floor: ms for a small write and its sync; floors: the time of a unit divided by it")
    head = ("", "loop", "switch", "callers", "a second", "floor", "floors", "p50", "p99", "lag p99")
    print(COLUMNS.format(*head))
    for m in found:
        numbers = (m.floor, 1000 / m.rate / m.floor, m.p50, m.p99, m.lag)
        switch, rate = f"{m.switch:.1f}ms", f"{m.rate:,.0f}"
        shown = [f"{number:.2f}" for number in numbers]
        print(COLUMNS.format(m.what, m.loop, switch, m.callers, rate, *shown))
    (few, low), (many, high) = sizes
    told = f"beside {few:,} rows {low:.0f} µs, beside {many:,} rows {high:.0f} µs"
    print(f"a write {told}: {high / low:.2f} times")


if __name__ == "__main__":
    main()
