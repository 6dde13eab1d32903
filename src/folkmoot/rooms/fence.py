"""The fence of a room: only the process that owns it can store something of it.

Where several processes use one database, a process takes a room before it loads it, and its number
of the take-over (the *epoch*) is in each of its units. One that was paused and replaced meanwhile
finds another number there, and nothing of its unit is stored. The row that has the number is
written by each of them, so a take-over waits for a unit that is under way, or the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.ports import RoomOwner, RoomOwners, SqlStatement, Store, Tx, Unit
from folkmoot.rooms.model import RoomId

T = TypeVar("T")
IsHeld: TypeAlias = Callable[[], bool]
"""Whether a lease has held without a break since this was asked for."""

ADVANCE: Final = (
    "UPDATE room_owners SET last_seq = ? WHERE room_id = ? AND owner_epoch = ? AND last_seq = ?"
)
HOLD: Final = "UPDATE room_owners SET last_seq = last_seq WHERE room_id = ? AND owner_epoch = ?"


class RoomElsewhere(e.RoomUnavailable):
    """Another process has the room."""

    def __init__(self, owner: RoomOwner) -> None:
        super().__init__("Another node has the room. Try again in a moment.")
        self.owner = owner


class Fence(Entity):
    """That this process owns a room."""

    room_id: RoomId
    epoch: int
    seq: int
    """The last message that is stored."""
    owners: RoomOwners | None = None

    def __post_init__(self) -> None:
        self._is_held = self.lease()

    @property
    def is_sure(self) -> bool:
        """Whether the lease has held ever since the room was taken, so that nobody else has it."""
        return self._is_held()

    def lease(self) -> IsHeld:
        """Tells whether the lease has held from now on."""
        return _always if self.owners is None else self.owners.lease()

    def stored(self, seq: int, is_held: IsHeld) -> None:
        """A unit with `step` was committed, before which `lease` was asked: the room is ours."""
        self.seq, self._is_held = seq, is_held

    async def check(self, store: Store) -> None:
        """Make sure again that the room is ours after the lease lapsed; raise if it is not."""

        async def unit(_tx: Tx) -> IsHeld:
            return self.lease()

        self._is_held = await store.write(self.guard(unit))

    def step(self, seq: int) -> SqlStatement:
        """What a unit does first that stores all messages up to a `seq`.

        It changes a row only if the room is ours, and nothing else was stored meanwhile.
        """
        return SqlStatement(ADVANCE, (seq, self.room_id, self.epoch, self.seq))

    def guard(self, unit: Unit[T]) -> Unit[T]:
        """A unit that changes something else of the room, and nothing if the room is not ours."""

        async def guarded(tx: Tx) -> T:
            if not await tx.execute(HOLD, (self.room_id, self.epoch)):
                raise taken_over()
            return await unit(tx)

        return guarded


def _always() -> bool:
    return True


def guarded(fence: Fence | None, unit: Unit[T]) -> Unit[T]:
    """A unit behind a fence, where there is one."""
    return unit if fence is None else fence.guard(unit)


def taken_over() -> e.RoomTakenOver:
    """What those are told whose message was not stored."""
    return e.RoomTakenOver("Another node took the room over. Reconnect and resume.")


async def take(owners: RoomOwners | None, room_id: RoomId) -> Fence | None:
    """Take a room that is about to be loaded; no fence where no other process can be."""
    if owners is None:
        return None
    fence = Fence(room_id, 0, 0, owners)
    owner = await owners.take(room_id)
    if owner is None:
        raise e.RoomNotFound("There is no such room.")
    if owner.process != owners.process:
        raise RoomElsewhere(owner)
    fence.epoch, fence.seq = owner.epoch, owner.last_seq
    return fence
