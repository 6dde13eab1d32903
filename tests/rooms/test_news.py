"""The news of a room, as those who follow it by events hear it."""

from __future__ import annotations

from typing import Any

from folkmoot.bus import MemoryBus
from folkmoot.rooms.machine import Append
from folkmoot.rooms.news import RoomNews
from tests.nats import until


def followed(*kinds: str) -> tuple[RoomNews, list[Any]]:
    """A room in which messages of these kinds came, and what its followers hear."""
    heard: list[Any] = []
    bus = MemoryBus()
    bus.listen("said.7", lambda event: heard.append(event.data))
    news = RoomNews(bus, 7)
    for seq, kind in enumerate(kinds, 1):
        news.add([Append(seq, f"m{seq}", 0.0, kind, b"{}", "u_1")])
    return news, heard


async def test_chat_soon_after_other_chat_is_told_together_and_the_last_of_it_always():
    _, heard = followed(*["chat.message"] * 5)
    assert [one["seq"] for one in heard] == [1]
    await until(lambda: len(heard) > 1)
    assert [one["seq"] for one in heard] == [1, 5]


async def test_what_is_more_than_chat_is_told_at_once():
    more = ("mcp.proposal.tools/call:sweep", "capability.revoke")
    _, heard = followed("chat.message", "chat.message", *more)
    assert [(one["seq"], one["rights"]) for one in heard] == [(1, False), (3, False), (4, True)]
    assert heard[1]["proposals"] == [{"proposal": "m3", "change": "made"}]


async def test_a_room_that_ends_keeps_no_news_back():
    news, heard = followed("chat.message", "chat.message")
    news.end()
    assert [one["seq"] for one in heard] == [1, 2]
