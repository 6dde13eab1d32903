"""Presence without a connection: who takes part through tools is here until they leave or are idle.

A visitor reads with the next call, so nothing is pushed to it.
"""

from __future__ import annotations

from folkmoot.core.closecodes import CloseCode
from folkmoot.core.ports import Clock
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import RoomId, Visitor
from folkmoot.rooms.ports import RoomPort


class Visit:
    """The connection of one who has none: what it is told, it reads in the history."""

    def __init__(self, room: RoomPort, name: str, seen_at: float) -> None:
        self.room = room
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
    """Everyone who is in a room through tools."""

    def __init__(self, clock: Clock, idle_seconds: float) -> None:
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._visits: dict[tuple[RoomId, str], Visit] = {}

    def __len__(self) -> int:
        return len(self._visits)

    def begin(self, room_id: RoomId, room: RoomPort, visitor: Visitor, role: Role) -> None:
        """Let someone be here, or be here still."""
        key = (room_id, visitor.principal.account_id)
        if not self.touch(*key):
            visit = Visit(room, visitor.principal.name, self._clock.monotonic())
            room.join(visit, visitor, role)
            self._visits[key] = visit

    def touch(self, room_id: RoomId, account: str) -> bool:
        """Someone did something; whether they are on a visit here."""
        visit = self._visits.get((room_id, account))
        if visit is None or not visit.is_open:
            return False
        visit.seen_at = self._clock.monotonic()
        return True

    def names(self, room_id: RoomId) -> set[str]:
        """Who is on a visit in a room."""
        return {visit.name for (room, _), visit in self._visits.items() if room == room_id}

    def end(self, room_id: RoomId, account: str) -> RoomPort | None:
        """Let someone be gone; the room they were in."""
        visit = self._visits.pop((room_id, account), None)
        if visit is None:
            return None
        visit.close(CloseCode.REPLACED)
        visit.room.left(visit)
        return visit.room

    def end_idle(self) -> None:
        """Let those be gone who have not done anything for long, or were put out."""
        oldest = self._clock.monotonic() - self._idle_seconds
        for key, visit in list(self._visits.items()):
            if not visit.is_open or visit.seen_at < oldest:
                self.end(*key)
