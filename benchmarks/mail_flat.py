"""Whether mail costs the same with a few messages stored as with very many, and search likewise.

Steps are SQLite's own count of the instructions it ran, which is exact. Times are medians of calls
made in turns to both databases: those of the processor, and those of the clock, which for a send
are mostly the disk's and as uneven as it is.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeAlias

import uvloop
from msgspec.structs import replace

from benchmarks.mail_filling import PEERS, READER, WRITER, Office, fill_people, flood, opened
from benchmarks.steps import Action, metered

GOAL = 1.3
COLUMNS = "{:<26} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7} {:>7}  {}"

Steps: TypeAlias = dict[str, int]


class Size(NamedTuple):
    """How many messages and people to compare, and how many calls to time."""

    messages: tuple[int, int]
    people: tuple[int, int]
    calls: int


FULL = Size((1_000, 1_000_000), (1_000, 100_000), 200)
QUICK = Size((1_000, 50_000), (1_000, 5_000), 100)


async def mail_actions(office: Office) -> dict[str, Action]:
    """What a reader with all that mail, and one who writes to them, do."""
    mail, accounts = office.mail, office.accounts
    reader, writer = [(await accounts.recover(*office.codes[who])).account for who in (0, 1)]
    stored = replace(mail)
    stored._thread_pages = None  # As if something had changed since the last list.

    async def deliver() -> None:
        await mail.send(writer, READER, body="Good morning!")
        page = await mail.inbox(reader)
        await mail.mark_delivered(reader, page.seqs)

    return {
        "msg/inbox 50, peek": lambda: mail.inbox(reader, peek=True),
        "msg/threads 20, changed": lambda: stored.threads(reader, limit=PEERS),
        "msg/digest": lambda: mail.digest(reader),
        "msg/send": lambda: mail.send(writer, READER, body="Good morning!"),
        "send, inbox 50, mark read": deliver,
    }


async def search_actions(office: Office) -> dict[str, Action]:
    """Searches for what many, few, one and none are called."""
    viewer = (await office.accounts.recover(*office.codes[1])).account
    wanted = {
        "one letter (a)": "a",
        "three letters (ann)": "ann",
        "a common name (anna)": "anna",
        "a handle (bella_501)": "bella_501",
        "nobody (qqqq)": "qqqq",
    }
    search = office.accounts.search
    return {name: partial(search, viewer, query) for name, query in wanted.items()}


class Side(NamedTuple):
    """One of the two databases."""

    folder: Path
    stored: int


def new_side(parent: Path, name: str, stored: int) -> Side:
    """A folder for one of them."""
    folder = parent / f"{name}-{stored}"
    folder.mkdir()
    return Side(folder, stored)


Actions: TypeAlias = Callable[[Office], Awaitable[dict[str, Action]]]


async def steps_of(side: Side, actions_of: Actions) -> Steps:
    with metered() as meter:
        async with opened(side.folder) as office:
            actions = await actions_of(office)
            return {name: await meter.measure(action) for name, action in actions.items()}


@asynccontextmanager
async def both(sides: list[Side], actions_of: Actions) -> AsyncIterator[list[dict[str, Action]]]:
    """The actions on both databases, open at the same time."""
    async with AsyncExitStack() as stack:
        offices = [await stack.enter_async_context(opened(side.folder)) for side in sides]
        yield [await actions_of(office) for office in offices]


class Times(NamedTuple):
    """Seconds that one call took."""

    cpu: float
    clock: float


def now() -> Times:
    """What both clocks say."""
    return Times(time.process_time(), time.perf_counter())


async def times_of(sides: list[Side], actions_of: Actions, calls: int) -> dict[str, list[Times]]:
    """The medians of every action on each database, called in turns."""
    async with both(sides, actions_of) as actions:
        found = {}
        for name in actions[0]:
            taken: list[list[Times]] = [[] for _ in sides]
            for _ in range(calls):
                for own, times in zip(actions, taken, strict=True):
                    began = now()
                    await own[name]()
                    times.append(
                        Times(*(end - start for start, end in zip(began, now(), strict=True)))
                    )
            found[name] = [Times(*map(median, zip(*times, strict=True))) for times in taken]
        return found


async def compare(
    title: str, sides: list[Side], actions_of: Actions, calls: int, goal: float | None = None
) -> None:
    """Print how much more the many cost than the few."""
    few, many = [await steps_of(side, actions_of) for side in sides]
    times = await times_of(sides, actions_of, calls)
    sizes = [f"{side.stored:,}" for side in sides]
    print(f"\n{title}: steps, and times in turns, beside {sizes[0]} and {sizes[1]}")
    print(COLUMNS.format("", *sizes, "steps ×", *sizes, "CPU ×", "clock ×", "").rstrip())
    for name, (low, high) in times.items():
        steps, cpu = many[name] / few[name], high.cpu / low.cpu
        told = ""
        if goal is not None:
            told = f"goal < {goal:g}: {'met' if max(steps, cpu) < goal else 'MISSED'}"
        print(
            COLUMNS.format(
                name,
                f"{few[name]:,}",
                f"{many[name]:,}",
                f"{steps:.2f}",
                f"{low.cpu * 1e6:,.0f} µs",
                f"{high.cpu * 1e6:,.0f} µs",
                f"{cpu:.2f}",
                f"{high.clock / low.clock:.2f}",
                told,
            ).rstrip()
        )


async def run(size: Size) -> None:
    """Fill the databases and compare them."""
    with tempfile.TemporaryDirectory() as folder:
        mails = [new_side(Path(folder), "mail", count) for count in size.messages]
        for side in mails:
            began = time.perf_counter()
            await flood(side.folder, side.stored)
            took = time.perf_counter() - began
            print(f"stored {side.stored:,} messages in {took:.0f} s", flush=True)
        await compare("mail", mails, mail_actions, size.calls, GOAL)
        people = [new_side(Path(folder), "people", count) for count in size.people]
        for side in people:
            await fill_people(side.folder, side.stored)
        await compare("user search", people, search_actions, size.calls)


def main(*, quick: bool = False) -> None:
    """Print the tables."""
    print(f"\nflatness: {READER} has threads with {PEERS} people; {WRITER} is one of them")
    uvloop.run(run(QUICK if quick else FULL))


if __name__ == "__main__":
    main()
