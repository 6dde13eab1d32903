"""The stream of a live room: its messages delivered to connections, and read again later.

A room runs ahead of its store, and what is not stored may never have been. So each list is taken
from the machine as it is, and answered once all of it is stored.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.policy import Principal
from folkmoot.rooms.folding import folded_page
from folkmoot.rooms.history import History
from folkmoot.rooms.limits import CATCH_UP_SECONDS
from folkmoot.rooms.machine import Append, Attach, Grant, Proposal, Role, Room
from folkmoot.rooms.machine.requests import OpenRequest
from folkmoot.rooms.model import MessagePage
from folkmoot.rooms.ports import Crowd, Outlet, RoomStatus, WaitingItems
from folkmoot.rooms.visits import Visits

if TYPE_CHECKING:
    from folkmoot.rooms.journal import Spawn

logger = logging.getLogger("folkmoot.rooms")


class RoomStream(ABC):
    """What a room in use delivers, and what can be read of it."""

    visits: Visits

    def __init__(self, machine: Room, history: History, crowd: Crowd, spawn: Spawn) -> None:
        self.machine = machine
        self.history = history
        self._crowd = crowd
        self._broadcast = crowd.broadcast
        self._spawn = spawn
        self.delivered = machine.seq
        """The `seq` of the last message that everyone got."""
        self._waiters: set[asyncio.Future[None]] = set()
        self._ended: e.FolkmootError | None = None

    @abstractmethod
    async def flushed(self) -> None:
        """Wait until all that came before is carried out."""

    @property
    def name(self) -> str:
        return self.machine.settings.name

    async def refresh(self) -> RoomStatus:
        return self.status

    @property
    def status(self) -> RoomStatus:
        machine = self.machine
        return RoomStatus(
            machine.settings.epoch,
            machine.present,
            machine.first_seq,
            machine.oldest_seq,
            self.delivered,
        )

    def decode(self, raw: bytes) -> McpxMessage:
        """Decode a message, or raise an error that names the fault in its bytes."""
        return self.machine.decode(raw)

    async def wait(self, after: int, seconds: float) -> None:
        """Wait until there is something after a `seq`, for so long at most."""
        if self.delivered > after or self._ended is not None:
            self._check_there()
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await waiter
        finally:
            self._waiters.discard(waiter)
        self._check_there()

    def _check_there(self) -> None:
        """Raise if the room was deleted; where it goes on elsewhere, reading does too."""
        if isinstance(self._ended, e.RoomNotFound):
            raise self._ended

    def _deliver(self, said: Sequence[Append]) -> None:
        self.delivered = said[-1].seq
        self.history.extend(said)
        self._broadcast([one.data for one in said])

    def _attach(self, item: Attach) -> None:
        outlet: Any = item.connection
        if not outlet.is_open:
            return
        outlet.tell(item.welcome)
        if item.after is None or item.after >= self.delivered:
            self._crowd.add(outlet)
        else:
            self._spawn(self._catch_up(outlet, item.after))

    async def _catch_up(self, outlet: Outlet, after: int) -> None:
        """Tell a connection what it missed, a page at a time, until it can hear the rest live."""
        try:
            while outlet.is_open and self._ended is None:
                async with asyncio.timeout(CATCH_UP_SECONDS):
                    await outlet.drained()
                if after >= self.delivered:
                    # Nothing is awaited between the look and this, so nothing falls between.
                    self._crowd.add(outlet)
                    return
                page = await self.history.after(after, self.delivered, whole=True)
                for data in page:
                    outlet.tell(data)
                after += len(page)
                if not page:
                    break
        except TimeoutError:
            pass
        except e.FolkmootError as error:
            logger.warning("a room's history was not read", extra={"error": error.code})
        # It did not read, or history went on without it: it may come back and will be told.
        outlet.close(CloseCode.TOO_SLOW)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def read(
        self, after: int | None, before: int | None, limit: int, *, fold: bool = False
    ) -> MessagePage:
        """The first messages after a `seq`, or the last ones before one."""
        page = folded_page if fold else page_of
        return await page(self.history, self.status, after, before, limit)

    async def message(self, seq: int) -> bytes | None:
        """The message with this `seq`, if the history still has it."""
        kept = seq >= self.machine.oldest_seq
        found = await self.history.after(seq - 1, seq, 1) if kept else []
        return found[0] if found else None

    async def participants(self) -> list[dict[str, Any]]:
        """All participants as others see them.

        Whether they offer tools is unknown (None) of those who are on a visit.
        """
        here, visiting = self.machine.participants(), self.visits.names()
        for one in here:
            if one["id"] in visiting and not one["offers_tools"]:
                one["offers_tools"] = None
        await self.flushed()
        return here

    async def rights(self) -> tuple[dict[str, list[Any]], list[Grant]]:
        """Each role's rights, and the valid grants."""
        granted = [*self.machine.grants()]
        roles = {role.value: list(held) for role, held in self.machine.settings.rights.items()}
        await self.flushed()
        return roles, granted

    async def proposals(self) -> list[Proposal]:
        """The open proposals and the latest closed ones, the latest first."""
        # Copies: they must stay as they are until they are known to be stored.
        found = [msgspec.structs.replace(one) for one in self.machine.proposals()]
        await self.flushed()
        return sorted(found, key=lambda one: one.seq, reverse=True)

    async def waiting(self, principal: Principal, role: Role) -> WaitingItems:
        """The open requests and proposals that wait for someone."""
        asked, decidable = self.machine.waiting(principal, role)
        rights = self.machine.rights_of(principal, role)
        found = [msgspec.structs.replace(one) for one in decidable]
        await self.flushed()
        return WaitingItems(asked, found, rights)

    async def request(self, id_: str) -> OpenRequest | None:
        """The open request with this id."""
        return self.machine.request(id_)


async def page_of(
    history: History, status: RoomStatus, after: int | None, before: int | None, limit: int
) -> MessagePage:
    """A page of a room's history: the first messages after a `seq`, or the last before one."""
    first, oldest, last = status.first_seq, status.oldest_seq, status.last_seq
    if after is None:
        end = last + 1 if before is None else min(before, last + 1)
        # Rows before the first may still wait to be removed.
        most = min(limit, end - oldest)
        found = await history.before(end, most, oldest) if most > 0 else []
    else:
        through = last if before is None else min(before - 1, last)
        start = max(after, oldest - 1)
        found = await history.after(start, through, limit) if start < through else []
    return MessagePage(
        [Raw(data) for data in found], first, last, oldest if oldest < first else UNSET
    )
