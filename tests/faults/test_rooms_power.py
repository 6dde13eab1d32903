"""What anyone heard in a room outlives the power, whichever unsynced writes reached the disk."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import shutil
import time
from functools import partial
from pathlib import Path

import pytest

from folkmoot.store import SqliteStore, find_faults
from tests.amounts import few, times
from tests.faults.talkers import Gathering
from tests.harness import run
from tests.interaction.room_client import joined, square
from tests.siege.wire import history
from tests.store.disk import Disk

# Far longer than a message takes to those who are here.
TOLD_SECONDS = 0.05


class Outage:
    """Power that fails at a sync, just before it takes effect."""

    def __init__(self, people: Gathering, after: Path, chance: random.Random | None) -> None:
        self.disk = Disk()
        self.dark = asyncio.Event()
        # What each had heard by then.
        self.heard: list[dict[int, bytes]] = []
        self._people = people
        self._after = after
        self._chance = chance
        self._loop = asyncio.get_running_loop()

    def await_sync(self, at_sync: int) -> None:
        """Let the power fail at the sync with this number, in whichever thread it is."""
        numbers = itertools.count(1)

        def before_sync() -> None:
            if next(numbers) == at_sync:
                # So that what is told too early has been heard by now.
                time.sleep(TOLD_SECONDS)
                self.heard = [dict(talker.heard) for talker in self._people.talkers]
                self.disk.lose_power(self._after, self._chance)
                self._loop.call_soon_threadsafe(self.dark.set)

        self.disk.before_sync = before_sync


async def talk_until_dark(people: Gathering, folder: Path, outage: Outage, at_sync: int) -> None:
    async with square(folder) as there:
        await people.begin(there.port)
        outage.await_sync(at_sync)
        async with asyncio.TaskGroup() as tasks:
            talking = [
                tasks.create_task(talker.stay(there.port, lambda: None))
                for talker in people.talkers
            ]
            await outage.dark.wait()
            for task in talking:
                task.cancel()


async def check_after(people: Gathering, folder: Path, outage: Outage) -> None:
    assert find_faults(folder / "folkmoot.db") == []
    assert any(outage.heard)
    async with square(folder) as there:
        kept_of = partial(history, there.port, people.owner)
        for talker, heard in zip(people.talkers, outage.heard, strict=True):
            kept = {one["seq"]: one for one in await kept_of(talker.room)}
            assert list(kept) == list(range(1, len(kept) + 1))
            for seq, data in heard.items():
                assert kept[seq] == json.loads(data)
            # And whoever comes back goes on where they were.
            query: dict[str, object] = {"after": len(heard)}
            if talker.epoch is not None:
                # The power may fail before all have come in.
                query["epoch"] = talker.epoch
            token = people.tokens[talker.name]
            async with joined(there.port, token, talker.room, **query) as seat:
                assert seat.welcome["resume"]["complete"] is True
                for seq in range(len(heard) + 1, len(kept) + 1):
                    assert await seat.hear() == kept[seq]


def lose_power(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_sync: int,
    chance: random.Random | None,
) -> None:
    before, after = folder / "before", folder / "after"

    async def main() -> None:
        people = Gathering()
        after.mkdir(mode=0o700)
        outage = Outage(people, after, chance)
        opened = partial(SqliteStore.open, vfs=outage.disk.name)
        with monkeypatch.context() as patched:
            patched.setattr(SqliteStore, "open", opened)
            await talk_until_dark(people, before, outage, at_sync)
        shutil.copy(before / "master.key", after)
        await check_after(people, after, outage)

    run(main())


@pytest.mark.requirement("room.durable")
@pytest.mark.parametrize("seed", few([None, 1, 2], 2))
def test_nothing_that_was_heard_is_lost_with_the_power(tmp_path, monkeypatch, seed):
    chance = None if seed is None else random.Random(seed)
    at_sync = 30 if chance is None else chance.randint(20, 60)
    lose_power(tmp_path, monkeypatch, at_sync, chance)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 100 + times(12)))
def test_it_holds_in_many_more_ways_to_lose_power(tmp_path, monkeypatch, seed):
    chance = random.Random(seed)
    lose_power(tmp_path, monkeypatch, chance.randint(10, 200), chance)
