"""Visits: participants who come through tools, without a connection.

The node that owns a room keeps its visits, since whoever makes them may ask any node. Where there
are several nodes they are also stored, so that the next owner of the room goes on with them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.entity import Entity
from folkmoot.rooms import queries_visits
from folkmoot.rooms.fence import guarded
from folkmoot.rooms.limits import (
    CLOCK_SLACK,
    MAX_STORED_VISITS,
    MAX_TOUCHED,
    SEEN_SHARE,
    TOUCH_SECONDS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from folkmoot.core.ports import Clock, Store, Tx
    from folkmoot.rooms.live import LiveRoom
    from folkmoot.rooms.machine import Role
    from folkmoot.rooms.model import RoomId, Visitor
    from folkmoot.rooms.queries_visits import StoredVisit
    from folkmoot.rooms.remote import RemoteRoom


class Visit(Entity):
    """The outlet of a visitor without a connection, who reads the history instead."""

    visitor: Visitor
    seen_at: float
    stored_at: float | None = None
    """Which `seen_at` is stored, if the visit is."""
    _open: bool = True

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def unstored_seconds(self) -> float:
        """How much later the visitor was active than is stored."""
        return 0.0 if self.stored_at is None else self.seen_at - self.stored_at

    def tell(self, data: bytes) -> None:
        """Nobody listens."""

    def close(self, code: CloseCode) -> None:  # noqa: ARG002 - a visit has nobody to tell why
        self._open = False

    def hold(self) -> None:
        """Nothing comes on a visit."""

    def release(self) -> None:
        """Nothing comes on a visit."""

    async def drained(self) -> None:
        """Nothing waits to be read."""


class VisitTable(Entity):
    """The stored visits of all rooms, with times of the clock that all nodes share."""

    store: Store
    clock: Clock
    idle_seconds: float

    def _shared(self, seen_at: float) -> float:
        return self.clock.now() - (self.clock.monotonic() - seen_at)

    def local(self, stored: StoredVisit) -> float:
        """When a stored visitor was last active, by the clock of this process."""
        return self.clock.monotonic() - max(self.clock.now() - stored.seen_at, 0.0)

    async def of_room(self, room_id: RoomId) -> Sequence[StoredVisit]:
        """The visits that go on in a room which this process has just taken."""
        now = self.clock.now()
        since = now - self.idle_seconds

        async def query(tx: Tx) -> Sequence[StoredVisit]:
            return await queries_visits.of_room(tx, room_id, since, int(now), MAX_STORED_VISITS)

        return await self.store.read(query)

    async def put(self, room: LiveRoom, visitor: Visitor, seen_at: float) -> None:
        """Store a visit, unless another process has the room by now."""
        shared = self._shared(seen_at)

        async def unit(tx: Tx) -> None:
            await queries_visits.put(tx, room.room_id, visitor, shared)

        await self.store.write(guarded(room.journal.fence, unit))

    async def put_seen(self, room: LiveRoom, seen: Mapping[str, float]) -> None:
        """Store when visitors were last active."""
        shared = {account: self._shared(seen_at) for account, seen_at in seen.items()}

        async def unit(tx: Tx) -> None:
            await queries_visits.put_seen(tx, room.room_id, shared)

        await self.store.write(unit)

    async def remove(self, room: LiveRoom, ended: Mapping[str, float]) -> None:
        """Remove visits that ended, unless another process has the room by now."""
        shared = {
            account: self._shared(seen_at) + CLOCK_SLACK for account, seen_at in ended.items()
        }

        async def unit(tx: Tx) -> None:
            for account, until in sorted(shared.items()):
                await queries_visits.remove(tx, room.room_id, account, until)

        with suppress(e.RoomTakenOver):
            await self.store.write(guarded(room.journal.fence, unit))

    async def remove_idle(self) -> None:
        """Remove the visits that no room will go on with."""
        since = self.clock.now() - self.idle_seconds

        async def unit(tx: Tx) -> None:
            await queries_visits.remove_idle(tx, since)

        await self.store.write(unit)


class Visits(Entity):
    """Everyone who is in a live room through tools."""

    room: LiveRoom
    now: Callable[[], float]
    table: VisitTable | None = None
    _visits: dict[str, Visit] = {}

    async def begin(self, visitor: Visitor, role: Role) -> None:
        """Begin or extend someone's visit."""
        account = visitor.principal.account_id
        await self.room.prepare(account)
        if self.touch(account):
            self._visits[account].visitor = visitor
        else:
            visit = Visit(visitor, self.now())
            self.room.join(visit, visitor, role)
            self._visits[account] = visit
        await self.room.flushed()
        await self._store(account)

    async def _store(self, account: str) -> None:
        """Store someone's visit, if there is one."""
        # Also one that is stored: a leave may have removed it there and not arrived here.
        while self.table is not None and (visit := self._visits.get(account)) is not None:
            seen_at = visit.seen_at
            await self.table.put(self.room, visit.visitor, seen_at)
            visit.stored_at = seen_at
            if account in self._visits:
                return
            # They left meanwhile, and would come back with the next owner of the room. If they come
            # once more while it is removed, it is stored again.
            await self.table.remove(self.room, {account: seen_at})

    def restore(self, stored: Sequence[StoredVisit]) -> None:
        """Go on with the visits of an earlier owner of the room.

        Whoever left a durable room is not among those who were here by its messages.
        """
        if self.table is None:
            return
        for one in stored:
            principal = one.visitor.principal
            if self.room.durable and not self.room.machine.has(principal.account_id):
                continue
            seen_at = self.table.local(one)
            visit = Visit(one.visitor, seen_at, seen_at)
            # Whoever may not come in any more does not.
            with suppress(e.FolkmootError):
                self.room.join(visit, one.visitor, one.role)
                self._visits[principal.account_id] = visit

    def touch(self, account: str) -> bool:
        """Note someone's activity; whether they are on a visit."""
        visit = self._visits.get(account)
        if visit is None or not visit.is_open:
            return False
        visit.seen_at = self.now()
        return True

    def names(self) -> set[str]:
        return {visit.visitor.principal.name for visit in self._visits.values()}

    async def end(self, account: str) -> None:
        """Let someone be gone; whoever asks for it has removed what is stored."""
        if self._end(account):
            await self.room.flushed()

    def _end(self, account: str) -> bool:
        visit = self._visits.pop(account, None)
        if visit is None:
            return False
        visit.close(CloseCode.REPLACED)
        self.room.left(visit)
        return True

    async def look_after(self, seconds: float) -> None:
        """Let those be gone who did nothing for so long or were put out; store who was active."""
        oldest = self.now() - seconds
        ended: dict[str, float] = {}
        active: dict[str, Visit] = {}
        for account, visit in list(self._visits.items()):
            if not visit.is_open or visit.seen_at < oldest:
                self._end(account)
                ended[account] = visit.seen_at
            elif visit.unstored_seconds >= seconds / SEEN_SHARE:
                active[account] = visit
        if self.table is None:
            return
        if ended:
            await self.table.remove(self.room, ended)
            with suppress(e.RoomTakenOver):
                for account in ended:
                    await self._store(account)
        if active:
            seen = {account: visit.seen_at for account, visit in active.items()}
            await self.table.put_seen(self.room, seen)
            for account, visit in active.items():
                visit.stored_at = seen[account]


class RemoteVisits:
    """The visits of a room that another node owns."""

    def __init__(self, room: RemoteRoom, now: Callable[[], float], idle_seconds: float) -> None:
        self._room = room
        self._now = now
        self._seconds = min(TOUCH_SECONDS, idle_seconds / 4)
        self._touched: dict[str, float] = {}

    async def begin(self, visitor: Visitor, role: Role) -> None:
        """Begin or extend someone's visit."""
        await self._room.call("visit", visitor, role)

    def touch(self, account: str) -> None:
        """Note someone's activity; the owner is told now and then."""
        now = self._now()
        if now - self._touched.get(account, -self._seconds) >= self._seconds:
            if len(self._touched) >= MAX_TOUCHED:
                self._touched.clear()
            self._touched[account] = now
            self._room.cast("touch", account)

    async def end(self, account: str) -> None:
        """Let someone be gone."""
        await self._room.call("depart", account)
