from __future__ import annotations

import asyncio
import math
import threading
from itertools import count, repeat

import apsw
import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from folkmoot.store import SqliteStore, loop_reader
from tests.store.support import (
    Gate,
    all_notes,
    in_thread,
    insert,
    make_table,
    opened,
    row,
    rows,
)

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
LONG = (
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
    "SELECT i FROM n"
)
ROWS = [(number,) for number in range(1, 20_001)]


@pytest.fixture(autouse=True)
def never_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing depend on how long this machine's disk takes."""
    monkeypatch.setattr(loop_reader, "SLOW_SECONDS", math.inf)


def in_loop() -> bool:
    return threading.current_thread() is threading.main_thread()


async def where(tx: Tx) -> bool:
    await tx.fetch("SELECT 1")
    return in_loop()


async def test_a_short_query_is_answered_in_the_loop(store):
    assert await store.read(where)
    stats = store.stats()
    assert (stats.reads, stats.loop_reads, stats.given_up_reads) == (1, 1, 0)


async def test_a_query_known_to_be_long_does_not_begin_in_the_loop(store):
    assert not await store.read(where, long=True)
    stats = store.stats()
    assert (stats.reads, stats.loop_reads, stats.given_up_reads) == (1, 0, 0)


async def test_a_query_that_would_never_end_moves_once_and_the_loop_goes_on(store):
    gate = Gate()
    places = []

    async def query(tx: Tx) -> object:
        places.append(in_loop())
        if in_loop():
            return await tx.fetch(ENDLESS)
        gate.wait()
        return await tx.fetch(LONG)

    reading = asyncio.create_task(store.read(query))
    await gate.entered()
    # Each turn would last as long as the query is held, if it held the loop.
    for _ in range(100):
        await asyncio.sleep(0)
        assert await store.read(where)
    gate.open()
    assert await reading == ROWS
    assert places == [True, False]
    stats = store.stats()
    assert (stats.reads, stats.loop_reads, stats.given_up_reads) == (101, 100, 1)
    assert stats.failed_reads == 0


async def test_the_steps_of_all_statements_of_a_query_count_together(store):
    async def query(tx: Tx) -> bool:
        for _ in range(1_000):
            await tx.fetch("SELECT id FROM notes ORDER BY id")
        return in_loop()

    for number in range(20):
        await store.write(insert(number))
    assert not await store.read(query)


async def test_a_short_query_is_never_given_up_for_what_others_used(store):
    for number in range(20):
        await store.write(insert(number))
    for _ in range(1_000):
        await store.read(all_notes)
    assert store.stats().given_up_reads == 0


async def test_a_query_that_catches_the_error_of_being_given_up_runs_anew_all_the_same(store):
    async def query(tx: Tx) -> object:
        try:
            return await tx.fetch(LONG)
        except e.StatementFailed:
            return "wrong"

    assert await store.read(query) == ROWS


async def test_a_query_that_meets_a_long_text_moves_to_a_thread(store):
    text = "x" * 100_000

    async def query(tx: Tx) -> tuple[object, bool]:
        try:
            return await tx.fetch_one("SELECT body FROM notes"), in_loop()
        except e.StatementFailed:
            return "wrong", in_loop()

    await store.write(insert(1, text))
    assert await store.read(query) == ((text,), False)
    assert await store.read(row("SELECT length(?)", text)) == (100_000,)
    assert store.stats().given_up_reads == 2
    assert await store.read(where)


async def test_giving_a_query_up_ends_its_view(tmp_path, monkeypatch):
    # Looked at after each step, also what ends the transaction would be given up.
    monkeypatch.setattr(loop_reader, "STEPS_A_LOOK", 1)
    monkeypatch.setattr(loop_reader, "LOOKS", 5_000)

    async def look(tx: Tx) -> tuple[bool, object]:
        return in_loop(), await tx.fetch_one("SELECT count(*) FROM notes")

    async with opened(tmp_path) as store:
        await store.write(make_table)
        for number in range(1, 5):
            await store.write(insert(number))
            assert await store.read(rows(LONG)) == ROWS
            assert store.stats().given_up_reads == number
            assert await store.read(look) == (True, (number,))


async def test_a_database_that_is_busy_is_left_to_a_thread_to_wait_for(store, disk):
    def busy_in_loop() -> None:
        if in_loop():
            raise apsw.BusyError

    await store.write(insert(1))
    disk.before_read = busy_in_loop
    assert await store.read(all_notes) == [1]
    assert store.stats().given_up_reads == 1
    disk.before_read = lambda: None
    assert await store.read(all_notes) == [1]
    assert store.stats().loop_reads == 1


async def test_a_disk_that_cannot_be_read_is_the_same_error_in_the_loop_and_in_a_thread(
    store, disk
):
    def fail() -> None:
        raise apsw.IOError

    await store.write(insert(1))
    disk.before_read = fail
    told = []
    for long in (False, True):
        with pytest.raises(e.DiskFailed) as caught:
            await store.read(all_notes, long=long)
        told.append(caught.value.message)
    assert told[0] == told[1]
    stats = store.stats()
    assert (stats.reads, stats.failed_reads, stats.given_up_reads) == (2, 2, 0)
    disk.before_read = lambda: None
    assert await store.read(all_notes) == [1]


async def test_a_unit_may_not_wait_for_a_query(store):

    async def nested(tx: Tx) -> bool:
        return await store.read(where)

    for ask in (store.read, in_thread(store), store.write):
        with pytest.raises(e.UnitSuspended):
            await ask(nested)
    assert await store.read(where)


async def test_a_caller_who_reads_without_a_pause_lets_others_have_their_turn(store):
    reading = True

    async def read() -> None:
        while reading:
            await store.read(where)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(read())
        for _ in range(50):
            await asyncio.sleep(0)
        reading = False


@pytest.mark.parametrize(
    ("blocks", "rests", "places"),
    [
        pytest.param(count(), 1e9, [True, False, False, False], id="slow disk"),
        pytest.param(count(), 0, [True, True, True, True], id="slow disk, rested"),
        pytest.param(repeat(7), 1e9, [True, True, True, True], id="slow machine"),
    ],
)
async def test_after_a_query_that_waited_long_for_the_disk_the_threads_read_for_a_while(
    tmp_path, monkeypatch, blocks, rests, places
):
    monkeypatch.setattr(loop_reader, "SLOW_SECONDS", 0)
    monkeypatch.setattr(loop_reader, "RESTS", rests)
    monkeypatch.setattr(loop_reader, "blocks_read", lambda: next(blocks))
    async with opened(tmp_path) as store:
        assert [await store.read(where) for _ in places] == places


async def test_a_query_is_refused_once_the_store_is_closed_wherever_it_would_run(tmp_path):
    store = await SqliteStore.open(tmp_path / "folkmoot.db")
    await store.close()
    for long in (False, True):
        with pytest.raises(e.StoreClosed):
            await store.read(where, long=long)
    assert [file.name for file in tmp_path.iterdir()] == ["folkmoot.db"]
