"""What it costs to load a stored room, by the processor's time, with a short and a long history."""

from __future__ import annotations

import asyncio
import tempfile
import time
from statistics import median
from typing import NamedTuple

import msgspec

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from folkmoot.rooms import Visitor, queries_messages
from folkmoot.rooms.access import visitor_of
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.machine import Append
from folkmoot.rooms.spec import RoomSpec
from folkmoot.settings import Settings

SIZES = (700, 70_000)
UNSAVED = 2_000
"""Messages since the last snapshot, as many as a hub that was killed leaves."""
ROUNDS = 15
MOST_SECONDS = 0.010
SAID = b'{"seq":%d,"ts":"2026-01-01T00:00:00.000Z","kind":"chat.message","payload":{"text":"%s"}}'
AT_ONCE = 5_000


async def measure(**given: object) -> None:
    """Print the table, for a hub with these settings."""
    print(f"\nloading a room: the median of {ROUNDS}, by the processor's time")
    with tempfile.TemporaryDirectory() as made:
        values = {"port": 0, "data": made, "rate_limits": "off", **given}
        settings = msgspec.convert(values, Settings)
        async with Hub(settings).running() as here:
            owner = visitor_of((await here.accounts.register("owner")).account)
            for size in SIZES:
                room = Subject(here, owner, f"room-{size}")
                await here.rooms.create(owner, RoomSpec(room.name))
                unsaved = min(size, UNSAVED)
                await room.fill(1, size - unsaved)
                await room.save()
                await room.fill(size - unsaved + 1, size)
                show(f"{size:>7,} messages, {unsaved:,} since the snapshot", await room.load(size))
                await room.save()
                show(f"{size:>7,} messages, none since the snapshot", await room.load(size))


def show(what: str, took: float) -> None:
    """Print one line."""
    met = "met" if took < MOST_SECONDS else "MISSED"
    print(f"  {what:<45} {took * 1e3:6.2f} ms  goal ≤ 10 ms: {met}", flush=True)


class Subject(NamedTuple):
    """A room that is loaded again and again."""

    hub: Hub
    owner: Visitor
    name: str

    async def fill(self, first: int, last: int) -> None:
        """Store messages; the room is loaded anew when it is needed next."""
        record, _ = await self.hub.rooms.find(self.owner, self.name)
        account = self.owner.principal.account_id
        for start in range(first, last + 1, AT_ONCE):
            said = [
                Append(n, f"id-{n}", 1.0, "chat.message", SAID % (n, b"x" * 100), account)
                for n in range(start, min(start + AT_ONCE, last + 1))
            ]

            async def unit(tx: Tx, said: list[Append] = said) -> None:
                await queries_messages.insert(tx, record.id, said)

            await self.hub.store.write(unit)

    async def save(self) -> None:
        """Store a snapshot, as a room does from time to time."""
        live = await self._loaded()
        await live.save()
        self._unload(live.room_id)

    async def load(self, size: int) -> float:
        """Seconds of the processor to load it."""
        took = []
        for _ in range(ROUNDS):
            began = time.process_time()
            live = await self._loaded()
            took.append(time.process_time() - began)
            if live.machine.seq != size:
                raise RuntimeError(f"{live.machine.seq} messages instead of {size}")
            self._unload(live.room_id)
        return median(took)

    async def _loaded(self) -> LiveRoom:
        record, _ = await self.hub.rooms.find(self.owner, self.name)
        return await self.hub.rooms._live.load(record)

    def _unload(self, room_id: int) -> None:
        self.hub.rooms._live.end(room_id, e.RoomUnavailable("unloaded"))


def main() -> None:
    """Measure it."""
    asyncio.run(measure())


if __name__ == "__main__":
    main()
