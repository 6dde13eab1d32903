"""What happens in rooms by itself: old messages go, idle visits end, idle rooms are let go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from folkmoot import decisions
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.ports import Clock, RoomOwners, Store, Tx
from folkmoot.ratelimits import DAY
from folkmoot.rooms import queries, queries_guests, queries_messages
from folkmoot.rooms.access import remove_if_deserted
from folkmoot.rooms.budget import LARGEST, Share, Trimmed, Trimming
from folkmoot.rooms.fence import RoomElsewhere, guarded
from folkmoot.rooms.limits import (
    FINISH_SECONDS,
    IDLE_SECONDS,
    REMOVED_AT_ONCE,
    ROOMS_AT_ONCE,
    SWEEP_SECONDS,
    UPKEEP_SECONDS,
)
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.loading import LiveRooms
from folkmoot.rooms.model import RoomId, RoomRecord
from folkmoot.rooms.options import RoomOptions

logger = logging.getLogger("folkmoot.rooms")

SLACK = 10
"""A tenth more than a room keeps may gather before the oldest are removed."""


class Upkeep(Entity):
    """Keeps all rooms in order, one after the other."""

    store: Store
    clock: Clock
    options: RoomOptions
    live: LiveRooms
    owners: RoomOwners | None = None

    def __post_init__(self) -> None:
        self._swept = self.clock.monotonic() - SWEEP_SECONDS

    async def run(self) -> None:
        """Do so until cancelled; what fails is tried again in the next round."""
        while True:
            try:
                await self.round()
            except e.FolkmootError as error:
                logger.warning("the upkeep of rooms failed", extra={"error": error.code})
            except Exception:
                logger.exception("the upkeep of rooms failed")
            await asyncio.sleep(UPKEEP_SECONDS)

    async def round(self) -> None:
        """Look after everything once."""
        for live in self.live:
            await live.visits.look_after(self.options.tool_presence_seconds)
        self.live.end_idle()
        now = self.clock.monotonic()
        if now - self._swept >= SWEEP_SECONDS:
            self._swept = now
            if self.owners is None or await self.owners.is_first():
                await self._sweep()
                await self._forget_decisions()
            else:
                await self._sweep_own()
        for live in self.live:
            if live.durable:
                await self._keep_share(live)
                if self._is_unused(live):
                    await self._let_go(live)

    def _is_unused(self, live: LiveRoom) -> bool:
        return live.is_idle and self.clock.monotonic() - live.used_at > IDLE_SECONDS

    async def finish(self) -> None:
        """Wait until all that was said is stored."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                while any(live.is_busy for live in self.live):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

    async def _let_go(self, live: LiveRoom) -> None:
        await live.save()
        # Somebody may have come meanwhile.
        if self._is_unused(live):
            live.end(e.RoomUnavailable("The room was unloaded; it is loaded again."))
            self.live.dropped(live)

    async def _forget_decisions(self) -> None:
        """Remove what was decided long ago, some at a time."""
        now = self.clock.now()
        while await self.store.write(lambda tx: decisions.prune(tx, now)):
            pass

    async def _keep_share(self, live: LiveRoom) -> None:
        """Where a room has too much, let those who have most of it lose their oldest messages."""
        most, most_bytes = live.keep_messages, self.options.room_bytes or LARGEST
        if not _is_too_much(live.journal.stored, most, most_bytes):
            return
        oldest = live.machine.oldest_seq

        async def query(tx: Tx) -> Trimmed:
            return await _choose(tx, live.room_id, oldest, most, most_bytes)

        trimmed = await self.store.read(query, long=True)
        if not trimmed.removed:
            return
        first_seq = trimmed.removed[-1] + 1
        await live.trim(first_seq, trimmed.oldest_seq or first_seq, frozenset(trimmed.removed))
        for start in range(0, len(trimmed.removed), REMOVED_AT_ONCE):
            some = trimmed.removed[start : start + REMOVED_AT_ONCE]

            async def unit(tx: Tx, seqs: Sequence[int] = some) -> Share:
                return await queries_messages.remove(tx, live.room_id, seqs)

            live.journal.removed(await self.store.write(guarded(live.journal.fence, unit)))

    async def _sweep(self) -> None:
        """Remove what is too old or too much in all stored rooms, and invitations that expired."""
        now, after = int(self.clock.now()), 0
        if self.live.visits is not None:
            await self.live.visits.remove_idle()

        async def forget(tx: Tx) -> int:
            return await queries_guests.remove_expired(tx, now, REMOVED_AT_ONCE)

        # A hub that has nothing to remove writes nothing.
        while await self.store.read(partial(queries_guests.any_expired, now=now)):
            await self.store.write(forget)
        while True:
            rooms = await self.store.read(partial(_some_rooms, after=after), long=True)
            for record in rooms:
                if self.live.get(record.id) is None and await remove_if_deserted(
                    self.store, record
                ):
                    logger.info("a room that nobody can enter was removed")
                elif record.durable:
                    # A room that another node has is looked after there.
                    with suppress(RoomElsewhere):
                        await self._look_after(record)
            if len(rooms) < ROOMS_AT_ONCE:
                return
            after = rooms[-1].id

    async def _sweep_own(self) -> None:
        """Remove what is too old in the rooms that are live here; another process does the rest."""
        for live in self.live:
            record = await self.store.read(partial(queries.room_by_id, room_id=live.room_id))
            if record is not None and record.durable:
                await self._look_after(record)

    async def _look_after(self, record: RoomRecord) -> None:
        days, most = self.options.kept_days(record), self.options.kept_messages(record)
        if days:
            oldest = self.clock.now() - days * DAY
            kept = await self.store.read(
                lambda tx: queries_messages.oldest_after(tx, record.id, oldest)
            )
            first = record.last_seq + 1 if kept is None else kept
            if first > (record.oldest_seq or record.first_seq):
                await self._trim(await self.live.load(record), first)
        stored = await self.store.read(lambda tx: queries_messages.total_of_room(tx, record.id))
        if _is_too_much(stored, most, self.options.room_bytes or LARGEST):
            await self._keep_share(await self.live.load(record))

    async def _trim(self, live: LiveRoom, first_seq: int) -> None:
        """Let the history begin later: first for everyone, then on the disk."""
        await live.trim(first_seq)

        async def unit(tx: Tx) -> Share:
            return await queries_messages.trim(tx, live.room_id, first_seq, REMOVED_AT_ONCE)

        removed = Share(REMOVED_AT_ONCE)
        while removed.messages == REMOVED_AT_ONCE:
            removed = await self.store.write(guarded(live.journal.fence, unit))
            live.journal.removed(removed)


def _is_too_much(stored: Share, most: int, most_bytes: int) -> bool:
    return stored.messages > most + most // SLACK or stored.bytes > most_bytes + most_bytes // SLACK


async def _choose(tx: Tx, room_id: RoomId, oldest: int, most: int, most_bytes: int) -> Trimmed:
    """The messages that go. The cost grows with those that are kept before the last that goes."""
    trimming = Trimming(await queries_messages.shares_of_room(tx, room_id), most, most_bytes)
    removed: list[int] = []
    first_kept, seq = None, -1
    while not trimming.is_done:
        rows = await queries_messages.window_of_sizes(tx, room_id, seq)
        if not rows:
            break
        for seq, author, size in rows:
            # What was to go before the hub last stopped may still be there.
            if trimming.goes(author, size) or seq < oldest:
                removed.append(seq)
            elif first_kept is None:
                first_kept = seq
    return Trimmed(removed, first_kept)


async def _some_rooms(tx: Tx, *, after: RoomId) -> list[RoomRecord]:
    return await queries.rooms_after(tx, after, ROOMS_AT_ONCE)
