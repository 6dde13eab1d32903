"""What tests of the client share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from folkmoot.client import Backoff, Gap, Message, RequestFailed, Room, ToolResult
from tests import mcp_harness
from tests.client.hub import CuttingHub

SOON = Backoff(first=0.001, most=0.01)
eventually = mcp_harness.until


def enter(hub: CuttingHub, name: str, **more: Any) -> Room:
    given = {"token": f"sk_{name}", "backoff": SOON, **more}
    return Room(hub.url, room="square", **given)


async def until(room: Room, wanted: Callable[[Message], bool]) -> Message:
    """The next message that is wanted."""
    async for message in room:
        if wanted(message):
            return message
    raise AssertionError("the room ended first")


def of(text: str) -> Callable[[Message], bool]:
    """Chat that says this."""
    return lambda message: message.text == text


async def read_to(room: Room, text: str) -> list[Message]:
    """What is read up to a text."""
    read = [await anext(room)]
    while read[-1].text != text:
        read.append(await anext(room))
    return read


def check_whole(read: list[Message]) -> None:
    assert [m.seq for m in read] == list(range(read[0].seq, read[-1].seq + 1))
    assert not any(isinstance(m, Gap) for m in read)


async def failing(request: Awaitable[object]) -> RequestFailed:
    with pytest.raises(RequestFailed) as failure:
        await request
    return failure.value


async def outcome_of(call: Awaitable[ToolResult]) -> str | None:
    """What a call was answered with, or why it failed."""
    try:
        return (await call).text
    except RequestFailed as failure:
        return failure.reason


def offer_double(room: Room) -> list[int]:
    """Offer a tool that doubles a number; the numbers for which it ran."""
    ran: list[int] = []

    @room.tool
    def double(n: int) -> int:
        ran.append(n)
        return 2 * n

    return ran
