"""The hub whose rooms are measured, with everyone who comes to them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.mail_servers import Running, started
from benchmarks.rooms_floor import MOST_CONNECTIONS
from folkmoot.app import Hub
from folkmoot.rooms.access import visitor_of
from folkmoot.rooms.spec import RoomSpec
from folkmoot.settings import Settings

PEOPLE = 100
IDLE_ROOMS = 100
MEMORY, DURABLE = "memory", "durable"
"""The two rooms in which something is said."""


def idle_room(number: int) -> str:
    """A room in which nothing is said."""
    return f"idle-{number}"


async def populate(folder: Path, **settings: object) -> list[str]:
    """Make people and rooms in the data folder of a hub; the people's tokens."""
    values = {"port": 0, "data": str(folder), "rate_limits": "off", **settings}
    async with Hub(msgspec.convert(values, Settings)).running() as here:
        made = await asyncio.gather(
            *(here.accounts.register(f"person_{number}") for number in range(PEOPLE))
        )
        owner, other = (visitor_of(one.account) for one in made[:2])
        await here.rooms.create(owner, RoomSpec(MEMORY, durable=False))
        await here.rooms.create(owner, RoomSpec(DURABLE))
        for number in range(IDLE_ROOMS):
            await here.rooms.create(other, RoomSpec(idle_room(number)))
    return [one.token for one in made]


@contextmanager
def hub(folder: Path, core: int | None, **variables: str) -> Iterator[Running]:
    """The hub in a process of its own, as it comes but for the limits."""
    command = [sys.executable, "-m", "folkmoot", "serve", "--port", "0", "--data", str(folder)]
    settings = {
        "FOLKMOOT_RATE_LIMITS": "off",
        "FOLKMOOT_HTTP_MAX_CONNECTIONS": str(MOST_CONNECTIONS),
        "FOLKMOOT_HTTP_MAX_CONNECTIONS_PER_ACCOUNT": str(MOST_CONNECTIONS),
        **variables,
    }
    with started(command, settings, core) as running:
        yield running
