"""Many processes on one database: which owns a room, has a client's session, or links a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

__all__ = ["BackendHomes", "ListedNode", "NodeHome", "RoomOwner", "RoomOwners", "SessionHomes"]


class RoomOwner(msgspec.Struct, frozen=True):
    """The process that has a room loaded, since it took the room over for the `epoch`th time."""

    process: str
    epoch: int
    last_seq: int = 0
    """The last message that was stored when it took the room."""
    address: str = ""
    """Where other nodes reach it."""


class ListedNode(msgspec.Struct, frozen=True):
    """A node as an operator sees it."""

    name: str
    process: str
    address: str
    version: str
    started_at: float
    lease_seconds: float
    """How long its lease still holds; less than 0 if it is over."""
    rooms: int
    draining: bool = False
    """Whether it takes no rooms any more, and is about to be stopped."""
    drained: bool = False
    """Whether others have its rooms by now."""
    differing: tuple[str, ...] = ()
    """The settings that differ from those of the running node that started first."""


class RoomOwners(Protocol):
    """Which process owns which room, where several use one database."""

    @property
    def process(self) -> str:
        """What this process is called; it is another name at each start."""

    def lease(self) -> Callable[[], bool]:
        """Tells whether the lease has held from now on, without a break that another could use."""

    @property
    def is_cut_off(self) -> bool:
        """Whether the lease is over, and the database does not answer: others take the rooms."""

    async def take(self, room_id: int) -> RoomOwner | None:
        """Take a room, unless a living process has it: who owns it now; None without such a room.

        Each take-over raises the epoch, also one by the same process, and what was begun under an
        earlier epoch can no longer be stored.
        """

    async def owners_of(self, room_ids: Sequence[int]) -> dict[int, RoomOwner]:
        """Which of these rooms living processes have."""

    async def release(self, room_id: int, epoch: int, to: str | None = None) -> bool:
        """Leave a room to a process, or to whoever takes it first; whether it was still ours."""

    async def release_all(self) -> None:
        """Leave every room of this process to whoever takes it first."""

    async def drain(self, process: str) -> bool:
        """Have a process give its rooms away; it notices when it renews its lease.

        False if there is no other that could take them.
        """

    async def until_draining(self) -> None:
        """Wait until this process is to give its rooms away."""

    async def drained(self) -> None:
        """Say that this process has given its rooms away."""

    async def is_first(self) -> bool:
        """Whether this process removes what is too old, which one does for all."""

    async def is_bus_reached(self, seconds: float) -> bool:
        """Whether another process said within the last seconds that it reaches the bus."""

    async def list_nodes(self) -> list[ListedNode]:
        """The nodes of the database, also those that ended without saying so."""


class NodeHome(msgspec.Struct, frozen=True):
    """The process that has a client's session or links a server, and where others reach it."""

    process: str
    address: str


class BackendHomes(Protocol):
    """Which process links a server that only one node may link, where several use one database."""

    @property
    def process(self) -> str:
        """What this process is called; it is another name at each start."""

    def lease(self) -> Callable[[], bool]:
        """Tells whether this process may link what it has, from now on and without a break."""

    @property
    def until(self) -> float:
        """When the lease ends, unless it is renewed, on the clock that runs while one sleeps."""

    async def take(self, namespace: str) -> NodeHome | None:
        """Have a server linked here, unless a living process links it: who does now."""

    async def find(self, namespace: str) -> NodeHome | None:
        """The living process that links a server; None if there is none."""

    async def release(self, namespace: str) -> None:
        """Leave a server to whoever takes it first."""


class SessionHomes(Protocol):
    """Which process has which session of a client, where several use one database."""

    @property
    def process(self) -> str:
        """What this process is called; it is another name at each start."""

    async def find(self, id_hash: str, opened_by: str) -> NodeHome | None:
        """The living process that has a session; None if there is none."""

    async def take(self, id_hash: str, opened_by: str, gone: str = "") -> bool:
        """Take a session over, unless a living process has it that is not the one thought gone.

        Every node hears of it, so that no other goes on with the session.
        """

    async def leave(self, id_hash: str) -> None:
        """A session that was taken over has ended here."""

    async def report(self, key: str, number: int) -> int:
        """Say how many sessions of a key this process has; how many other processes have."""

    async def end_one(self, key: str, account_id: str) -> bool:
        """Ask the process with most sessions of an account to end one; False if no other has any.

        `key` is what they are counted by.
        """

    async def forget(self) -> None:
        """Remove what is known of processes that are gone."""
