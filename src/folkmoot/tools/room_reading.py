"""Reading a part of a room's history: the messages of some kinds, in pages of bounded work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from folkmoot.tools.room_wire import GROUP_NAMES, Heard, group_of, heard, shown

if TYPE_CHECKING:
    from folkmoot.rooms import MessagePage, Rooms, Visitor

PAGE = 100
MOST_LOOKED_AT = 1_000
"""Messages one call looks at; one that wants few kinds of them is told where to go on."""
MOST_BYTES = 262_144
"""What the messages of one answer may have together, unless it is one alone."""


class Part(Struct, kw_only=True):
    """Some of a room's messages, oldest first."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    first_seq: int = 0
    """Where the room's history begins."""
    last_seq: int = 0
    """Everything up to here has been looked at: to read on, read after it."""
    more: bool = False
    """Whether the room has messages after it already."""


class Reading:
    """One call that reads, on behalf of one visitor."""

    def __init__(
        self,
        rooms: Rooms,
        visitor: Visitor,
        room: str,
        *,
        limit: int,
        groups: frozenset[str],
    ) -> None:
        self._rooms = rooms
        self._visitor = visitor
        self._room = room
        self._limit = limit
        self._groups = groups
        self._found: list[dict[str, Any]] = []
        self._size = 0
        self._full = False

    async def after(self, seq: int) -> Part:
        """The first messages after a place."""
        part, looked_at = Part(messages=self._found, last_seq=seq), 0
        while True:
            place = part.last_seq
            page = await self._page(after=place)
            looked_at += len(page.messages)
            part.first_seq = page.first_seq
            if not page.messages:
                # Nothing is kept before where the history begins, and nothing is after its end.
                part.last_seq = min(max(place, page.first_seq - 1), page.last_seq)
            for message, size in read(page):
                if not self._take(message, size):
                    break
                part.last_seq = message.seq
            part.more = part.last_seq < page.last_seq
            stuck = part.last_seq <= place
            if self._full or stuck or not part.more or looked_at >= MOST_LOOKED_AT:
                return part

    async def before(self, seq: int | None) -> Part:
        """The last messages before a place, or of all."""
        looked_at, start = 0, seq
        while True:
            page = await self._page(before=start)
            looked_at += len(page.messages)
            for message, size in reversed(read(page)):
                if not self._take(message, size):
                    break
                start = message.seq
            if self._full or not page.messages or looked_at >= MOST_LOOKED_AT:
                break
        last = page.last_seq if seq is None else min(page.last_seq, max(seq - 1, 0))
        return Part(
            messages=self._found[::-1],
            first_seq=page.first_seq,
            last_seq=last,
            more=last < page.last_seq,
        )

    async def wait(self, seq: int | None, seconds: float) -> Part:
        """As `after`, but not before there is something, or the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        place = (await self._page(limit=1)).last_seq if seq is None else seq
        while True:
            part = await self.after(place)
            remaining = until - loop.time()
            if part.messages or part.more or remaining <= 0:
                return part
            place = part.last_seq
            await self._page(after=place, limit=1, wait=remaining)

    def _take(self, message: Heard, size: int) -> bool:
        """Look at one more message; False if the answer has no room for it any more."""
        if group_of(message.kind) not in self._groups:
            return True
        if self._found and (self._full or self._size + size > MOST_BYTES):
            self._full = True
            return False
        self._found.append(shown(message))
        self._size += size
        self._full = len(self._found) >= self._limit
        return True

    async def _page(self, *, limit: int = 0, **place: Any) -> MessagePage:
        most = limit or (self._limit if len(self._groups) == len(GROUP_NAMES) else PAGE)
        return await self._rooms.messages(self._visitor, self._room, limit=most, **place)


def read(page: MessagePage) -> list[tuple[Heard, int]]:
    """The messages of a page, each with its size."""
    return [(heard(raw), len(bytes(raw))) for raw in page.messages]
