"""What was said in a room: the latest in memory, all of it in the store where the room is durable.

Reading costs what it returns, wherever in the history it begins.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Protocol

from folkmoot.core.ports import Store, Tx
from folkmoot.rooms import queries_messages
from folkmoot.rooms.model import RoomId
from folkmoot.rooms.recent import Recent

PAGE_MESSAGES = 500
PAGE_BYTES = 1_048_576
RECENT_MESSAGES = 256
RECENT_BYTES = 262_144
"""What a durable room keeps in memory, for those who were away for a moment."""
MEMORY_BYTES = 67_108_864
"""What a room that is in memory alone keeps at most, however few its messages are."""


class History(Protocol):
    """The messages of one room."""

    def add(self, data: bytes) -> None:
        """The next message was delivered."""
        ...

    def keep(self, most: int) -> None:
        """Keep so many messages, where that is decided here."""
        ...

    async def after(self, after: int, through: int, most: int = PAGE_MESSAGES) -> list[bytes]:
        """The first messages after a `seq`, without a gap; none when they are no longer kept."""
        ...

    async def before(self, before: int, most: int) -> list[bytes]:
        """The last messages before a `seq`, in order."""
        ...


class StoredHistory:
    """The history of a durable room."""

    def __init__(self, store: Store, room_id: RoomId, last_seq: int) -> None:
        self._store = store
        self._room_id = room_id
        self._recent = Recent(RECENT_MESSAGES, RECENT_BYTES, first_seq=last_seq + 1)

    def add(self, data: bytes) -> None:
        """The next message was delivered."""
        self._recent.add(data)

    def keep(self, most: int) -> None:
        """What is stored is removed from the store, not here."""

    async def after(self, after: int, through: int, most: int = PAGE_MESSAGES) -> list[bytes]:
        """The first messages after a `seq`, without a gap; none when they are no longer kept."""
        if self._recent.reaches(after):
            return _fitting(self._recent.slice(after, through + 1)[:most])

        async def query(tx: Tx) -> list[bytes]:
            page = await queries_messages.page(tx, self._room_id, after=after, limit=most)
            begins = page and page[0].seq == after + 1
            return [one.data for one in page if one.seq <= through] if begins else []

        return await self._store.read(query)

    async def before(self, before: int, most: int) -> list[bytes]:
        """The last messages before a `seq`, in order."""
        if self._recent.reaches(before - 1 - most):
            return _fitting(self._recent.slice(before - 1 - most, before)[::-1])[::-1]

        async def query(tx: Tx) -> list[bytes]:
            page = await queries_messages.page(tx, self._room_id, before=before, limit=most)
            return [one.data for one in page]

        return await self._store.read(query)


class MemoryHistory:
    """The history of a room that is in memory alone."""

    def __init__(self, most: int, on_drop: Callable[[int], None]) -> None:
        self._recent = Recent(most, MEMORY_BYTES, on_drop=on_drop)

    def add(self, data: bytes) -> None:
        """The next message was delivered."""
        self._recent.add(data)

    def keep(self, most: int) -> None:
        """Keep so many messages from now on."""
        self._recent.most = most

    async def after(self, after: int, through: int, most: int = PAGE_MESSAGES) -> list[bytes]:
        """The first messages after a `seq`, without a gap; none when they are no longer kept."""
        if not self._recent.reaches(after):
            return []
        return _fitting(self._recent.slice(after, min(through, after + most) + 1))

    async def before(self, before: int, most: int) -> list[bytes]:
        """The last messages before a `seq`, in order."""
        return _fitting(self._recent.slice(before - 1 - most, before)[::-1])[::-1]


def _fitting(messages: list[bytes]) -> list[bytes]:
    """As many of them as make a page by their size, and at least one."""
    count = sum(size <= PAGE_BYTES for size in accumulate(map(len, messages)))
    return messages[: max(count, 1)]
