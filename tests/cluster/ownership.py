"""Which node owns which room, as a simulated node knows it.

The database decides: whoever needs a room that no living node has *takes* it, which raises its
epoch. What is known here of rooms elsewhere is only a hint where to send, and may be *doubted*.
What is known of rooms here is a right to act, and ends with the lease at the latest.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from folkmoot.cluster.lease import Lease
from folkmoot.cluster.messages import Place

RoomKey: TypeAlias = int
"""A room's id."""

MAX_KNOWN_ROOMS: Final = 10_000


class Taking(Struct, frozen=True, gc=False):
    """A statement under way that takes a room, or tells who has it."""

    room: RoomKey
    term: int


class LostRoom(Struct, frozen=True, gc=False):
    """A room is this node's no more: nothing may be done for it from now on."""

    room: RoomKey
    epoch: int


class Ownership:
    """The rooms of one node, and where it found others."""

    def __init__(self, node: str, lease: Lease) -> None:
        self.node = node
        self._lease = lease
        self._owned: dict[RoomKey, tuple[int, int]] = {}
        """By room its epoch, and the term of the lease in which it was taken."""
        self._elsewhere: dict[RoomKey, Place] = {}
        self._taking: set[RoomKey] = set()
        self.is_draining = False
        """Whether this node takes no more rooms."""

    def __len__(self) -> int:
        return len(self._owned)

    @property
    def rooms(self) -> dict[RoomKey, int]:
        """The rooms that are owned here, and their epochs."""
        return {room: epoch for room, (epoch, _) in self._owned.items()}

    def find(self, room: RoomKey, now: float) -> Place | None:
        """Where a room is, if that is known."""
        owned = self._owned.get(room)
        if owned is not None and self.may_act(room, owned[0], now):
            return Place(self.node, owned[0])
        return self._elsewhere.get(room)

    def may_act(self, room: RoomKey, epoch: int, now: float) -> bool:
        """Whether this node surely owns a room, so that it may do what no fence guards."""
        owned = self._owned.get(room)
        return owned is not None and owned[0] == epoch and self._lease.holds(now, owned[1])

    def take(self, room: RoomKey, now: float) -> Taking | None:
        """Begin to take a room; None where that is under way, or this node may not."""
        if room in self._taking or self.is_draining or not self._lease.holds(now):
            return None
        self._taking.add(room)
        return Taking(room, self._lease.term)

    def took(self, taking: Taking, place: Place | None, now: float) -> list[LostRoom]:
        """The database answered who owns a room now; None where it could not be asked."""
        room = taking.room
        self._taking.discard(room)
        if place is None:
            return []
        lost = []
        owned = self._owned.get(room)
        if owned is not None and owned[0] < place.epoch:
            lost = self.lost(room, owned[0])
        if place.node != self.node:
            self.hear(room, place)
        elif self._lease.holds(now, taking.term):
            self._elsewhere.pop(room, None)
            self._owned[room] = (place.epoch, taking.term)
        # Taken, but too late to be sure: it is taken again, with another epoch.
        return lost

    def hear(self, room: RoomKey, place: Place) -> None:
        """A room is said to be elsewhere; it is no proof, but worth a try."""
        known = self._elsewhere.pop(room, None)
        if known is not None and known.epoch > place.epoch:
            place = known
        self._elsewhere[room] = place
        while len(self._elsewhere) > MAX_KNOWN_ROOMS:
            del self._elsewhere[next(iter(self._elsewhere))]

    def doubt(self, room: RoomKey | None = None) -> None:
        """Forget where a room is, or all rooms elsewhere: the database is asked next."""
        if room is None:
            self._elsewhere.clear()
        else:
            self._elsewhere.pop(room, None)

    def lost(self, room: RoomKey, epoch: int) -> list[LostRoom]:
        """A fence refused, or the room was handed over or let go."""
        owned = self._owned.get(room)
        if owned is None or owned[0] != epoch:
            return []
        del self._owned[room]
        return [LostRoom(room, epoch)]

    def poll(self, now: float) -> list[LostRoom]:
        """The rooms that are lost because the lease ended."""
        gone = [
            LostRoom(room, epoch)
            for room, (epoch, term) in self._owned.items()
            if not self._lease.holds(now, term)
        ]
        for one in gone:
            del self._owned[one.room]
        return gone
