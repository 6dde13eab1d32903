"""The news of a room, as those who follow it by events hear it."""

from __future__ import annotations

from typing import Any

from folkmoot.bus import MemoryBus
from folkmoot.rooms.machine import Append
from folkmoot.rooms.news import RoomNews
from tests.nats import until


def said(seq: int, kind: str = "chat.message") -> Append:
    return Append(seq, f"m{seq}", 0.0, kind, b"{}", "u_1")


class Followed:
    """A room, and what its followers hear."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        bus = MemoryBus()
        bus.listen("said.7", lambda event: self.heard.append(event.data))
        self.news = RoomNews(bus, 7)

    @property
    def seqs(self) -> list[int]:
        return [one["seq"] for one in self.heard]


async def test_chat_soon_after_other_chat_is_told_together_and_the_last_of_it_always():
    room = Followed()
    for seq in range(1, 6):
        room.news.add([said(seq)])
    assert room.seqs == [1]
    await until(lambda: len(room.heard) > 1)
    assert room.seqs == [1, 5]


async def test_what_is_more_than_chat_is_told_at_once():
    room = Followed()
    room.news.add([said(1)])
    room.news.add([said(2)])
    room.news.add([said(3, "mcp.proposal.tools/call:sweep")])
    room.news.add([said(4, "capability.revoke")])
    assert room.seqs == [1, 3, 4]
    assert room.heard[1]["proposals"] == [{"proposal": "m3", "change": "made"}]
    assert [one["rights"] for one in room.heard] == [False, False, True]


async def test_a_room_that_ends_keeps_no_news_back():
    room = Followed()
    room.news.add([said(1)])
    room.news.add([said(2)])
    room.news.end()
    assert room.seqs == [1, 2]
