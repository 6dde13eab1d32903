"""What mail costs over `/mcp`, beside a bare ASGI handler and beside a bare tool of the SDK.

Each server runs in a process on one processor and its callers on another. Everything is measured
in turns and compared within a round; shown are the medians of the rounds. "CPU" is the time the
server's process ran for each call, which other work on the machine disturbs least.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeAlias

import msgspec
import uvloop

from benchmarks import mail_flat
from benchmarks.mail_load import Load, Measured, request_of
from benchmarks.mail_servers import Running, floor, hub
from folkmoot.app import Hub
from folkmoot.settings import Settings
from tests.apps import connect

CALLERS = (1, 8, 32)
PEOPLE = max(CALLERS)
LETTERS = 2
"""How many each person has from each other at first."""
BODY = "All is well here, and the bread is in the oven; come by when you can. " * 3
HUB, ASGI_FLOOR, SDK_TOOL = "hub", "bare ASGI handler", "bare SDK tool"
APP = "hub, to an app"
"""The hub once more, called with an app's access token in place of the account's token."""
FLOOR_OF = {HUB: ASGI_FLOOR, SDK_TOOL: ASGI_FLOOR, APP: HUB}
NOTHING = 2.5
"""The most that a call which does nothing is to cost, as a multiple of the floor."""
SCOPE = "account.read mail.read mail.send"
TRIVIAL = (ASGI_FLOOR, SDK_TOOL)
"""What answers the same to everything."""
COLUMNS = "{:<24} {:>7} {:<18} {:>10} {:>9} {:>8} {:>8}  {}"


class Size(NamedTuple):
    """How thoroughly to measure."""

    rounds: int
    seconds: float


FULL, QUICK = Size(7, 0.5), Size(3, 0.2)


class Person(NamedTuple):
    """One of those who write to each other."""

    handle: str
    token: str
    access: str = ""
    """The access token of an app of theirs."""


Script: TypeAlias = Callable[[list[Person], int], list[bytes]]
"""The requests that one of the people sends again and again."""


class Work(NamedTuple):
    """What is called, and the least part of its floor's rate that it should reach."""

    name: str
    script: Script
    goals: dict[str, float]


def writing(people: list[Person], number: int) -> list[bytes]:
    to = people[(number + 1) % len(people)].handle
    return [request_of("msg_send", {"to": to, "body": BODY}, people[number].token)]


def asking(tool: str, **arguments: object) -> Script:
    """Ask the same again."""
    return lambda people, number: [request_of(tool, arguments, people[number].token)]


def conversing(people: list[Person], number: int) -> list[bytes]:
    """Write to the next person, then read what the one before has written."""
    return writing(people, number) + asking("msg_inbox", limit=50)(people, number)


def listing(people: list[Person], number: int) -> list[bytes]:
    """Write to the next person, so that a list of threads has changed, and ask for it."""
    return writing(people, number) + asking("msg_threads", limit=20)(people, number)


WORKS = (
    Work("a call that does nothing", asking("msg_nothing"), {HUB: 1 / NOTHING}),
    Work("msg/whoami", asking("msg_whoami"), {APP: 0.97}),
    Work("msg/send", writing, {HUB: 0.12}),
    Work("msg/inbox 50, peek", asking("msg_inbox", limit=50, peek=True), {HUB: 0.06}),
    Work("msg/inbox 50", asking("msg_inbox", limit=50), {HUB: 0.06}),
    Work("msg/threads 20", asking("msg_threads", limit=20), {HUB: 0.2}),
    Work("send, inbox 50 in turn", conversing, {}),
    Work("send, threads in turn", listing, {}),
)


class Line(NamedTuple):
    """One line of the table."""

    work: Work
    callers: int
    subject: str
    measured: Measured
    of_floor: Measured
    """Parts of the floor's rate: as calls a second, and as one processor could do them."""


async def populate(folder: Path, **settings: object) -> list[Person]:
    """Make people who have all written to each other, in the data folder of a hub."""
    values = {"port": 0, "data": str(folder), "rate_limits": "off", **settings}
    async with Hub(msgspec.convert(values, Settings)).running() as here:
        made = [await here.accounts.register(f"person_{number}") for number in range(PEOPLE)]
        for _ in range(LETTERS):
            for one in made:
                others = (other.account.handle for other in made if other is not one)
                sends = (here.mail.send(one.account, other, body=BODY) for other in others)
                await asyncio.gather(*sends)
        pairs = [await connect(here.accounts, one.account, scope=SCOPE) for one in made]
    return [
        Person(one.account.handle, one.token, pair.access_token)
        for one, pair in zip(made, pairs, strict=True)
    ]


def processors() -> tuple[int | None, int | None]:
    """One processor for the servers and one for the callers, if there are two."""
    available = sorted(os.sched_getaffinity(0))
    return (available[0], available[1]) if len(available) > 1 else (None, None)


class Bench:
    """The servers, all of them running, and the people who call them."""

    def __init__(self, servers: dict[str, Running], people: list[Person], size: Size) -> None:
        self._loads = {name: Load(server.port, server.pid) for name, server in servers.items()}
        self._people = people
        self._size = size

    async def measure(self, work: Work, callers: int) -> list[Line]:
        """The lines of one kind of work, at one number of callers."""
        trivial = [request_of("trivial", {"to": "somebody", "body": BODY})]
        apps = [each._replace(token=each.access) for each in self._people]
        loads = {n: load for n, load in self._loads.items() if n != APP or n in work.goals}
        for name, load in loads.items():
            people = apps if name == APP else self._people
            is_floor = name in TRIVIAL
            await load.connect(
                [trivial if is_floor else work.script(people, number) for number in range(callers)]
            )
            await load.measure(self._size.seconds / 2)
        rounds = [
            {name: await load.measure(self._size.seconds) for name, load in loads.items()}
            for _ in range(self._size.rounds)
        ]
        return [line(work, callers, name, rounds) for name in loads]

    def close(self) -> None:
        """Let the servers go."""
        for load in self._loads.values():
            load.close()


def line(work: Work, callers: int, name: str, rounds: Sequence[dict[str, Measured]]) -> Line:
    """The medians of the rounds, and of the ratios within each."""
    beside = FLOOR_OF.get(name, name)
    return Line(
        work,
        callers,
        name,
        Measured(median(r[name].rate for r in rounds), median(r[name].cpu for r in rounds)),
        Measured(
            median(r[name].rate / r[beside].rate for r in rounds),
            median(r[beside].cpu / r[name].cpu for r in rounds),
        ),
    )


@asynccontextmanager
async def opened(size: Size) -> AsyncIterator[Bench]:
    """A hub with people who write to each other, and what it is compared with."""
    server_core, caller_core = processors()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        data = Path(folder) / "hub"
        people = await populate(data)
        ours = stack.enter_context(hub(data, server_core))
        servers = {
            ASGI_FLOOR: stack.enter_context(floor("asgi", server_core)),
            HUB: ours,
            APP: ours,
            SDK_TOOL: stack.enter_context(floor("sdk", server_core)),
        }
        everywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, everywhere if caller_core is None else {caller_core})
        bench = Bench(servers, people, size)
        try:
            yield bench
        finally:
            bench.close()
            os.sched_setaffinity(0, everywhere)


def show(found: Line) -> None:
    """Print a line."""
    goal = found.work.goals.get(found.subject)
    told = ""
    if goal is not None:
        reached = found.of_floor.cpu >= goal
        told = f"{1 / found.of_floor.cpu:.1f} ×, goal ≥ {goal:g}: {'met' if reached else 'MISSED'}"
    print(
        COLUMNS.format(
            found.work.name,
            found.callers,
            found.subject,
            f"{found.measured.rate:,.0f}",
            f"{found.measured.cpu * 1e6:,.0f} µs",
            f"{found.of_floor.rate:.2f}",
            f"{found.of_floor.cpu:.2f}",
            told,
        ).rstrip()
    )


async def rates(size: Size) -> None:
    """Print the table of calls."""
    print(f"\nmail: {size.rounds} rounds of {size.seconds:g} s in turns; bodies of {len(BODY)}")
    print("of floor: the part of its floor's rate, as called and by the processor's time;")
    print("a goal is held against the latter, which the callers do not limit")
    head = ("", "callers", "", "calls/s", "CPU", "of floor", "by CPU", "")
    print(COLUMNS.format(*head).rstrip())
    async with opened(size) as bench:
        for work in WORKS:
            for callers in CALLERS:
                for found in await bench.measure(work, callers):
                    show(found)


def main(*, quick: bool = False) -> None:
    """Print the table of calls, then those of flatness."""
    uvloop.run(rates(QUICK if quick else FULL))
    mail_flat.main(quick=quick)


if __name__ == "__main__":
    main()
