"""Which ids were used within the retained history, and for which message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import TypeAlias

from folkmoot.core.errors import IdUsed

Used: TypeAlias = tuple[int, str | None]
"""The `seq` of the message and the account of its sender."""

Remembered: TypeAlias = tuple[str, int, str | None]
"""An id, the `seq` of its message and the account of its sender."""

Older: TypeAlias = Callable[[str], Used | None]
"""Looks an id up in the store; asked only about ids that memory no longer holds."""


class Ids:
    """The ids of the latest messages in memory, and those before them in the store.

    Without `older` ids that memory lost can be used again; with it, a room whose history is longer
    than the memory costs one look into the store for each id a sender chose.
    """

    __slots__ = ("_forgot", "_most", "_older", "_order", "_used")

    def __init__(self, most: int, older: Older | None = None) -> None:
        self._most = most
        self._older = older
        self._used: dict[str, Used] = {}
        self._order: deque[str] = deque()
        self._forgot = False

    def check(self, id_: str, account: str) -> None:
        """Refuse an id that was used; its first sender is told for which message."""
        used = self._used.get(id_)
        if used is None and self._forgot and self._older is not None:
            used = self._older(id_)
        if used is None:
            return
        if used[1] == account:
            raise IdUsed("You used this id before; that message was accepted.", seq=used[0])
        raise IdUsed("Another message of the room has this id.")

    def add(self, id_: str, seq: int, account: str | None) -> None:
        """Remember an id."""
        self._used[id_] = (seq, account)
        self._order.append(id_)
        if len(self._order) > self._most:
            del self._used[self._order.popleft()]
            self._forgot = True

    def drop_before(self, seq: int) -> None:
        """Forget what the history no longer holds."""
        while self._order and self._used[self._order[0]][0] < seq:
            del self._used[self._order.popleft()]
        if self._order:
            self._forgot = self._used[self._order[0]][0] > seq

    def drop(self, ids: Collection[str]) -> None:
        """Forget some ids. The cost grows with how many there are."""
        for id_ in ids:
            self._used.pop(id_, None)
        self._order = deque(id_ for id_ in self._order if id_ in self._used)

    def begin(self, first_seq: int, last_seq: int) -> None:
        """The history reaches from here to there; what memory lacks of it must be looked up."""
        oldest = self._used[self._order[0]][0] if self._order else last_seq + 1
        self._forgot = oldest > first_seq
