"""Which ids the messages of a room have: those that senders chose, and those that the room made.

The room makes ids in order and, for most chat, many at once. So these are kept as they were made,
and found by their order; only what senders chose needs a dict.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice, repeat, takewhile
from operator import attrgetter

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.uuids import WHOLE
from folkmoot.rooms.machine.model import LookupNeeded, Used


class MadeIds(Struct, frozen=True, gc=False):
    """Ids that the room made for chat of one account that follows each other."""

    first: str
    ids: Sequence[str]
    """In their order, from the first on."""
    end: int
    """The `seq` after that of the last message."""
    account: str | None


_first, _ids, _end = attrgetter("first"), attrgetter("ids"), attrgetter("end")


class Ids:
    """The ids of the latest messages; whether one before them was used, the store must tell.

    `stored` says that there is a store to look them up in. Without it, ids that memory lost can be
    used again; with it, a history that is longer than the memory costs one look into an index for
    each id that a sender chose.
    """

    __slots__ = ("_forgot", "_known_from", "_made", "_made_count", "_most", "_stored", "_used")

    def __init__(self, most: int, *, stored: bool = False) -> None:
        self._most = most
        self._stored = stored
        self._used: dict[str, tuple[int, str | None, bool]] = {}
        """Each as `Used` has it, which takes longer to make; in the order of their messages."""
        self._made: list[MadeIds] = []
        """Beside these, what the room made: in the order of the messages and of the ids."""
        self._made_count = 0
        self._known_from = 1
        """The `seq` from which on all ids are here."""
        self._forgot = False
        """Whether the history has ids that are not here."""

    def __len__(self) -> int:
        return len(self._used) + self._made_count

    def _find(self, id_: str) -> Used | None:
        """The message that has an id, as far as is known here."""
        used = self._used.get(id_)
        if used is not None:
            return Used(*used)
        if self._made and len(id_) == WHOLE:
            at = bisect_right(self._made, id_, key=_first) - 1
            if at >= 0:
                made = self._made[at]
                place = bisect_left(made.ids, id_)
                if place < len(made.ids) and made.ids[place] == id_:
                    return Used(made.end - len(made.ids) + place, made.account, is_chat=True)
        return None

    def is_unknown(self, id_: str) -> bool:
        """Whether an id must be looked up in the store."""
        return self._forgot and self._stored and self._find(id_) is None

    def find(self, id_: str, found: Mapping[str, Used | None]) -> Used | None:
        """The message that has an id, if any.

        `found` are the ids that were looked up; raises `LookupNeeded` for one that must be.
        """
        used = self._find(id_)
        if used is not None or not (self._forgot and self._stored):
            return used
        try:
            return found[id_]
        except KeyError:
            raise LookupNeeded from None

    def check(self, id_: str, account: str, found: Mapping[str, Used | None]) -> None:
        """Refuse an id that was used; its first sender is told for which message."""
        used = self.find(id_, found)
        if used is None:
            return
        if used.account == account:
            raise e.IdUsed("You used this id before; that message was accepted.", seq=used.seq)
        raise e.IdUsed("Another message of the room has this id.")

    def is_free(self, id_: str) -> bool:
        """Whether an id is known not to be used, without a look into the store."""
        return not (self._forgot and self._stored) and self._find(id_) is None

    def add(
        self, ids: Sequence[str], seq: int, account: str | None, *, is_chat: bool = False
    ) -> None:
        """Remember the ids of messages of one account that follow each other, from `seq` on."""
        if len(ids) == 1:
            self._used[ids[0]] = (seq, account, is_chat)
        else:
            self._used.update(zip(ids, zip(count(seq), repeat(account), repeat(is_chat))))  # noqa: B905
        if len(self._used) + self._made_count > self._most:
            self._forget_oldest()

    def add_made(self, ids: Sequence[str], seq: int, account: str | None) -> None:
        """Remember ids of chat that `Uuids` made, each after all that were added so before."""
        self._made.append(MadeIds(ids[0], ids, seq + len(ids), account))
        self._made_count += len(ids)
        if len(self._used) + self._made_count > self._most:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        """Keep so many at most, of both kinds alike."""
        total = len(self)
        # A few more than need be: to find the oldest of a dict costs more than to delete it.
        excess = total - self._most + self._most // 16
        of_used = excess * len(self._used) // total
        seq = 0
        for id_ in [*islice(self._used, of_used)]:
            seq = self._used.pop(id_)[0]
        self._known_from = max(self._known_from, seq + 1)
        excess, runs = excess - of_used, 0
        while excess > 0 and runs < len(self._made):
            excess -= len(self._made[runs].ids)
            runs += 1
        self._drop_made(runs)
        self._forgot = True

    def _drop_made(self, runs: int) -> None:
        """Forget so many of the first runs that the room made."""
        if runs:
            gone = self._made[:runs]
            del self._made[:runs]
            self._made_count -= sum(map(len, map(_ids, gone)))
            self._known_from = max(self._known_from, gone[-1].end)

    def drop_before(self, seq: int) -> None:
        """Forget what the history no longer holds; what the room made together goes together."""
        used = self._used
        self.drop([*takewhile(lambda id_: used[id_][0] < seq, used)])
        self._drop_made(bisect_right(self._made, seq, key=_end))
        self._forgot = self._known_from > seq

    def drop(self, ids: Iterable[str]) -> None:
        """Forget some ids that senders chose."""
        used = self._used
        if used:
            for id_ in ids:
                used.pop(id_, None)

    def begin(self, first_seq: int, last_seq: int) -> None:
        """Set the range of the history; ids not in memory must be looked up."""
        self._known_from = last_seq + 1
        self._forgot = self._known_from > first_seq
