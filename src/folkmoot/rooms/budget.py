"""What rooms may take: of the disk by quotas, of memory by bounds, and of one room by shares.

The authors with most lose their oldest messages, down to a share that all can have. Whoever has
less than that loses nothing, so a flood pushes out itself and nobody else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from folkmoot.core.entity import Entity
from folkmoot.core.ports import Store, Tx
from folkmoot.quotas import (
    ROOM_BYTES,
    Quotas,
    QuotaUse,
    stored_in_own_rooms,
    warning,
    written_in_rooms,
)
from folkmoot.rooms.limits import MAX_BUDGETS
from folkmoot.rooms.machine import BACKEND, Append

if TYPE_CHECKING:
    from folkmoot.rooms.history import MemoryHistory

GATEWAY_AUTHOR: Final = ""
"""The author of what the gateway says about nobody."""


class Share(NamedTuple):
    """What an author has in a room."""

    messages: int = 0
    bytes: int = 0

    def plus(self, size: int) -> Share:
        """The share with one message more."""
        return Share(self.messages + 1, self.bytes + size)


class Trimmed(NamedTuple):
    """What is left of a history after the oldest messages of some authors went."""

    removed: list[int]
    """The `seq` of each message that goes."""
    oldest_seq: int | None
    """The `seq` of the first message that is left; None where none is."""


def shares_of(messages: Iterable[Append]) -> dict[str, Share]:
    """Each author's share of some messages."""
    counts: dict[str, list[int]] = {}
    add_shares(counts, messages)
    return {author: Share(*count) for author, count in counts.items()}


def add_shares(counts: dict[str, list[int]], messages: Iterable[Append]) -> int:
    """Count messages and their bytes for each author; the bytes of all."""
    total = 0
    # Every message comes by here, and authors take turns: without a tuple for each.
    for message in messages:
        size = ROOM_BYTES + len(message.data)
        total += size
        author = message.account or message.about or GATEWAY_AUTHOR
        count = counts.get(author)
        if count is None:
            counts[author] = [1, size]
        else:
            count[0] += 1
            count[1] += size
    return total


def fair_share(amounts: Iterable[int], most: int) -> int:
    """The largest share at which all together have at most so much; whoever has less keeps it."""
    left = sorted(amounts)
    total, count = sum(left), len(left)
    if total <= most:
        return total
    rest = most
    for amount in left:
        if amount * count > rest:
            return rest // count
        rest -= amount
        count -= 1
    return rest


class Trimming:
    """Decides, message by message from the oldest on, which of a history go."""

    def __init__(self, shares: Mapping[str, Share], most: int, most_bytes: int) -> None:
        messages = fair_share((share.messages for share in shares.values()), most)
        size = fair_share((share.bytes for share in shares.values()), most_bytes)
        self._excess = {
            author: [share.messages - messages, share.bytes - size]
            for author, share in shares.items()
            if share.messages > messages or share.bytes > size
        }

    @property
    def is_done(self) -> bool:
        """Whether nobody has more than a fair share any longer."""
        return not self._excess

    def goes(self, author: str, size: int) -> bool:
        """Whether the next message goes."""
        excess = self._excess.get(author)
        if excess is None:
            return False
        excess[0] -= 1
        excess[1] -= size
        if excess[0] <= 0 and excess[1] <= 0:
            del self._excess[author]
        return True

    def split(
        self, messages: Iterable[Append], counts: dict[str, list[int]]
    ) -> tuple[list[Append], list[Append]]:
        """The messages to remove, and those before the last of them that stay.

        What goes is subtracted from what each author has.
        """
        gone: list[Append] = []
        kept: list[Append] = []
        stayed, excess = 0, self._excess
        # As `goes` decides, written out: this is passed by every message of a room in memory.
        for message in messages:
            if not excess:
                break
            author = message.account or message.about or GATEWAY_AUTHOR
            over = excess.get(author)
            if over is None:
                kept.append(message)
                continue
            size, count = ROOM_BYTES + len(message.data), counts[author]
            count[0] -= 1
            count[1] -= size
            over[0] -= 1
            over[1] -= size
            if over[0] <= 0 and over[1] <= 0:
                del excess[author]
                if not count[0]:
                    del counts[author]
            gone.append(message)
            stayed = len(kept)
        return gone, kept[:stayed]


class RoomBudget(Entity):
    """The quotas of all stored rooms of a hub."""

    store: Store
    quotas: Quotas
    _written: dict[str, int] = {}
    _owned: dict[str, int] = {}
    _forgotten: int = 0
    """How often everything was forgotten, so that what is being read is known to be old."""

    def knows(self, author: str, owner: str | None) -> bool:
        """Whether a message of someone's can be judged without a look into the store."""
        if not self.quotas.limits.room_bytes_per_account:
            return True
        known = author in self._written or author.startswith(BACKEND)
        return known and (owner is None or owner in self._owned)

    async def read(self, author: str, owner: str | None) -> None:
        """Know what an author has stored, and what is stored in the rooms of an owner."""

        async def query(tx: Tx) -> tuple[int, int]:
            written = await written_in_rooms(tx, author)
            return written, 0 if owner is None else await stored_in_own_rooms(tx, owner)

        while not self.knows(author, owner):
            moment = self._forgotten
            written, owned = await self.store.read(query)
            if moment == self._forgotten:
                _remember(self._written, author, written)
                if owner is not None:
                    _remember(self._owned, owner, owned)

    def check(self, author: str, owner: str | None, size: int) -> None:
        """Refuse to store so many bytes more, if the author or the room's owner has no room.

        What they have stored must be known.
        """
        quotas, limits = self.quotas, self.quotas.limits
        quotas.check_disk()
        each = limits.room_bytes_per_account
        if each:
            # A backend answers for many; whose room it is pays for it.
            if not author.startswith(BACKEND):
                quotas.check("room_bytes_per_account", self._written[author] + size, each)
            if owner is not None:
                quotas.check("owned_bytes", self._owned[owner] + size, each)
        quotas.check("all_rooms_bytes", quotas.rooms_used + size, limits.all_rooms_bytes)

    def add(self, author: str, owner: str | None, size: int) -> None:
        """So many bytes of an author's are on their way into the store."""
        self.quotas.rooms_used += size
        if author in self._written:
            self._written[author] += size
        if owner in self._owned:
            self._owned[owner] += size

    def removed(self, size: int) -> None:
        """So many bytes were removed from the store."""
        self.quotas.rooms_used -= size
        self.forget()

    def forget(self) -> None:
        """What is remembered may be wrong by now: something was removed, or not stored."""
        self._forgotten += 1
        self._written.clear()
        self._owned.clear()

    def warning(self, account: str, owner: str | None) -> str | None:
        """What someone is told who comes into a room and has nearly used a quota up.

        Nothing where it is not known what they have stored.
        """
        each = self.quotas.limits.room_bytes_per_account
        if not each:
            return None
        used = self._written.get(account, 0)
        if account == owner:
            used = max(used, self._owned.get(account, 0))
        return warning("room_bytes_per_account", QuotaUse(used, each))


def _remember(known: dict[str, int], account: str, used: int) -> None:
    if len(known) >= MAX_BUDGETS:
        known.clear()
    known[account] = used


LARGEST: Final = 2**62
"""More bytes than there are: the bound where none is set."""


class MemoryBudget:
    """What all histories in memory take together. A bound of 0 is none."""

    def __init__(self, *, room: int = 0, account: int = 0, total: int = 0) -> None:
        self.most_of_room = room or LARGEST
        self.most = total
        self._most_of_account = account or LARGEST
        self._most = total or LARGEST
        self._counted: dict[MemoryHistory, int] = {}
        self._by_owner: Counter[str | None] = Counter()
        self.used = 0
        """What they take at present."""

    def changed(self, history: MemoryHistory) -> None:
        """A history has grown or shrunk; if there is too much now, some history is trimmed."""
        self._count(history, history.bytes)
        while self._by_owner[history.owner] > self._most_of_account:
            self._shrink(history.owner, self._most_of_account // 10)
        while self.used > self._most:
            self._shrink(self._heaviest(), self._most // 10)

    def remove(self, history: MemoryHistory) -> None:
        self._count(history, 0)
        self._counted.pop(history, None)

    def near(self, part: float) -> int:
        """How many owners have more than this part of what one may have."""
        most = self._most_of_account * part
        return sum(used > most for owner, used in self._by_owner.items() if owner is not None)

    def _count(self, history: MemoryHistory, size: int) -> None:
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
