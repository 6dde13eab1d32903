"""How a room's effects become so: stored first where the room is durable, and then carried out.

What one call of the machine asked for is kept together and in its order. A durable room commits
everything that came while the last commit ran in one transaction, so many share one sync; nothing
of it is carried out before. The cost of a message does not depend on what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.ports import Store, Tx, Unit
from folkmoot.rooms import edits, queries, queries_members, queries_messages, unread
from folkmoot.rooms.budget import RoomBudget, Share, shares_of
from folkmoot.rooms.fence import Fence, IsHeld, guarded, taken_over
from folkmoot.rooms.index import RoomIndex
from folkmoot.rooms.limits import (
    CHECK_SECONDS,
    MAX_UNSTORED,
    MAX_UNSTORED_BYTES,
    SNAPSHOT_BYTES,
    SNAPSHOT_MESSAGES,
)
from folkmoot.rooms.machine import Append, Effect, Expel, Room
from folkmoot.rooms.model import RoomId

Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None] | None]
"""Begins work that nobody waits for; nothing where the rooms have stopped."""


class Barrier(Struct, frozen=True, eq=False):
    """Not an effect, but a place in their order: everything before it has been carried out."""

    call: Callable[[e.FolkmootError | None], None]
    """Told that it is so, or why it never will be."""

    @classmethod
    def of(cls, future: asyncio.Future[None]) -> Barrier:
        """A barrier that completes a future."""

        def settle(error: e.FolkmootError | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        return cls(settle)


class Rewrite(Struct, frozen=True, eq=False):
    """Not an effect, but what one did: messages that are stored anew, by their `seq`."""

    messages: dict[int, bytes]
    grown: int


Item: TypeAlias = Effect | Barrier | Rewrite
CarryOut: TypeAlias = Callable[[Sequence[Item]], None]
Change: TypeAlias = Callable[[], Sequence[Item]]
"""Changes the machine, and answers what that asks for."""


class Journal(Protocol):
    """Takes what is to be done with a room."""

    @property
    def waiting(self) -> int:
        """How many things wait for their commit."""

    @property
    def is_full(self) -> bool:
        """Whether so much waits that no more should be taken."""

    @property
    def stored(self) -> Share:
        """How much the room has in the store."""

    def removed(self, share: Share) -> None:
        """Some of it was removed from the store."""

    @property
    def fence(self) -> Fence | None:
        """That this process owns the room; nothing where no other process can."""

    async def check(self) -> None:
        """Make sure that the room is ours after the lease lapsed; raise if it is not."""

    def perform(self, items: Sequence[Item]) -> None:
        """Store items where needed, then carry them out, in order."""

    def expelled(self, account: str) -> None:
        """Someone was put out."""

    async def expulsions(self) -> None:
        """Wait until all who were put out are stored as such; raise if they cannot be."""

    async def alter(self, change: Change, also: Unit[None] | None = None) -> None:
        """Make a change that no message tells of, and wait until it is so.

        `also` is what it changes of the room's record; when that fails, nothing is changed.
        """


class StoredJournal(Entity):
    """The journal of a durable room."""

    store: Store
    room_id: RoomId
    machine: Room
    snapshot_seq: int
    share: Share
    index: RoomIndex
    budget: RoomBudget
    carry_out: CarryOut
    fail: Callable[[e.FolkmootError], e.FolkmootError]
    spawn: Spawn
    fence: Fence | None = None
    _waiting: list[Item] = []
    _under_way: list[Item] = []
    _also: list[Unit[None]] = []
    _committing: bool = False
    _altered: bool = False
    _bytes: int = 0
    _waiting_bytes: int = 0

    def __post_init__(self) -> None:
        self._messages, self._size = self.share

    @property
    def waiting(self) -> int:
        """How many things wait for their commit."""
        return len(self._waiting) + len(self._under_way)

    @property
    def is_full(self) -> bool:
        """Whether so much waits that no more should be taken."""
        return len(self._waiting) > MAX_UNSTORED or self._waiting_bytes > MAX_UNSTORED_BYTES

    @property
    def stored(self) -> Share:
        """How much the room has in the store, with what is on its way there."""
        return Share(self._messages, self._size)

    def removed(self, share: Share) -> None:
        """Some of it was removed from the store."""
        self._messages -= share.messages
        self._size -= share.bytes
        self.budget.removed(share.bytes)

    async def check(self) -> None:
        """Make sure that the room is ours after the lease lapsed; raise if it is not."""
        if self.fence is not None:
            await self.fence.check(self.store)

    def perform(self, items: Sequence[Item]) -> None:
        """Store items, then carry them out, in order."""
        if not self._committing and not any(type(item) is Append for item in items):
            self.carry_out(items)
            return
        self._queue(items)
        self._begin()

    def _queue(self, items: Sequence[Item]) -> None:
        self._waiting += items
        owner = self.machine.settings.owner
        for author, share in shares_of([one for one in items if type(one) is Append]).items():
            self._bytes += share.bytes
            self._waiting_bytes += share.bytes
            self._messages += share.messages
            self._size += share.bytes
            self.budget.add(author, owner, share.bytes)

    def expelled(self, account: str) -> None:
        """It was stored with the rest."""

    async def expulsions(self) -> None:
        """They were stored with the rest."""

    async def alter(self, change: Change, also: Unit[None] | None = None) -> None:
        """Store a snapshot with it: the messages alone would not tell of the change."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue([*change(), Barrier.of(done)])
        self._altered = True
        if also is not None:
            self._also.append(also)
        self._begin()
        await done

    def _begin(self) -> None:
        if not self._committing:
            self._committing = True
            self.spawn(self._commit())

    async def _commit(self) -> None:
        try:
            while self._waiting or self._altered:
                items, self._waiting, self._waiting_bytes = self._waiting, [], 0
                self._under_way = items
                unit, single, rewritten = self._unit(items)
                seq = self.machine.seq
                is_held = await self.store.write(unit, single=single)
                if self.fence is not None and is_held is not None:
                    self.fence.stored(seq, is_held)
                if rewritten:
                    self.removed(Share(0, -sum(each.grown for each in rewritten)))
                self.carry_out([*items, *rewritten] if rewritten else items)
                self._under_way = []
        except e.FolkmootError as error:
            self._give_up(error)
        except Exception:
            self._give_up(e.InternalError("The hub failed to carry out what was stored."))
            raise
        finally:
            self._committing = False

    def _give_up(self, error: e.FolkmootError) -> None:
        lost = [*self._under_way, *self._waiting]
        self._under_way, self._waiting = [], []
        self._also, self._altered = [], False
        self.budget.forget()
        told = self.fail(error)
        for item in lost:
            if type(item) is Barrier:
                item.call(told)

    def _unit(self, items: Sequence[Item]) -> tuple[Unit[IsHeld | None], bool, list[Rewrite]]:
        """All items as one transaction, whether it only stores messages, and what it rewrites.

        The machine is already past them.
        """
        machine, room_id, fence = self.machine, self.room_id, self.fence
        appends = [item for item in items if type(item) is Append]
        others = len(appends) < len(items)
        expelled = [item.account for item in items if type(item) is Expel] if others else []
        also, self._also = self._also, []
        indexed = self.index.unit(appends, altered=self._altered)
        mentions = unread.mentions_in(appends)
        edited = [one for one in appends if queries_messages.is_edit(one)]
        rewritten: list[Rewrite] = []
        name = machine.settings.name
        snapshot, seq = None, machine.seq
        if (
            self._altered
            or seq - self.snapshot_seq >= SNAPSHOT_MESSAGES
            or self._bytes >= SNAPSHOT_BYTES
        ):
            snapshot, self._altered = machine.snapshot(), False
            self.snapshot_seq, self._bytes = seq, 0
        first_seq, oldest_seq = machine.first_seq, machine.oldest_seq

        step = None if fence is None else fence.step(seq)

        async def unit(tx: Tx) -> IsHeld | None:
            # What this commits is the proof that the room is still ours, if the lease holds on.
            is_held = None if fence is None else fence.lease()
            if appends:
                if not await queries_messages.insert(tx, room_id, appends, step):
                    raise taken_over()
            elif step is not None and not await tx.execute(*step):
                raise taken_over()
            for account in expelled:
                await queries_members.expel(tx, room_id, account)
            if indexed is not None:
                await indexed(tx)
            if mentions:
                await unread.put_mentions(tx, room_id, name, mentions)
            rewritten[:] = [Rewrite(*await edits.store(tx, room_id, one)) for one in edited]
            for more in also:
                await more(tx)
            if snapshot is not None:
                older = oldest_seq if oldest_seq < first_seq else None
                await queries.save_snapshot(tx, room_id, snapshot, seq, first_seq, older)
            return is_held

        more_to_do = expelled or also or indexed or mentions or edited or snapshot
        return unit, bool(appends) and not more_to_do, rewritten


class MemoryJournal(Entity):
    """The journal of a room that is in memory alone: what one turn of the loop asks for is carried
    out together, with the next.
    """

    stored = Share()

    store: Store
    room_id: RoomId
    carry_out: CarryOut
    fail: Callable[[e.FolkmootError], e.FolkmootError]
    spawn: Spawn
    fence: Fence | None = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _items: list[Item] = []
    _checking: bool = False
    _waiting_bytes: int = 0
    _storing: set[asyncio.Task[None]] = set()
    _unstored: set[str] = set()

    @property
    def waiting(self) -> int:
        """How many things wait to be carried out, or to be stored as put out."""
        return len(self._items) + len(self._storing)

    @property
    def is_full(self) -> bool:
        """Whether so much waits, while it is not known whose the room is, that it is enough."""
        return self._checking and (
            len(self._items) > MAX_UNSTORED or self._waiting_bytes > MAX_UNSTORED_BYTES
        )

    def perform(self, items: Sequence[Item]) -> None:
        """Carry items out, in order."""
        if not self._items:
            self._loop.call_soon(self._flush)
        self._items += items
        if self._checking:
            self._waiting_bytes += sum(len(one.data) for one in items if type(one) is Append)

    def _flush(self) -> None:
        if self.fence is not None and not self.fence.is_sure:
            # Nothing of it is in the store, so nothing there would refuse it.
            self._checking = True
            self.spawn(self._flush_checked())
            return
        items, self._items = self._items, []
        self.carry_out(items)

    async def check(self) -> None:
        """Make sure that the room is ours, however long the database is away.

        What is in memory alone is not given up before it is known that another has the room.
        """
        while self.fence is not None:
            try:
                await self.fence.check(self.store)
            except (e.DatabaseInUse, e.StoreClosed):
                raise
            except e.StoreError:
                await asyncio.sleep(CHECK_SECONDS)
            else:
                return

    async def _flush_checked(self) -> None:
        error: e.FolkmootError | None = None
        try:
            await self.check()
        except e.FolkmootError as refusal:
            error = refusal
        self._checking, self._waiting_bytes = False, 0
        if error is not None:
            items, self._items = self._items, []
            told = self.fail(error)
            for item in items:
                if type(item) is Barrier:
                    item.call(told)
        else:
            self._flush()

    def removed(self, share: Share) -> None:
        """It has nothing in the store."""

    def expelled(self, account: str) -> None:
        """Store that someone was put out: they stay out also when the room is gone."""

        async def unit(tx: Tx) -> None:
            await queries_members.expel(tx, self.room_id, account)

        async def store() -> None:
            try:
                await self.store.write(guarded(self.fence, unit))
            except Exception:
                self._unstored.add(account)
                raise

        task = self.spawn(store())
        if task is None:
            self._unstored.add(account)
        else:
            self._storing.add(task)
            task.add_done_callback(self._storing.discard)

    async def expulsions(self) -> None:
        """Wait until all who were put out are stored as such; try again what failed before."""
        failed, self._unstored = self._unstored, set()
        for account in sorted(failed):
            self.expelled(account)
        if self._storing:
            await asyncio.wait(self._storing)
        if self._unstored:
            raise e.RoomUnavailable("The removal could not be saved. Try again in a moment.")

    async def alter(self, change: Change, also: Unit[None] | None = None) -> None:
        """The room's record is stored first."""
        if also is not None:
            await self.store.write(guarded(self.fence, also))
        done: asyncio.Future[None] = self._loop.create_future()
        self.perform([*change(), Barrier.of(done)])
        await done
