"""What a hub on PostgreSQL does of what one on SQLite does, and what gathering saves.

Both hubs run at the same time and are asked in turns; shown are the medians of the ratios within
each round. The server of PostgreSQL runs on this machine too, and syncs each commit.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import uvloop

from benchmarks import cluster_nodes, mail, rooms_loading
from benchmarks.cluster_fence import GOAL as FENCED
from benchmarks.cluster_fence import fenced_cost
from benchmarks.mail_load import Load, cpu_of
from benchmarks.mail_servers import Running
from benchmarks.rooms_hub import DURABLE, hub, populate
from benchmarks.rooms_load import Crowd, Seat
from folkmoot.accounts import Accounts
from folkmoot.accounts.queries_credentials import BY_HASH
from folkmoot.clock import SystemClock
from folkmoot.core.ports import NewRows
from folkmoot.store.postgres import PostgresStore
from folkmoot.store.postgres.rates import RateTake, SharedRates
from folkmoot.vault import Vault
from tests import postgres

SENDERS = 32
WINDOW = 512
"""Envelopes on their way at full load."""
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
MAIL, ROOM = "mail send, 32 callers", "durable room, 32 senders"
GOALS = {MAIL: 0.5, ROOM: 0.6}
"""The least part of SQLite's rate."""
COLUMNS = "{:<40} {:>14} {:>14} {:>8}  {}"
CALLERS = 256
"""How many ask at the same time."""
CONNECTIONS = 32
TOKENS = 10_000
MOST_CPU = 0.1
"""What a gathered question may take of the processor's time of a single one."""


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
            # The server needs a processor too, so callers leave theirs while they wait.
            return (await load.measure(size.seconds, sleepless=False)).rate

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


def cpu_with(server: postgres.PostgresServer) -> float:
    """Seconds that this process and the server's have run."""
    me = server.pid
    children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    return time.process_time() + sum(cpu_of(int(pid)) for pid in [me, *children])


async def compare_cpu(
    what: str,
    size: Size,
    server: postgres.PostgresServer,
    single: Callable[[int], Awaitable[Any]],
    gathered: Callable[[int], Awaitable[Any]],
) -> None:
    """Print a line: the processor's time of a single question and of a gathered one."""

    async def cost(ask: Callable[[int], Awaitable[Any]], count: int) -> float:
        numbers = iter(range(count))

        async def caller() -> None:
            for number in numbers:
                await ask(number)

        before = cpu_with(server)
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        return (cpu_with(server) - before) / count

    few, many = int(4_000 * size.seconds), int(40_000 * size.seconds)
    rounds = [(await cost(single, few), await cost(gathered, many)) for _ in range(size.rounds)]
    ratio = median(after / before for before, after in rounds)
    costs = [f"{median(column) * 1e6:,.0f} µs" for column in zip(*rounds, strict=True)]
    told = f"goal ≤ {MOST_CPU:g}: {'met' if ratio <= MOST_CPU else 'MISSED'}"
    print(COLUMNS.format(what, *costs, f"{ratio:.3f}", told), flush=True)


async def gathering(size: Size, server: postgres.PostgresServer, folder: Path) -> None:
    """What many questions at the same time cost, asked one by one and together."""
    print(COLUMNS.format("", "single", "gathered", "ratio", "").rstrip())
    url = await postgres.schema_of(folder, given=server.url)
    store = await PostgresStore.open(url, connections=CONNECTIONS)
    try:
        vault = Vault(secrets.token_bytes(32), "benchmark")
        owner = await Accounts(store, SystemClock(), vault, policy="open").register("owner")
        rows = tokens(owner.account.id)
        await store.write(lambda tx: tx.insert(rows))

        async def one(sql: str, params: Sequence[Any]) -> None:
            await store.read(lambda tx: tx.fetch_one(sql, params))

        await compare_cpu(
            "CPU of a token look-up, 256 callers",
            size,
            server,
            lambda number: one(BY_HASH, (hash_of(number),)),
            lambda number: store.look_up(BY_HASH, hash_of(number)),
        )
        alone = SharedRates(store._run_alone, asyncio.ensure_future, 1)

        async def take_one(number: int) -> None:
            await alone._take_all(
                [RateTake(hash_of(number % 1_000), 1_000_000, 60, overdraw=False)]
            )

        await compare_cpu(
            "CPU of a rate limit, 256 callers",
            size,
            server,
            take_one,
            lambda number: store.rates.take(str(number % 1_000), 1_000_000, 60),
        )
    finally:
        await store.close()


def hash_of(number: int) -> str:
    """The hash of a token."""
    return f"{number % TOKENS:064x}"


def tokens(owner: str) -> NewRows:
    """Tokens to look up."""
    columns = ("id", "kind", "account_id", "label", "created_at", "scope", "hash")
    values = [(f"c_{n}", "token", owner, "", 1, "all", hash_of(n)) for n in range(TOKENS)]
    return NewRows("credentials", columns, values)


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
            await gathering(size, server, Path(made))
            ratio = await fenced_cost(server, Path(made) / "fence", 3 * size.rounds)
            met = "met" if ratio <= FENCED else "MISSED"
            what = "CPU of a fenced append, of an unfenced"
            print(COLUMNS.format(what, "", "", f"{ratio:.2f}", f"goal ≤ {FENCED:g}: {met}"))
            await cluster_nodes.measure(server, Path(made), size.seconds, size.rounds)
            url = await postgres.schema_of(Path(made) / "loading", given=server.url)
            await rooms_loading.measure(store={"url": url}, master_key=secrets.token_hex(32))
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
