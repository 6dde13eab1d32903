"""The memory that rooms without a store may take: each, all of one owner, and all of the hub.

Nobody is refused for it. When it is too much, the largest room of the owner with most is trimmed,
as it would be by its own growth.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

LARGEST: Final = 2**62
"""More bytes than there are: the bound where none is set."""


class Held(Protocol):
    """A history in memory."""

    owner: str | None
    """The account whose room it is."""
    bytes: int
    """What its messages take."""

    def __hash__(self) -> int: ...

    def shrink(self, most_bytes: int) -> None:
        """Keep so many bytes at most."""
        ...


class MemoryBudget:
    """What all histories in memory take together. A bound of 0 is none."""

    def __init__(self, *, room: int = 0, account: int = 0, total: int = 0) -> None:
        self.most_of_room = room or LARGEST
        self.most = total
        self._most_of_account = account or LARGEST
        self._most = total or LARGEST
        self._counted: dict[Held, int] = {}
        self._by_owner: Counter[str | None] = Counter()
        self.used = 0
        """What they take at present."""

    def changed(self, history: Held) -> None:
        """A history has grown or shrunk; if there is too much now, some history is trimmed."""
        self._count(history, history.bytes)
        while self._by_owner[history.owner] > self._most_of_account:
            self._shrink(history.owner, self._most_of_account // 10)
        while self.used > self._most:
            self._shrink(self._heaviest(), self._most // 10)

    def remove(self, history: Held) -> None:
        """A history is gone."""
        self._count(history, 0)
        self._counted.pop(history, None)

    def near(self, part: float) -> int:
        """How many owners have more than this part of what one may have."""
        most = self._most_of_account * part
        return sum(used > most for owner, used in self._by_owner.items() if owner is not None)

    def _count(self, history: Held, size: int) -> None:
        change = size - self._counted.get(history, 0)
        self._counted[history] = size
        self.used += change
        self._by_owner[history.owner] += change
        if not self._by_owner[history.owner]:
            del self._by_owner[history.owner]

    def _heaviest(self) -> str | None:
        return max(self._by_owner, key=lambda owner: self._by_owner[owner])

    def _shrink(self, owner: str | None, by: int) -> None:
        """Trim the largest history of an owner; the cost grows with the rooms in memory."""
        largest = max(
            (one for one in self._counted if one.owner == owner), key=lambda one: one.bytes
        )
        largest.shrink(max(largest.bytes - max(by, 1), 0))
        self._count(largest, largest.bytes)
