"""What happens in rooms by itself: old messages go, idle visits end, idle rooms are let go."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from folkmoot.core.errors import FolkmootError, RoomUnavailable
from folkmoot.core.ports import Clock, Store, Tx
from folkmoot.ratelimits import DAY
from folkmoot.rooms import queries, queries_guests, queries_messages
from folkmoot.rooms.farewell import remove_if_deserted
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.loading import LiveRooms
from folkmoot.rooms.model import RoomId, RoomRecord
from folkmoot.rooms.options import RoomOptions
from folkmoot.rooms.visits import Visits

logger = logging.getLogger("folkmoot.rooms")

ROUND_SECONDS = 5.0
SWEEP_SECONDS = 600.0
"""How often every stored room is looked at for messages that are too old."""
IDLE_SECONDS = 300.0
"""After which a room nobody uses is let go."""
REMOVED_AT_ONCE = 500
ROOMS_AT_ONCE = 200
FINISH_SECONDS = 10.0
SLACK = 10
"""A tenth more than a room keeps may gather before the oldest are removed."""


class Upkeep:
    """Keeps all rooms in order, one after the other."""

    def __init__(
        self, store: Store, clock: Clock, options: RoomOptions, live: LiveRooms, visits: Visits
    ) -> None:
        self._store = store
        self._clock = clock
        self._options = options
        self._live = live
        self._visits = visits
        self._swept = clock.monotonic() - SWEEP_SECONDS

    async def run(self) -> None:
        """Do so until cancelled; what fails is tried again in the next round."""
        while True:
            try:
                await self.round()
            except FolkmootError as error:
                logger.warning("the upkeep of rooms failed", extra={"error": error.code})
            except Exception:
                logger.exception("the upkeep of rooms failed")
            await asyncio.sleep(ROUND_SECONDS)

    async def round(self) -> None:
        """Look after everything once."""
        self._visits.end_idle()
        now = self._clock.monotonic()
        if now - self._swept >= SWEEP_SECONDS:
            self._swept = now
            await self._sweep()
        for live in self._live:
            if live.durable:
                await self._keep_count(live)
                if self._is_unused(live):
                    await self._let_go(live)

    def _is_unused(self, live: LiveRoom) -> bool:
        return live.is_idle and self._clock.monotonic() - live.used_at > IDLE_SECONDS

    async def finish(self) -> None:
        """Wait until all that was said is stored."""
        for _ in range(int(FINISH_SECONDS * 100)):
            if not any(live.journal.waiting for live in self._live):
                return
            await asyncio.sleep(0.01)

    async def _let_go(self, live: LiveRoom) -> None:
        await live.save()
        # Somebody may have come meanwhile.
        if self._is_unused(live):
            live.end(RoomUnavailable("The room was let go; it is loaded anew."))
            self._live.dropped(live)

    async def _keep_count(self, live: LiveRoom) -> None:
        most = live.keep_messages
        kept = live.delivered - live.machine.first_seq + 1
        if kept > most + most // SLACK:
            await self._trim(live, live.delivered - most + 1)

    async def _sweep(self) -> None:
        """Remove what is too old or too much in all stored rooms, and invitations that expired."""
        now, after = int(self._clock.now()), 0

        async def forget(tx: Tx) -> int:
            return await queries_guests.remove_expired(tx, now, REMOVED_AT_ONCE)

        # A hub that has nothing to remove writes nothing.
        while await self._store.read(partial(queries_guests.any_expired, now=now)):
            await self._store.write(forget)
        while True:
            rooms = await self._store.read(partial(_some_rooms, after=after), long=True)
            for record in rooms:
                if self._live.get(record.id) is None and await remove_if_deserted(
                    self._store, record
                ):
                    logger.info("a room that nobody may come into was removed")
                elif record.durable:
                    await self._look_after(record)
            if len(rooms) < ROOMS_AT_ONCE:
                return
            after = rooms[-1].id

    async def _look_after(self, record: RoomRecord) -> None:
        days, most = self._options.kept_days(record), self._options.kept_messages(record)
        first = record.first_seq
        if record.last_seq - first + 1 > most + most // SLACK:
            first = record.last_seq - most + 1
        if days:
            oldest = self._clock.now() - days * DAY
            kept = await self._store.read(
                lambda tx: queries_messages.oldest_after(tx, record.id, oldest)
            )
            first = max(first, record.last_seq + 1 if kept is None else kept)
        if first > record.first_seq:
            await self._trim(await self._live.load(record), first)

    async def _trim(self, live: LiveRoom, first_seq: int) -> None:
        """Let the history begin later: first for everyone, then on the disk."""
        await live.trim(first_seq)

        async def unit(tx: Tx) -> int:
            return await queries_messages.trim(tx, live.room_id, first_seq, REMOVED_AT_ONCE)

        while await self._store.write(unit) == REMOVED_AT_ONCE:
            pass


async def _some_rooms(tx: Tx, *, after: RoomId) -> list[RoomRecord]:
    return await queries.rooms_after(tx, after, ROOMS_AT_ONCE)
