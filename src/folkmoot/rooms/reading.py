"""ReadableRoom: the half of a live room that answers how it is and what was said in it.

A room runs ahead of its store, and what is not stored may never have been. So each list is taken
from the machine as it is, and answered once all of it is stored.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from folkmoot.core.errors import FolkmootError
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.policy import Principal
from folkmoot.rooms.history import History
from folkmoot.rooms.machine import Grant, Proposal, Role, Room
from folkmoot.rooms.machine.requests import OpenRequest
from folkmoot.rooms.model import MessagePage
from folkmoot.rooms.ports import RoomStatus, Waiting


class ReadableRoom(ABC):
    """What can be read of a room while it is in use."""

    def __init__(self, machine: Room, history: History) -> None:
        self.machine = machine
        self.history = history
        self.delivered = machine.seq
        """The `seq` of the last message that everyone got."""
        self._waiters: set[asyncio.Future[None]] = set()
        self._ended: FolkmootError | None = None

    @abstractmethod
    async def settled(self) -> None:
        """Wait until all that came before is carried out."""

    @property
    def name(self) -> str:
        """The room's name."""
        return self.machine.settings.name

    @property
    def status(self) -> RoomStatus:
        """How far the room is."""
        machine = self.machine
        return RoomStatus(
            machine.settings.epoch,
            machine.present,
            machine.first_seq,
            machine.oldest_seq,
            self.delivered,
        )

    def decode(self, raw: bytes) -> McpxMessage:
        """A message as the room reads it, or an error that says what is wrong with its bytes."""
        return self.machine.decode(raw)

    async def wait(self, after: int, seconds: float) -> None:
        """Wait until there is something after a `seq`, for so long at most."""
        if self.delivered > after or self._ended is not None:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter
        finally:
            self._waiters.discard(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def read(self, after: int | None, before: int | None, limit: int) -> MessagePage:
        """The first messages after a `seq`, or the last ones before one."""
        machine, last = self.machine, self.delivered
        oldest = machine.oldest_seq
        if after is None:
            end = last + 1 if before is None else min(before, last + 1)
            # Rows before the first may still wait to be removed.
            most = min(limit, end - oldest)
            found = await self.history.before(end, most, oldest) if most > 0 else []
        else:
            through = last if before is None else min(before - 1, last)
            start = max(after, oldest - 1)
            found = await self.history.after(start, through, limit) if start < through else []
        return MessagePage(
            [Raw(data) for data in found],
            machine.first_seq,
            last,
            oldest if oldest < machine.first_seq else UNSET,
        )

    async def message(self, seq: int) -> bytes | None:
        """The message with a `seq`, as long as the history has it."""
        kept = seq >= self.machine.oldest_seq
        found = await self.history.after(seq - 1, seq, 1) if kept else []
        return found[0] if found else None

    async def participants(self) -> list[dict[str, Any]]:
        """Everyone who is here, as others are told of them, and whether they offer tools now."""
        here = self.machine.participants()
        await self.settled()
        return here

    async def rights(self) -> tuple[dict[str, list[Any]], list[Grant]]:
        """What each role holds, and the grants that hold."""
        granted = [*self.machine.grants()]
        roles = {role.value: list(held) for role, held in self.machine.settings.rights.items()}
        await self.settled()
        return roles, granted

    async def proposals(self) -> list[Proposal]:
        """The open proposals and the latest closed ones, the latest first."""
        # Copies: they must stay as they are until they are known to be stored.
        found = [msgspec.structs.replace(one) for one in self.machine.proposals()]
        await self.settled()
        return sorted(found, key=lambda one: one.seq, reverse=True)

    async def waiting(self, principal: Principal, role: Role) -> Waiting:
        """What waits for someone."""
        asked, decidable = self.machine.waiting(principal, role)
        rights = self.machine.rights_of(principal, role)
        found = [msgspec.structs.replace(one) for one in decidable]
        await self.settled()
        return Waiting(asked, found, rights)

    async def request(self, id_: str) -> OpenRequest | None:
        """The open request with this id."""
        return self.machine.request(id_)
