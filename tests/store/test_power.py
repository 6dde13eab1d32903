from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from folkmoot.store import SqliteStore, Synchronous, find_faults
from tests.amounts import times
from tests.store.disk import Disk
from tests.store.support import all_notes, insert, make_table, opened


async def write_and_lose_power(
    folder: Path, synchronous: Synchronous, chance: random.Random | None
) -> tuple[set[int], set[int]]:
    """What was acknowledged before the power failed, and what is there afterwards."""
    before, after = folder / "before", folder / "after"
    before.mkdir(parents=True)
    after.mkdir()
    disk = Disk()
    store = await SqliteStore.open(
        before / "folkmoot.db", synchronous=synchronous, vfs=disk.name, readers=1
    )
    await store.write(make_table)
    acknowledged: set[int] = set()
    dark = asyncio.Event()

    async def write(first: int) -> None:
        for number in range(first, first + 1000):
            if dark.is_set():
                break
            await store.write(insert(number, "x" * (number % 700)))
            acknowledged.add(number)
            if len(acknowledged) == 150:
                dark.set()
                disk.lose_power(after, chance)
                kept.update(acknowledged)

    kept: set[int] = set()
    async with asyncio.TaskGroup() as tasks:
        for writer in range(5):
            tasks.create_task(write(writer * 1000))
    await store.close()
    assert find_faults(after / "folkmoot.db") == []
    async with opened(after, synchronous=synchronous) as survivor:
        await survivor.write(make_table)
        return kept, set(await survivor.read(all_notes))


@pytest.mark.requirement("store.survives-power-loss", "store.answer-after-commit")
async def test_every_acknowledged_write_survives_a_loss_of_power(tmp_path):
    acknowledged, found = await write_and_lose_power(tmp_path, "full", None)
    assert len(acknowledged) == 150
    assert acknowledged <= found


MORE_SEEDS = [pytest.param(seed, marks=pytest.mark.long) for seed in range(3, times(20))]


@pytest.mark.requirement("store.survives-power-loss")
@pytest.mark.parametrize("seed", [*range(3), *MORE_SEEDS])
async def test_it_survives_whichever_of_the_unsynced_writes_reached_the_disk(tmp_path, seed):
    acknowledged, found = await write_and_lose_power(tmp_path, "full", random.Random(seed))
    assert acknowledged <= found


async def test_without_full_syncs_acknowledged_writes_are_lost_but_the_database_stays_whole(
    tmp_path,
):
    """What the setting costs; and the proof that this disk forgets."""
    acknowledged, found = await write_and_lose_power(tmp_path, "normal", None)
    assert not acknowledged <= found
