from __future__ import annotations

import asyncio
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from folkmoot.store import SqliteStore, find_faults, inspect_database, inspection, read_identity
from folkmoot.store.meta import MASTER_KEY_ID, put
from tests.store.support import (
    Gate,
    all_notes,
    held,
    in_thread,
    insert,
    make_table,
    opened,
    rows,
    statement,
)

# Of four connections: one that writes, one of the loop, and two that read what takes long.
MAX_PAGES_BYTES = 20 * 1024 * 1024


async def test_the_database_and_its_side_files_are_private(tmp_path):
    previous = os.umask(0)
    try:
        async with opened(tmp_path):
            for name in ("folkmoot.db", "folkmoot.db-wal", "folkmoot.db-shm"):
                assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    finally:
        os.umask(previous)


@pytest.mark.requirement("store.survives-power-loss")
@pytest.mark.parametrize(("setting", "number"), [("full", 2), ("normal", 1)])
async def test_the_writer_syncs_as_the_setting_says(tmp_path, setting, number):
    async with opened(tmp_path, synchronous=setting) as store:
        expected = {"synchronous": number, "journal_mode": "wal", "foreign_keys": 1}
        for name, value in expected.items():
            assert await store.write(rows(f"PRAGMA {name}")) == [(value,)]


async def test_readiness_really_writes_and_reads(store):
    before = store.stats()
    await store.ready()
    after = store.stats()
    assert after.commits == before.commits + 1
    assert after.reads == before.reads + 1


@pytest.mark.parametrize("fault", ["failing", "full"])
async def test_a_hub_whose_disk_does_not_work_is_not_ready_until_it_does(store, disk, fault):
    await store.ready()
    setattr(disk, fault, True)
    with pytest.raises(e.StoreError):
        await store.ready()
    setattr(disk, fault, False)
    await store.ready()


async def test_a_hub_whose_database_was_removed_or_replaced_is_not_ready(store, tmp_path):
    store.path.rename(tmp_path / "elsewhere.db")
    with pytest.raises(e.DatabaseCorrupt, match="removed or replaced"):
        await store.ready()


async def test_a_file_that_is_no_database_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "folkmoot.db"
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(e.DatabaseCorrupt, match="The file is not a database") as caught:
        await SqliteStore.open(path)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    assert path.read_bytes() == b"Dear diary, " * 1000
    assert find_faults(path) != []
    with pytest.raises(e.DatabaseCorrupt):
        inspect_database(path)


async def test_damage_inside_a_database_is_found_by_the_check_and_by_whoever_reads_there(tmp_path):
    async with opened(tmp_path) as store:
        await store.write(make_table)
        await asyncio.gather(*(store.write(insert(n, "x" * 2000)) for n in range(100)))
        assert await store.check() == []
    content = bytearray(store.path.read_bytes())
    content[-4096 * 40 : -4096 * 8] = b"\xff" * 4096 * 32
    store.path.write_bytes(content)
    assert find_faults(store.path) != []
    async with opened(tmp_path) as damaged:
        with pytest.raises(e.DatabaseCorrupt, match="The database is damaged"):
            await damaged.read(rows("SELECT id, body FROM notes"))
        assert await damaged.check() != []


async def test_a_reference_to_nothing_is_found_by_the_check(store):
    await store.write(statement("CREATE TABLE parents (id BIGINT PRIMARY KEY)"))
    await store.write(statement("CREATE TABLE children (parent BIGINT REFERENCES parents (id))"))
    with apsw.Connection(str(store.path)) as careless:
        careless.execute("PRAGMA foreign_keys = OFF; INSERT INTO children VALUES (7)")
    careless.close()
    assert await store.check() == ["row 1 of children refers to nothing in parents"]


async def test_a_place_that_cannot_be_written_is_refused_and_named(tmp_path):
    for path in (tmp_path / "missing" / "folkmoot.db", tmp_path):
        with pytest.raises(e.DatabaseUnwritable, match=str(path)):
            await SqliteStore.open(path)


async def test_a_read_cannot_write(store):
    with pytest.raises(e.DatabaseUnwritable, match="may only be read"):
        await store.read(insert(1))
    assert await store.read(all_notes) == []


@pytest.mark.settings(queue=2, readers=1)
async def test_a_full_queue_of_reads_refuses_at_once(store):
    async with asyncio.TaskGroup() as tasks, held(in_thread(store)):
        for _ in range(2):
            tasks.create_task(store.read(all_notes, long=True))
        leaving = tasks.create_task(store.read(all_notes, long=True))
        leaving.cancel()
        await asyncio.sleep(0)
        with pytest.raises(e.StoreOverloaded, match="More than 2 reads"):
            await store.read(all_notes, long=True)
    assert store.stats().failed_reads == 0


async def test_a_read_sees_nothing_of_what_is_not_committed_nor_of_what_is_while_it_runs(store):
    writing, reading = Gate(), Gate()

    async def insert_slowly(tx: Tx) -> None:
        await insert(1)(tx)
        await writing.unit(tx)

    async def look_twice(tx: Tx) -> tuple[list[int], list[int]]:
        first = await all_notes(tx)
        await reading.unit(tx)
        return first, await all_notes(tx)

    async with asyncio.TaskGroup() as tasks:
        try:
            tasks.create_task(store.write(insert_slowly))
            await writing.entered()
            looking = tasks.create_task(store.read(look_twice, long=True))
            await reading.entered()
            writing.open()
            await store.write(insert(2))
            assert await store.read(all_notes) == [1, 2]
        finally:
            writing.open()
            reading.open()
    assert looking.result() == ([], [])


async def test_the_loop_goes_on_while_the_writer_and_every_reader_are_busy(tmp_path):
    async with (
        opened(tmp_path, readers=2) as store,
        held(store.write),
        held(in_thread(store)),
        held(in_thread(store)),
    ):
        before = store.stats()
        # Each tick would last as long as the store is held, if it held the loop.
        for _ in range(100):
            await asyncio.sleep(0)
        assert store.stats().commits == before.commits


@pytest.mark.settings(readers=2)
async def test_a_slow_read_does_not_hold_up_the_writer_or_the_other_readers(store):
    async with held(in_thread(store)):
        await store.write(insert(1))
        assert await store.read(all_notes) == [1]
        assert await store.read(all_notes, long=True) == [1]


async def test_a_new_database_has_an_identity_that_it_keeps(tmp_path):
    async with opened(tmp_path) as store:
        first = store.identity
        assert first.master_key_id is None
        await store.write(lambda tx: put(tx, MASTER_KEY_ID, "aaaa"))
    async with opened(tmp_path) as store:
        assert store.identity.database_id == first.database_id
        assert store.identity.epoch == first.epoch
        assert (await store.read(read_identity)).master_key_id == "aaaa"


async def test_what_can_be_told_of_a_database_is_the_same_whether_it_is_open_or_not(tmp_path):
    async with opened(tmp_path) as store:
        await store.write(lambda tx: put(tx, MASTER_KEY_ID, "aaaa"))
        running = await store.info()
        assert running.wal_size > 0
    stopped = inspect_database(store.path)
    for info in (running, stopped):
        assert info.schema == info.newest_schema >= 1
        assert info.master_key_id == "aaaa"
        assert info.engine == f"SQLite {apsw.sqlite_lib_version()}"
    assert stopped.size > 0


async def test_readiness_reads_back_what_it_wrote_and_nothing_else(store):
    forget = (
        "CREATE TRIGGER forget AFTER UPDATE ON health WHEN new.probe <> 'old' "
        "BEGIN UPDATE health SET probe = 'old'; END"
    )
    await asyncio.gather(*(store.ready() for _ in range(50)))
    await store.write(statement(forget))
    with pytest.raises(e.DatabaseCorrupt, match="cannot be read back"):
        await store.ready()


async def test_a_hub_whose_write_ahead_log_was_removed_or_replaced_is_not_ready(store, tmp_path):
    log = tmp_path / "folkmoot.db-wal"
    await store.ready()
    log.rename(tmp_path / "aside")
    with pytest.raises(e.DatabaseCorrupt, match="removed or replaced"):
        await store.ready()
    log.write_bytes(b"")
    with pytest.raises(e.DatabaseCorrupt, match="removed or replaced"):
        await store.ready()
    (tmp_path / "aside").rename(log)
    await store.ready()


@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_a_check_is_one_at_a_time_starves_nobody_and_can_be_stopped(
    tmp_path, monkeypatch, end
):
    checking = Gate()
    begun = []

    def slow(connection: apsw.Connection, limit: int) -> list[str]:
        begun.append(connection)
        checking.wait()
        endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        connection.execute(endless + "SELECT count(*) FROM n").fetchall()
        return []

    monkeypatch.setattr(inspection, "faults", slow)
    async with opened(tmp_path) as store:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        checks = [asyncio.ensure_future(store.check()) for _ in range(20)]
        await checking.entered()
        checking.open()
        await store.ready()
        assert len(begun) == 1
        for check in checks if end == "cancel" else checks[1:]:
            check.cancel()
        if end == "close":
            await store.close()
        results = await asyncio.gather(*checks, return_exceptions=True)
        expected = asyncio.CancelledError if end == "cancel" else e.StoreClosed
        assert isinstance(results[0], expected)
        assert len(begun) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["folkmoot.db"]


async def test_a_database_that_others_could_read_is_closed_to_them(tmp_path):
    async with opened(tmp_path) as store:
        await store.write(make_table)
    for mode in (0o644, 0o666):
        store.path.chmod(mode)
        async with opened(tmp_path):
            assert modes(tmp_path) == {0o600}


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


async def test_a_symbolic_link_in_the_place_of_the_database_is_refused(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("")
    victim.chmod(0o644)
    (tmp_path / "folkmoot.db").symlink_to(victim)
    with pytest.raises(e.DatabaseUnwritable, match="is a symbolic link"):
        await SqliteStore.open(tmp_path / "folkmoot.db")
    assert victim.read_text() == ""
    assert stat.S_IMODE(victim.stat().st_mode) == 0o644


@pytest.mark.settings(readers=2)
async def test_a_large_database_takes_no_more_memory_than_its_page_caches(store):
    async def fill(tx: Tx) -> None:
        for number in range(2_000):
            await insert(number, "x" * 6000)(tx)

    look = rows("SELECT sum(length(body)) FROM notes")
    await store.write(fill)
    await store.write(look)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(20):
            tasks.create_task(store.read(look, long=True))
    await store.read(look)
    assert apsw.memory_used() < MAX_PAGES_BYTES
