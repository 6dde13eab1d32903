"""Visits: participants who come through tools, without a connection.

The node that owns a room keeps its visits, since whoever makes them may ask any node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms.limits import MAX_TOUCHED, TOUCH_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.rooms.machine import Role
    from folkmoot.rooms.model import Visitor
    from folkmoot.rooms.ports import RoomPort
    from folkmoot.rooms.remote import RemoteRoom


class Visit:
    """The outlet of a visitor without a connection, who reads the history instead."""

    def __init__(self, name: str, seen_at: float) -> None:
        self.name = name
        self.seen_at = seen_at
        self._open = True

    @property
    def is_open(self) -> bool:
        """Whether the visit goes on."""
        return self._open

    def tell(self, data: bytes) -> None:
        """Nobody listens."""

    def close(self, code: CloseCode) -> None:  # noqa: ARG002 - a visit has nobody to tell why
        """End the visit."""
        self._open = False

    def hold(self) -> None:
        """Nothing comes on a visit."""

    def release(self) -> None:
        """Nothing comes on a visit."""

    async def drained(self) -> None:
        """Nothing waits to be read."""


class Visits:
    """Everyone who is in a live room through tools."""

    def __init__(self, room: RoomPort, now: Callable[[], float]) -> None:
        self._room = room
        self._now = now
        self._visits: dict[str, Visit] = {}

    async def begin(self, visitor: Visitor, role: Role) -> None:
        """Begin or extend someone's visit."""
        account = visitor.principal.account_id
        await self._room.prepare(account)
        if not self.touch(account):
            visit = Visit(visitor.principal.name, self._now())
            self._room.join(visit, visitor, role)
            self._visits[account] = visit
        await self._room.flushed()

    def touch(self, account: str) -> bool:
        """Note someone's activity; whether they are on a visit."""
        visit = self._visits.get(account)
        if visit is None or not visit.is_open:
            return False
        visit.seen_at = self._now()
        return True

    def names(self) -> set[str]:
        """Who is on a visit."""
        return {visit.name for visit in self._visits.values()}

    async def end(self, account: str) -> None:
        """Let someone be gone."""
        if self._end(account):
            await self._room.flushed()

    def _end(self, account: str) -> bool:
        visit = self._visits.pop(account, None)
        if visit is None:
            return False
        visit.close(CloseCode.REPLACED)
        self._room.left(visit)
        return True

    def end_idle(self, seconds: float) -> None:
        """Let those be gone who have not done anything for so long, or were put out."""
        oldest = self._now() - seconds
        for account, visit in list(self._visits.items()):
            if not visit.is_open or visit.seen_at < oldest:
                self._end(account)


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
