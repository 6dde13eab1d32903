"""What a hub on PostgreSQL does of what one on SQLite does, and what gathering saves.

Both hubs run at the same time and are asked in turns; shown are the medians of the ratios within
each round. The server of PostgreSQL runs on this machine too, and syncs each commit.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import uvloop

from benchmarks import mail
from benchmarks.mail_load import Load
from benchmarks.mail_servers import Running
from benchmarks.rooms_hub import DURABLE, hub, populate
from benchmarks.rooms_load import Crowd, Seat
from tests import postgres

SENDERS = 32
WINDOW = 512
"""Envelopes on their way at full load."""
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
MAIL, ROOM = "mail send, 32 callers", "durable room, 32 senders"
GOALS = {MAIL: 0.5, ROOM: 0.6}
"""The least part of SQLite's rate."""
COLUMNS = "{:<40} {:>14} {:>14} {:>8}  {}"
CLIENTS = 10
"""Connections of the hub, as many as by default."""


class Size(NamedTuple):
    """How thoroughly to measure."""

    rounds: int
    seconds: float


FULL, QUICK = Size(7, 1.0), Size(3, 0.3)

Measure = Callable[[], Awaitable[float]]
"""Does something for a while; how often a second."""


class Engine(NamedTuple):
    """A store's hub, with people and rooms in it."""

    mail: Running
    people: list[mail.Person]
    rooms: Running
    tokens: list[str]


@asynccontextmanager
async def opened(folder: Path, address: str) -> AsyncIterator[dict[str, Engine]]:
    """Two hubs for mail and two for rooms, on both engines."""
    async with AsyncExitStack() as stack:
        engines = {}
        for name in (SQLITE, POSTGRES):
            served = []
            for part, fill in (("mail", mail.populate), ("rooms", populate)):
                data = folder / name / part
                data.mkdir(0o700, parents=True)
                values, variables = {}, {}
                if name == POSTGRES:
                    url, key = await postgres.schema_of(data, given=address), secrets.token_hex(32)
                    values = {"store": {"url": url}, "master_key": key}
                    variables = {"FOLKMOOT_STORE_URL": url, "FOLKMOOT_MASTER_KEY": key}
                found: Any = await fill(data, **values)
                running = stack.enter_context(hub(data, None, **variables))
                served += [running, found]
            engines[name] = Engine(*served)
        yield engines


async def compare(what: str, size: Size, subjects: dict[str, Measure]) -> None:
    """Print a line: both rates, and the part that PostgreSQL reaches."""
    rounds = [{name: await ask() for name, ask in subjects.items()} for _ in range(size.rounds)]
    ratio = median(each[POSTGRES] / each[SQLITE] for each in rounds)
    rates = [f"{median(each[name] for each in rounds):,.0f}/s" for name in (SQLITE, POSTGRES)]
    met = "met" if ratio >= GOALS[what] else "MISSED"
    told = f"goal ≥ {GOALS[what]:g}: {met}"
    print(COLUMNS.format(what, *rates, f"{ratio:.2f}", told), flush=True)


async def compare_mail(size: Size, engines: dict[str, Engine]) -> None:
    """Letters that 32 callers send over `/mcp`."""
    loads = {name: Load(one.mail.port, one.mail.pid) for name, one in engines.items()}
    try:
        for name, load in loads.items():
            people = engines[name].people
            await load.connect([mail.writing(people, number) for number in range(SENDERS)])
            await load.measure(size.seconds / 2)

        async def measure(load: Load) -> float:
            return (await load.measure(size.seconds)).rate

        await compare(MAIL, size, {name: partial(measure, load) for name, load in loads.items()})
    finally:
        for load in loads.values():
            load.close()


async def compare_rooms(size: Size, engines: dict[str, Engine]) -> None:
    """Envelopes that 32 participants say in one durable room."""
    crowds = {name: Crowd(one.rooms.port, one.rooms.pid) for name, one in engines.items()}
    try:
        for name, crowd in crowds.items():
            seats = [Seat(DURABLE, token) for token in engines[name].tokens[:SENDERS]]
            await crowd.join(seats)

        async def measure(crowd: Crowd) -> float:
            return (await crowd.full(size.seconds, WINDOW, 1)).envelopes

        await compare(ROOM, size, {name: partial(measure, one) for name, one in crowds.items()})
    finally:
        for crowd in crowds.values():
            crowd.leave()


async def measure(size: Size) -> None:
    """Print the table."""
    server = postgres.PostgresServer(postgres.NEWEST, "fsync=on")
    try:
        with tempfile.TemporaryDirectory() as made:
            print(f"\ncluster: {size.rounds} rounds of {size.seconds:g} s in turns")
            print(COLUMNS.format("", SQLITE, POSTGRES, "ratio", "").rstrip())
            async with opened(Path(made), server.url) as engines:
                await compare_mail(size, engines)
                await compare_rooms(size, engines)
    finally:
        server.remove()


def main(*, quick: bool = False) -> None:
    """Compare the engines, where a server can be had."""
    if not postgres.is_available() or postgres.GIVEN in os.environ:
        print(f"\ncluster: left out; {postgres.MISSING}")
        return
    uvloop.run(measure(QUICK if quick else FULL))


if __name__ == "__main__":
    main()
