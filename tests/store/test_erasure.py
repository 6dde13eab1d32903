"""What was deleted cannot be found in the files of the database."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from folkmoot.core.ports import Tx, Unit
from folkmoot.store import SqliteStore, erasure
from tests.amounts import few
from tests.store.support import held, in_thread, insert, make_table, opened, rows, statement

# Seconds after which the write-ahead log is emptied, in place of half a minute.
SOON = 0.01


def secret(number: int) -> str:
    """A text that is found nowhere else, of a length that takes from a line to many pages."""
    chance = random.Random(number)
    return chance.randbytes(chance.choice([20, 200, 900, 9_000])).hex()


def remove(numbers: Iterable[int]) -> Unit[int]:
    async def unit(tx: Tx) -> int:
        gone = [await tx.execute("DELETE FROM notes WHERE id = ?", (each,)) for each in numbers]
        return sum(gone)

    return unit


def found(folder: Path, numbers: Iterable[int]) -> list[int]:
    """Which texts are in the files of a folder, in part at least."""
    raw = b"\n".join(file.read_bytes() for file in sorted(folder.iterdir()))
    parts = {number: (secret(number)[:32], secret(number)[-32:]) for number in numbers}
    return [number for number in parts if any(part.encode() in raw for part in parts[number])]


async def log_emptied(store: SqliteStore) -> None:
    log = store.path.with_name(store.path.name + "-wal")
    while log.stat().st_size:  # noqa: ASYNC110 - a file has no event to wait for
        await asyncio.sleep(0.005)


async def fill(store: SqliteStore, numbers: Iterable[int]) -> None:
    await store.write(make_table)
    await asyncio.gather(*(store.write(insert(each, secret(each))) for each in numbers))


@pytest.mark.requirement("store.erasure")
@pytest.mark.settings(empty_log_seconds=SOON)
async def test_what_was_deleted_is_in_no_file_once_the_log_is_emptied(store, tmp_path):
    await fill(store, range(200))
    await log_emptied(store)
    assert found(tmp_path, range(200)) == list(range(200))
    await store.write(remove(range(0, 200, 3)))
    await log_emptied(store)
    assert found(tmp_path, range(200)) == [n for n in range(200) if n % 3]
    assert store.stats().wal_pages == 0


@pytest.mark.requirement("store.erasure")
async def test_what_was_deleted_is_in_no_file_after_a_clean_stop(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store, range(100))
        await store.write(remove(range(50)))
        assert found(tmp_path, range(50))
    assert found(tmp_path, range(100)) == list(range(50, 100))


@pytest.mark.requirement("store.erasure")
async def test_what_a_killed_program_had_deleted_is_in_no_file_after_the_next_start(tmp_path):
    killed = tmp_path / "killed"
    running = tmp_path / "running"
    running.mkdir()
    async with opened(running) as store:
        await fill(store, range(100))
        await store.write(remove(range(50)))
        # What a program that is killed leaves are its files as they are.
        shutil.copytree(running, killed)
    assert found(killed, range(50))
    async with opened(killed):
        assert found(killed, range(100)) == list(range(50, 100))


def pages_in(log: Path, frames: int) -> set[int]:
    """The pages that a write-ahead log itself says it has."""
    raw = log.read_bytes()
    frame = 24 + int.from_bytes(raw[8:12])
    starts = range(32, 32 + frames * frame, frame)
    return {int.from_bytes(raw[start : start + 4]) for start in starts}


@contextmanager
def logging_pages(folder: Path) -> Iterator[tuple[apsw.Connection, erasure.PageCleaner, list[int]]]:
    """A database of small pages, its cleaner, and the frames of its log after each commit."""
    path = folder / "hub.db"
    path.touch()
    frames: list[int] = []
    cleaner = erasure.PageCleaner(path)
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("page_size", 512)
        connection.pragma("journal_mode", "WAL")
        connection.pragma("wal_autocheckpoint", 0)
        connection.set_wal_hook(lambda _connection, _name, pages: frames.append(pages) or 0)
        connection.execute("CREATE TABLE notes (text)")
        yield connection, cleaner, frames
    cleaner.close()


@pytest.mark.requirement("store.erasure")
def test_the_pages_to_clean_are_those_of_the_log_however_long_it_is(tmp_path):
    with logging_pages(tmp_path) as (connection, cleaner, frames):
        # The index of the log has 4,062 pages in its first block and 4,096 in each other one.
        for rows in (10, 3_000, 2_000, 6_000):
            with connection:
                connection.executemany("INSERT INTO notes VALUES (zeroblob(400))", [()] * rows)
            cleaner.note_log(frames[-1])
            assert cleaner._changed == pages_in(tmp_path / "hub.db-wal", frames[-1])
        assert frames[-1] > 4_062 + 4_096
        cleaner.log_is_empty()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        connection.execute("UPDATE notes SET text = 'new' WHERE rowid = 1")
        cleaner.note_log(frames[-1])
        assert cleaner._changed == pages_in(tmp_path / "hub.db-wal", frames[-1])


@pytest.mark.requirement("store.erasure")
def test_pages_are_noted_also_after_a_unit_that_was_undone_had_begun_the_log_anew(tmp_path):
    with logging_pages(tmp_path) as (connection, cleaner, frames):
        connection.pragma("cache_size", 10)
        connection.execute("INSERT INTO notes VALUES (zeroblob(9000))")
        cleaner.note_log(frames[-1])
        cleaner.log_is_empty()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        with suppress(ZeroDivisionError), connection:
            connection.executemany("INSERT INTO notes VALUES (zeroblob(400))", [()] * 200)
            _ = 1 / 0
        cleaner.note_log(frames[-1])
        assert cleaner._changed == set()
        connection.execute("INSERT INTO notes VALUES ('new')")
        cleaner.note_log(frames[-1])
        assert cleaner._changed == pages_in(tmp_path / "hub.db-wal", frames[-1])


@pytest.mark.requirement("store.erasure")
@pytest.mark.settings(empty_log_seconds=SOON)
async def test_a_reader_that_needs_the_log_delays_its_emptying_until_it_is_done(store, tmp_path):
    await fill(store, range(20))
    with closing(apsw.Connection(str(store.path))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM notes").fetchall()
        await store.write(remove(range(20)))
        async with held(in_thread(store)):
            await store.write(insert(1_000))
        assert found(tmp_path, range(20))
        reader.execute("ROLLBACK")
    await log_emptied(store)
    assert found(tmp_path, range(20)) == []


MAKE_WORDS = "CREATE TABLE words (key TEXT NOT NULL PRIMARY KEY, body TEXT NOT NULL)"


@pytest.mark.requirement("store.erasure")
@pytest.mark.parametrize("end", ["running", "stopped", "killed"])
@pytest.mark.parametrize("seed", few([3, 4, 5]))
async def test_rows_that_were_moved_between_pages_leave_no_copies(tmp_path, seed, end):
    """With `secure_delete` alone the first two leave one: SQLite does not clear where rows were."""
    chance = random.Random(seed)
    live: dict[str, str] = {}
    dead: dict[str, str] = {}
    folder = tmp_path / "running"
    folder.mkdir()

    def left(where: Path) -> list[str]:
        raw = b"\n".join(file.read_bytes() for file in where.iterdir())
        return [
            key
            for key, text in dead.items()
            if any(part.encode() in raw for part in (key, text[:24], text[-24:]))
        ]

    async def change(store: SqliteStore) -> None:
        new = {
            chance.randbytes(16).hex(): chance.randbytes(chance.choice([20, 50, 300, 1200])).hex()
            for _ in range(chance.randrange(30))
        }
        live.update(new)
        gone = chance.sample(sorted(live), int(len(live) * chance.choice([0, 0.1, 0.5, 0.95])))

        async def unit(tx: Tx) -> None:
            for row in new.items():
                await tx.execute("INSERT INTO words (key, body) VALUES (?, ?)", row)
            for key in gone:
                await tx.execute("DELETE FROM words WHERE key = ?", (key,))

        await store.write(unit)
        dead.update({key: live.pop(key) for key in gone})

    words = rows("SELECT key, body FROM words")
    soon = {"empty_log_seconds": SOON} if end == "running" else {}
    async with opened(folder, synchronous="normal", **soon) as store:
        await store.write(statement(MAKE_WORDS))
        for _ in range(30):
            await change(store)
        if end == "killed":
            shutil.copytree(folder, tmp_path / "killed")
        while end == "running" and left(folder):  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.005)
        assert dict(await store.read(words)) == live
    where = tmp_path / "killed" if end == "killed" else folder
    async with opened(where) as store:
        while left(where):
            assert end == "killed"
            await asyncio.sleep(0.005)
        assert dict(await store.read(words)) == live
        assert await store.check() == []
