from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Tx, Unit
from folkmoot.store import SqliteStore, sqlite, writer
from tests.store.disk import Disk
from tests.store.support import Gate, all_notes, held, insert, make_table, opened, rows, statement


@pytest.mark.requirement("store.group-commit")
async def test_what_arrives_while_the_writer_is_busy_shares_one_commit(store):
    before = store.stats()
    async with asyncio.TaskGroup() as tasks, held(store.write):
        for number in range(50):
            tasks.create_task(store.write(insert(number)))
        await asyncio.sleep(0)
        assert store.stats().write_queue_depth == 50
    after = store.stats()
    assert after.units - before.units == 51
    assert after.commits - before.commits == 2
    assert await store.read(all_notes) == list(range(50))


@pytest.mark.requirement("store.group-commit", "store.answer-after-commit")
async def test_what_arrives_while_a_commit_runs_goes_into_the_next_one_and_the_loop_goes_on(
    tmp_path,
):
    disk = Disk()
    async with opened(tmp_path, vfs=disk.name) as store:
        await store.write(make_table)
        before = store.stats()
        syncing = Gate()
        disk.before_sync = syncing.wait
        async with asyncio.TaskGroup() as tasks:
            try:
                first = tasks.create_task(store.write(insert(0)))
                await syncing.entered()
                later = [tasks.create_task(store.write(insert(n))) for n in range(1, 51)]
                await asyncio.sleep(0)
                assert store.stats().write_queue_depth == len(later)
                assert await store.read(all_notes) == []
                assert not first.done()
            finally:
                syncing.open()
        assert store.stats().commits - before.commits == 2
        assert await store.read(all_notes) == list(range(51))


@pytest.mark.requirement("store.answer-after-commit")
async def test_a_caller_is_answered_only_after_its_own_commit(store):
    with closing(apsw.Connection(str(store.path))) as witness:
        for number in range(20):
            await store.write(insert(number))
            seen = witness.execute("SELECT max(id) FROM notes").fetchall()
            assert seen == [(number,)]


async def test_units_are_committed_in_the_order_in_which_they_came(store):
    answered: list[int] = []

    async def write(number: int) -> None:
        await store.write(insert(number))
        answered.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(2000):
            tasks.create_task(write(number))
    assert answered == list(range(2000))


async def test_a_unit_that_awaits_something_else_is_refused_with_a_clear_error(store):
    async def sleeper(tx: Tx) -> None:
        await all_notes(tx)
        await asyncio.sleep(0)

    async def writing_sleeper(tx: Tx) -> None:
        await insert(1)(tx)
        await sleeper(tx)

    for ask, unit in ((store.write, writing_sleeper), (store.read, sleeper)):
        with pytest.raises(e.UnitSuspended, match="nothing but its transaction"):
            await ask(unit)
    assert await store.read(all_notes) == []


async def test_even_a_unit_that_raises_what_ends_programs_does_not_end_the_writer(store):
    class EndOfProgram(BaseException):
        pass

    ends = (EndOfProgram, SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit)
    for kind in (*ends, StopIteration):

        def unit(tx: Tx, kind: type[BaseException] = kind):
            raise kind

        for ask in (store.write, store.read):
            with pytest.raises(RuntimeError, match=f"raised {kind.__name__}"):
                await ask(unit)
    await store.write(insert(1))
    assert store.stats().failed_units == len(ends) + 1
    assert await store.read(all_notes) == [1]


@pytest.mark.settings(queue=3, readers=1)
async def test_a_full_queue_refuses_at_once(store):
    async with asyncio.TaskGroup() as tasks, held(store.write):
        for number in range(3):
            tasks.create_task(store.write(insert(number)))
        await asyncio.sleep(0)
        with pytest.raises(e.StoreOverloaded, match="More than 3 writes"):
            await store.write(insert(99))
    assert await store.read(all_notes) == [0, 1, 2]


async def test_a_unit_whose_caller_left_before_it_began_is_dropped(store):
    async with asyncio.TaskGroup() as tasks, held(store.write):
        leaving = [tasks.create_task(store.write(insert(number))) for number in (1, 2)]
        staying = tasks.create_task(store.write(insert(3)))
        await asyncio.sleep(0)
        for task in leaving:
            task.cancel()
        await asyncio.sleep(0)
    assert staying.result() == 1
    assert await store.read(all_notes) == [3]


async def test_a_caller_who_leaves_while_its_unit_runs_breaks_nothing(store):
    gate = Gate()
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(store.write(gate.unit))
        await gate.entered()
        leaving.cancel()
        await asyncio.sleep(0)
        gate.open()
    assert leaving.cancelled()
    await store.write(insert(1))
    assert await store.read(all_notes) == [1]


async def test_closing_finishes_what_was_accepted_and_refuses_what_comes_after(tmp_path):
    store = await SqliteStore.open(tmp_path / "folkmoot.db")
    await store.write(make_table)
    async with asyncio.TaskGroup() as tasks:
        writes = [tasks.create_task(store.write(insert(number))) for number in range(500)]
        reads = [tasks.create_task(store.read(all_notes)) for _ in range(20)]
        await asyncio.sleep(0)
        closing_it = tasks.create_task(store.close())
        await asyncio.sleep(0)
        for ask, unit in ((store.write, insert(999)), (store.read, all_notes)):
            with pytest.raises(e.StoreClosed):
                await ask(unit)
    assert closing_it.done()
    assert [task.result() for task in writes] == [1] * 500
    assert all(isinstance(task.result(), list) for task in reads)
    assert names(tmp_path) == ["folkmoot.db"]
    await store.close()
    async with opened(tmp_path) as again:
        assert await again.read(all_notes) == list(range(500))


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.requirement("store.failing-unit-alone")
async def test_a_unit_for_which_the_disk_has_no_room_fails_alone(tmp_path, monkeypatch):
    async with opened(tmp_path) as store:
        await store.write(make_table)
        [(pages,)] = await store.write(rows("PRAGMA page_count"))
    limit = f"PRAGMA max_page_count = {pages + 20}"
    monkeypatch.setattr(sqlite, "COMMON_PRAGMAS", (*sqlite.COMMON_PRAGMAS, limit))
    async with opened(tmp_path) as store:
        async with asyncio.TaskGroup() as tasks, held(store.write):
            small = [tasks.create_task(store.write(insert(number))) for number in (1, 2)]
            large = tasks.create_task(outcome(store, insert(3, "x" * 1_000_000)))
            small += [tasks.create_task(store.write(insert(number))) for number in (4, 5)]
            await asyncio.sleep(0)
        assert isinstance(large.result(), e.DiskFull)
        assert [task.result() for task in small] == [1, 1, 1, 1]
        assert await store.read(all_notes) == [1, 2, 4, 5]
        assert store.stats().failed_units == 1


async def outcome(store: SqliteStore, unit) -> object:
    try:
        return await store.write(unit)
    except e.StoreError as error:
        return error


@pytest.mark.parametrize(("fault", "error"), [("failing", e.DiskFailed), ("full", e.DiskFull)])
async def test_when_a_commit_fails_everyone_in_it_is_told_and_nothing_is_half_there(
    tmp_path, fault, error
):
    disk = Disk()
    async with opened(tmp_path, vfs=disk.name) as store:
        await store.write(make_table)
        setattr(disk, fault, True)
        results = await asyncio.gather(*(outcome(store, insert(n)) for n in range(5)))
        assert {type(result) for result in results} == {error}
        assert len({id(result) for result in results}) == 5
        assert store.stats().failed_commits > 0
        setattr(disk, fault, False)
        assert await store.read(all_notes) == []
        await store.write(insert(7))
        assert await store.read(all_notes) == [7]
    async with opened(tmp_path) as again:
        assert await again.read(all_notes) == [7]


@pytest.mark.requirement("store.failing-unit-alone")
@pytest.mark.parametrize(("writes_first", "most_runs"), [(False, 1), (True, 2)])
async def test_units_that_fail_are_undone_alone_and_others_run_again_once_at_most(
    store, writes_first, most_runs
):
    runs: dict[int, int] = {}

    def good(number: int):
        async def unit(tx: Tx) -> int:
            runs[number] = runs.get(number, 0) + 1
            tx.publish("note.made", number)
            return await insert(number)(tx)

        return unit

    def bad(number: int):
        async def unit(tx: Tx) -> None:
            tx.publish("note.made", number)
            if writes_first:
                await tx.fetch("INSERT INTO notes VALUES (?, 'x') RETURNING id", (number,))
            await tx.fetch("SELECT id FROM notes")
            raise e.StatementFailed("refused")

        return unit

    heard: list[int] = []
    store.bus.listen("note.*", lambda event: heard.append(event.data))
    before = store.stats()
    async with asyncio.TaskGroup() as tasks, held(store.write):
        units = [bad(n) if n % 3 == 1 else good(n) for n in range(30)]
        ends = [tasks.create_task(outcome(store, unit)) for unit in units]
        await asyncio.sleep(0)
    kept = [number for number in range(30) if number % 3 != 1]
    assert await store.read(all_notes) == sorted(heard) == kept
    assert [type(end.result()) for end in ends[:3]] == [int, e.StatementFailed, int]
    assert set(runs) == set(kept)
    assert max(runs.values()) == most_runs
    assert store.stats().failed_units - before.failed_units == 10
    assert store.stats().commits - before.commits == 2


@pytest.mark.requirement("store.failing-unit-alone")
async def test_a_rule_that_is_checked_at_the_commit_fails_only_the_unit_that_broke_it(store):
    def reply(number: int) -> Unit[int]:
        return statement("INSERT INTO replies VALUES (?, ?)", number, number)

    replies = (
        "CREATE TABLE replies (id BIGINT PRIMARY KEY, note BIGINT NOT NULL "
        "REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED)"
    )
    await store.write(statement(replies))
    async with asyncio.TaskGroup() as tasks, held(store.write):
        good = [tasks.create_task(store.write(insert(number))) for number in (1, 2)]
        bad = tasks.create_task(outcome(store, reply(9)))
        good.append(tasks.create_task(store.write(reply(1))))
        await asyncio.sleep(0)
    assert isinstance(bad.result(), e.ConstraintViolated)
    assert [task.result() for task in good] == [1, 1, 1]


async def test_a_database_that_another_program_holds_is_an_error_and_then_works_again(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    async with opened(tmp_path) as store:
        await store.write(make_table)
        with closing(apsw.Connection(str(store.path))) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(e.DatabaseLocked):
                await store.write(insert(1))
        await store.write(insert(2))
        assert await store.read(all_notes) == [2]


async def test_the_write_ahead_log_stays_small_beside_readers_that_never_pause(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 20)
    monkeypatch.setattr(writer, "RESTART_PAGES", 100)
    async with opened(tmp_path) as store:
        await store.write(make_table)
        writing = True

        async def read() -> None:
            while writing:
                await store.read(all_notes)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(6):
                tasks.create_task(read())
            for number in range(300):
                await store.write(insert(number, "x" * 3000))
            writing = False
        stats = store.stats()
        assert stats.checkpoints > 0
        assert stats.failed_checkpoints == 0
        assert (await store.info()).wal_size < 600 * 4096  # of about 1,200 pages written


async def test_the_sizes_of_batches_are_counted(store):
    async with asyncio.TaskGroup() as tasks, held(store.write):
        for number in range(600):
            tasks.create_task(store.write(insert(number)))
        await asyncio.sleep(0)
    stats = store.stats()
    assert sum(stats.batch_sizes) == stats.commits
    assert stats.batch_sizes[-1] == 1
    assert stats.commit_seconds > 0


@pytest.mark.parametrize("step", ["_commit_batch", "_checkpoint"])
async def test_whatever_fails_in_the_writer_answers_everyone_and_it_goes_on(
    tmp_path, monkeypatch, step
):
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 0)
    async with opened(tmp_path) as store:
        await store.write(make_table)
        with monkeypatch.context() as patch:
            patch.setattr(writer.Writer, step, fail)
            outcomes = await asyncio.gather(*(outcome(store, insert(n)) for n in range(3)))
            await outcome(store, insert(3))
        expected = e.StatementFailed if step == "_commit_batch" else int
        assert all(isinstance(each, expected) for each in outcomes)
        await store.write(insert(4))
        assert 4 in await store.read(all_notes)
