"""Which ids were used within the retained history, and for which message."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

from folkmoot.core.errors import IdUsed
from folkmoot.rooms.machine.model import LookupNeeded, Used


class Ids:
    """The ids of the latest messages; whether one before them was used, the store must tell.

    `stored` says that there is a store to look them up in. Without it, ids that memory lost can be
    used again; with it, a history that is longer than the memory costs one look into an index for
    each id that a sender chose.
    """

    __slots__ = ("_forgot", "_most", "_order", "_stored", "_used")

    def __init__(self, most: int, *, stored: bool = False) -> None:
        self._most = most
        self._stored = stored
        self._used: dict[str, Used] = {}
        self._order: deque[str] = deque()
        self._forgot = False

    def is_unknown(self, id_: str) -> bool:
        """Whether an id must be looked up in the store."""
        return self._forgot and self._stored and id_ not in self._used

    def check(self, id_: str, account: str, found: Mapping[str, Used | None]) -> None:
        """Refuse an id that was used; its first sender is told for which message.

        `found` are the ids that were looked up; raises `LookupNeeded` for one that must be.
        """
        used = self._used.get(id_)
        if used is None:
            if not (self._forgot and self._stored):
                return
            try:
                used = found[id_]
            except KeyError:
                raise LookupNeeded from None
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
        """Forget some ids. The cost grows with those from the oldest to the last that goes."""
        used, order = self._used, self._order
        left = sum(used.pop(id_, None) is not None for id_ in ids)
        kept: list[str] = []
        while left:
            id_ = order.popleft()
            if id_ in used:
                kept.append(id_)
            else:
                left -= 1
        order.extendleft(reversed(kept))

    def begin(self, first_seq: int, last_seq: int) -> None:
        """The history reaches from here to there; what memory lacks of it must be looked up."""
        oldest = self._used[self._order[0]][0] if self._order else last_seq + 1
        self._forgot = oldest > first_seq
