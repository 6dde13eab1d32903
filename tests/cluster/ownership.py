"""Whether a simulated node owns the room.

The database decides: whoever needs a room that no living node has *takes* it, which raises its
epoch. What a node knows of its own room is a right to act, and ends with the lease at the latest.
"""

from __future__ import annotations

from folkmoot.cluster.lease import Lease
from folkmoot.cluster.messages import Place


class Ownership:
    """The room of one node, if it has it."""

    def __init__(self, node: str, lease: Lease) -> None:
        self.node = node
        self._lease = lease
        self._owned: tuple[int, int] | None = None
        """The epoch of the room, and the term of the lease in which it was taken."""
        self._is_taking = False
        self.is_draining = False
        """Whether this node takes no more rooms."""

    def may_act(self, epoch: int, now: float) -> bool:
        """Whether this node surely owns the room, so that it may do what no fence guards."""
        if self._owned is None or self._owned[0] != epoch:
            return False
        return self._lease.holds(now, self._owned[1])

    def take(self, now: float) -> int | None:
        """Begin to take the room in a term; None where that is under way, or this node may not."""
        if self._is_taking or self.is_draining or not self._lease.holds(now):
            return None
        self._is_taking = True
        return self._lease.term

    def took(self, term: int, place: Place, now: float) -> None:
        """The database answered who owns the room now."""
        self._is_taking = False
        if self._owned is not None and self._owned[0] < place.epoch:
            self._owned = None
        # Taken too late to be sure, it is taken again, with another epoch.
        if place.node == self.node and self._lease.holds(now, term):
            self._owned = place.epoch, term

    def lost(self, epoch: int) -> None:
        """A fence refused, or the room was handed over or let go."""
        if self._owned is not None and self._owned[0] == epoch:
            self._owned = None

    def owns(self, epoch: int, now: float) -> bool:
        """Whether the room is still this node's; it is lost for good when the lease has ended."""
        if not self.may_act(epoch, now):
            self.lost(epoch)
        return self._owned is not None and self._owned[0] == epoch
