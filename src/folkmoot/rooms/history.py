"""What was said in a room: the latest in memory, all of it in the store where the room is durable.

Reading costs what it returns, wherever in the history it begins. Where a history was trimmed it may
have holes, before its `first_seq`; a reader skips them, and one who must miss nothing says so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final, Protocol, TypeAlias

from msgspec.structs import replace

from folkmoot.core.ports import Store, Tx
from folkmoot.rooms import queries_messages
from folkmoot.rooms.budget import MemoryBudget, Share, Trimming, add_shares
from folkmoot.rooms.edits import changed
from folkmoot.rooms.folding import Glance
from folkmoot.rooms.limits import MAX_READ, PAGE_BYTES, RECENT_BYTES, RECENT_MESSAGES
from folkmoot.rooms.machine import Append
from folkmoot.rooms.model import RoomId

OnTrim: TypeAlias = Callable[[int, int, list[str]], None]
"""Told the new `first_seq`, the oldest message that is kept, and the ids of those that went."""

_seq: Final = attrgetter("seq")


class History(Protocol):
    """The messages of one room."""

    def extend(self, messages: Sequence[Append]) -> None:
        """The next messages are delivered."""

    def rewrite(self, messages: Mapping[int, bytes]) -> None:
        """Some messages, by their `seq`, are stored anew."""

    def keep(self, most: int) -> None:
        """Limit the number of messages, where the history decides that."""

    def drop_before(self, seq: int) -> None:
        """Some messages before a `seq` are no longer kept, where that is decided elsewhere."""

    def close(self) -> None:
        """The room is in use no longer."""

    async def after(
        self, after: int, through: int, most: int = MAX_READ, *, whole: bool = False
    ) -> list[bytes]:
        """The first messages after a `seq`; where they must be `whole`, up to the first gap."""

    async def before(self, before: int, most: int, oldest: int = 0) -> list[bytes]:
        """The last messages before a `seq` and not before `oldest`, in order."""

    async def glance(self, after: int, before: int, most: int, *, last: bool) -> list[Glance]:
        """What the first messages between two `seq`s are, or the `last` ones, the latest first."""

    async def pick(self, seqs: Sequence[int]) -> list[bytes]:
        """The messages with these `seq`s, as far as they are kept."""


class Recent:
    """Bounded by count and by bytes; the oldest go first, some at a time.

    What is kept is found by its `seq` without a search, so reading costs what it returns.
    """

    __slots__ = ("_bytes", "_messages", "_most_bytes", "first_seq", "most")

    def __init__(self, most: int, most_bytes: int, *, first_seq: int = 1) -> None:
        self.first_seq = first_seq
        """The `seq` of the oldest message here, or of the next one while there is none."""
        self.most = most
        self._most_bytes = most_bytes
        self._messages: list[bytes] = []
        self._bytes = 0

    @property
    def last_seq(self) -> int:
        """The `seq` of the newest message, here or gone."""
        return self.first_seq + len(self._messages) - 1

    def extend(self, messages: list[bytes]) -> None:
        """Keep the next messages."""
        self._messages += messages
        self._bytes += sum(map(len, messages))
        if len(self._messages) > self.most or self._bytes > self._most_bytes:
            self._drop()

    def _drop(self) -> None:
        """Make room, a tenth more than need be: to cut a list costs as much as what remains."""
        messages, count = self._messages, 0
        most, most_bytes = self.most - self.most // 10, self._most_bytes - self._most_bytes // 10
        while len(messages) - count > most or (self._bytes > most_bytes and count < len(messages)):
            self._bytes -= len(messages[count])
            count += 1
        self.drop_before(self.first_seq + count, counted=True)

    def drop_before(self, seq: int, *, counted: bool = False) -> None:
        """Forget what came before a `seq`."""
        count = min(seq - self.first_seq, len(self._messages))
        if count <= 0:
            return
        if not counted:
            self._bytes -= sum(map(len, self._messages[:count]))
        del self._messages[:count]
        self.first_seq += count

    def rewrite(self, messages: Mapping[int, bytes]) -> None:
        """Keep some messages anew, as far as they are here."""
        for seq, data in messages.items():
            place = seq - self.first_seq
            if 0 <= place < len(self._messages):
                self._bytes += len(data) - len(self._messages[place])
                self._messages[place] = data

    def reaches(self, after: int) -> bool:
        """Whether everything after a `seq` is still here."""
        return after >= self.first_seq - 1

    def slice(self, after: int, before: int) -> list[bytes]:
        """What lies strictly between two `seq`s."""
        start = max(after + 1 - self.first_seq, 0)
        return self._messages[start : max(before - self.first_seq, 0)]


class StoredHistory:
    """The history of a durable room."""

    def __init__(self, store: Store, room_id: RoomId, last_seq: int) -> None:
        self._store = store
        self._room_id = room_id
        self._recent = Recent(RECENT_MESSAGES, RECENT_BYTES, first_seq=last_seq + 1)

    def extend(self, messages: Sequence[Append]) -> None:
        """The next messages are delivered."""
        self._recent.extend([one.data for one in messages])

    def rewrite(self, messages: Mapping[int, bytes]) -> None:
        """Some messages are stored anew."""
        self._recent.rewrite(messages)

    def keep(self, most: int) -> None:
        """What is stored is removed from the store, not here."""

    def drop_before(self, seq: int) -> None:
        """What is in memory has no gap: all before a `seq` is read from the store now."""
        self._recent.drop_before(seq)

    def close(self) -> None:
        """There is nothing to give back."""

    async def after(
        self, after: int, through: int, most: int = MAX_READ, *, whole: bool = False
    ) -> list[bytes]:
        """The first messages after a `seq`; where they must be `whole`, up to the first gap."""
        if self._recent.reaches(after):
            return _fitting(self._recent.slice(after, through + 1)[:most])

        async def query(tx: Tx) -> list[Append]:
            return await queries_messages.page(
                tx, self._room_id, after=after, before=through + 1, limit=most
            )

        page = await self._store.read(query)
        return [
            one.data for place, one in enumerate(page, after + 1) if not whole or one.seq == place
        ]

    async def before(self, before: int, most: int, oldest: int = 0) -> list[bytes]:
        """The last messages before a `seq` and not before `oldest`, in order."""
        if self._recent.reaches(before - 1 - most):
            return _fitting(self._recent.slice(before - 1 - most, before)[::-1])[::-1]

        async def query(tx: Tx) -> list[bytes]:
            page = await queries_messages.page(
                tx, self._room_id, before=before, oldest=oldest, limit=most
            )
            return [one.data for one in page]

        return await self._store.read(query)

    async def glance(self, after: int, before: int, most: int, *, last: bool) -> list[Glance]:
        """What the first messages between two `seq`s are, or the `last` ones, the latest first."""

        async def query(tx: Tx) -> list[Glance]:
            rows = await queries_messages.kinds(
                tx, self._room_id, after=after, before=before, limit=most, last=last
            )
            return [Glance(*row) for row in rows]

        return await self._store.read(query)

    async def pick(self, seqs: Sequence[int]) -> list[bytes]:
        """The messages with these `seq`s, as far as they are kept."""
        found = await self._store.read(lambda tx: queries_messages.pick(tx, self._room_id, seqs))
        return list(found.values())


class MemoryHistory:
    """The history of a memory-only room, trimmed as it grows."""

    def __init__(
        self,
        most: int,
        on_trim: OnTrim,
        *,
        owner: str | None = None,
        budget: MemoryBudget | None = None,
    ) -> None:
        self.owner = owner
        self.bytes = 0
        self._most = most
        self._on_trim = on_trim
        self._budget = budget or MemoryBudget()
        self._messages: list[Append] = []
        self._counts: dict[str, list[int]] = {}
        """How many messages and bytes each author has."""
        self._first_seq = 1

    def extend(self, messages: Sequence[Append]) -> None:
        """The next messages are delivered."""
        self._messages += messages
        self.bytes += add_shares(self._counts, messages)
        for one in messages:
            if queries_messages.is_edit(one):
                self.rewrite(changed(one, self._find))
        most, most_bytes = self._most, self._budget.most_of_room
        if len(self._messages) > most or self.bytes > most_bytes:
            # A tenth more than need be, since it costs as much as what remains.
            self._trim(most - most // 10, most_bytes - most_bytes // 10)
        self._budget.changed(self)

    def rewrite(self, messages: Mapping[int, bytes]) -> None:
        """Keep some messages anew."""
        for seq, data in messages.items():
            place = bisect_left(self._messages, seq, key=_seq)
            one = self._messages[place]
            grown = len(data) - len(one.data)
            self._messages[place] = replace(one, data=data)
            self._counts[one.account or ""][1] += grown
            self.bytes += grown

    def _find(self, seq: int) -> bytes | None:
        place = bisect_left(self._messages, seq, key=_seq)
        found = self._messages[place : place + 1]
        return found[0].data if found and found[0].seq == seq else None

    def keep(self, most: int) -> None:
        """Keep so many messages from now on."""
        self._most = most

    def drop_before(self, seq: int) -> None:
        """Nothing to do: the history is trimmed as it grows."""

    def close(self) -> None:
        """Give back what it takes of the hub's memory."""
        self._messages, self._counts, self.bytes = [], {}, 0
        self._budget.remove(self)

    def shrink(self, most_bytes: int) -> None:
        """Keep so many bytes at most: someone else needs the rest."""
        self._trim(self._most, most_bytes)

    def _trim(self, most: int, most_bytes: int) -> None:
        counts = self._counts
        shares = {author: Share(*count) for author, count in counts.items()}
        trimming = Trimming(shares, most, most_bytes)
        gone, kept = trimming.split(self._messages, counts)
        self.bytes = sum(size for _, size in counts.values())
        kept += self._messages[len(kept) + len(gone) :]
        if gone:
            self._first_seq = gone[-1].seq + 1
        ids = [message.id for message in gone]
        self._messages = kept
        self._on_trim(self._first_seq, kept[0].seq if kept else self._first_seq, ids)

    async def after(
        self, after: int, through: int, most: int = MAX_READ, *, whole: bool = False
    ) -> list[bytes]:
        """The first messages after a `seq`; where they must be `whole`, up to the first gap."""
        if whole and after < self._first_seq - 1:
            return []
        start = bisect_right(self._messages, after, key=_seq)
        found = self._messages[start : start + most]
        return _fitting([one.data for one in found if one.seq <= through])

    async def before(self, before: int, most: int, oldest: int = 0) -> list[bytes]:
        """The last messages before a `seq` and not before `oldest`, in order."""
        end = bisect_left(self._messages, before, key=_seq)
        found = self._messages[max(end - most, 0) : end]
        return _fitting([one.data for one in reversed(found) if one.seq >= oldest])[::-1]

    async def glance(self, after: int, before: int, most: int, *, last: bool) -> list[Glance]:
        """What the first messages between two `seq`s are, or the `last` ones, the latest first."""
        start = bisect_right(self._messages, after, key=_seq)
        end = bisect_left(self._messages, before, key=_seq)
        found = self._messages[max(start, end - most) if last else start : end][
            : None if last else most
        ]
        glances = [Glance(one.seq, one.kind, len(one.data), one.about) for one in found]
        return glances[::-1] if last else glances

    async def pick(self, seqs: Sequence[int]) -> list[bytes]:
        """The messages with these `seq`s, as far as they are kept."""
        wanted = frozenset(seqs)
        return [one.data for one in self._messages if one.seq in wanted]


def _fitting(messages: list[bytes]) -> list[bytes]:
    """The first messages that fit a page by size, and at least one."""
    count = sum(size <= PAGE_BYTES for size in accumulate(map(len, messages)))
    return messages[: max(count, 1)]
