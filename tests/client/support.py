"""What tests of the client share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from folkmoot.client import Backoff, Message, Room
from tests.client.hub import CuttingHub

SOON = Backoff(first=0.001, most=0.01)


def enter(hub: CuttingHub, name: str, **more: Any) -> Room:
    """Someone's room, to be entered."""
    given = {"token": f"sk_{name}", "backoff": SOON, **more}
    return Room(hub.url, room="square", **given)


async def until(room: Room, wanted: Callable[[Message], bool]) -> Message:
    """The next message that is wanted."""
    async for message in room:
        if wanted(message):
            return message
    raise AssertionError("the room ended first")


async def eventually(so: Callable[[], bool]) -> None:
    """Wait until something is so; the test's own time limit bounds it."""
    while not so():  # noqa: ASYNC110 - nobody sets an event for it
        await asyncio.sleep(0.001)


def of(text: str) -> Callable[[Message], bool]:
    """Chat that says this."""
    return lambda message: message.text == text
