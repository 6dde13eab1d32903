from __future__ import annotations

import asyncio
import os
import resource
import stat
from contextlib import closing
from pathlib import Path
from threading import Event

import apsw
import pytest

from folkmoot.core import errors as e
from folkmoot.store import SqliteStore, backup, copy_database, find_faults
from folkmoot.store.meta import MASTER_KEY_ID, put
from tests.store.support import Gate, all_notes, insert, make_table, opened


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


async def fill(store: SqliteStore, count: int = 200) -> None:
    await store.write(make_table)
    await asyncio.gather(*(store.write(insert(number, "x" * 3000)) for number in range(count)))


@pytest.mark.requirement("store.backup")
async def test_a_backup_is_one_private_whole_file_with_everything_committed(tmp_path):
    target = tmp_path / "copy" / "backup.db"
    target.parent.mkdir()
    async with opened(tmp_path) as store:
        await fill(store)
        made = await store.backup(target)
    assert made.path == str(target)
    assert names(target.parent) == ["backup.db"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert find_faults(target) == []
    with closing(apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
        assert connection.execute("SELECT count(*) FROM notes").fetchall() == [(200,)]
    assert names(target.parent) == ["backup.db"]


@pytest.mark.requirement("store.backup")
async def test_writing_goes_on_while_a_backup_is_taken_and_it_is_one_view(tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "PAGES_A_STEP", 10)
    target = tmp_path / "backup.db"
    async with opened(tmp_path) as store:
        await fill(store)
        told: list[tuple[int, int]] = []
        copying = True

        async def write_on() -> int:
            number = 1000
            while copying:
                await store.write(insert(number, "x" * 3000))
                number += 1
            return number

        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(write_on())
            await store.backup(target, progress=lambda *pages: told.append(pages))
            copying = False
        assert writing.result() > 1000
        assert len(told) > 10
        assert told == sorted(told)
        assert {pages for _, pages in told} == {told[-1][0]}
        numbers = await store.read(all_notes)
    with closing(apsw.Connection(str(target))) as copy:
        kept = [number for (number,) in copy.execute("SELECT id FROM notes ORDER BY id")]
    assert kept == numbers[: len(kept)]
    assert len(kept) >= 200


async def test_a_restored_backup_is_the_same_database_in_a_new_epoch_each_time(tmp_path):
    async with opened(tmp_path) as store:
        original = store.identity
        await store.write(lambda tx: put(tx, MASTER_KEY_ID, "0123456789abcdef"))
        made = await store.backup(tmp_path / "backup.db")
    assert made.master_key_id == "0123456789abcdef"
    async with opened(tmp_path) as store:
        assert store.identity.epoch == original.epoch
    epochs = {original.epoch}
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "folkmoot.db").write_bytes((tmp_path / "backup.db").read_bytes())
        for _ in range(2):
            async with opened(folder) as restored:
                assert restored.identity.database_id == original.database_id
                assert restored.identity.master_key_id == "0123456789abcdef"
                epochs.add(restored.identity.epoch)
    assert len(epochs) == 3


async def test_a_file_that_is_there_is_replaced_only_when_asked(store, tmp_path):
    target = tmp_path / "backup.db"
    target.write_text("precious")
    with pytest.raises(e.BackupFailed, match="already exists"):
        await store.backup(target)
    assert target.read_text() == "precious"
    await store.backup(target, overwrite=True)
    assert find_faults(target) == []
    for _ in range(2):
        await store.backup(target, overwrite=True)


async def test_a_backup_that_cannot_be_written_says_why_and_leaves_nothing(tmp_path):
    async with opened(tmp_path) as store:
        with pytest.raises(e.BackupFailed, match="No such file or directory"):
            await store.backup(tmp_path / "missing" / "backup.db")
        (tmp_path / "file").write_text("")
        with pytest.raises(e.BackupFailed, match="Not a directory"):
            await store.backup(tmp_path / "file" / "backup.db")
    assert names(tmp_path) == ["file", "folkmoot.db"]


async def test_a_backup_that_is_cancelled_stops_and_leaves_nothing(store, tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "PAGES_A_STEP", 1)
    folder = tmp_path / "copy"
    folder.mkdir()
    await fill(store)
    begun = asyncio.Event()
    copying = asyncio.ensure_future(
        store.backup(folder / "backup.db", progress=lambda *_: begun.set())
    )
    await begun.wait()
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    assert names(folder) == []


async def test_a_backup_of_a_damaged_database_is_refused(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store)
    content = bytearray(store.path.read_bytes())
    content[4096 * 8 : 4096 * 30] = b"\xff" * 4096 * 22
    store.path.write_bytes(content)
    with pytest.raises(e.BackupFailed):
        copy_database(store.path, tmp_path / "backup.db")
    assert not [name for name in names(tmp_path) if "backup" in name]


async def test_two_backups_to_one_name_leave_one_whole_file(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store, 20)
        results = await asyncio.gather(
            *(store.backup(tmp_path / "backup.db") for _ in range(4)), return_exceptions=True
        )
    failures = [result for result in results if isinstance(result, e.BackupFailed)]
    assert len(failures) == 3
    assert find_faults(tmp_path / "backup.db") == []
    assert names(tmp_path) == ["backup.db", "folkmoot.db"]


@pytest.mark.requirement("store.backup")
@pytest.mark.parametrize("overwrite", [True, False])
async def test_no_file_of_the_data_folder_is_ever_the_target_whether_it_is_there_or_not(
    tmp_path, overwrite
):
    folder = tmp_path / "data"
    folder.mkdir()
    link = tmp_path / "link"
    link.symlink_to(folder)
    own = [f"folkmoot.db{side}" for side in ("", "-wal", "-shm", "-journal")]
    own += ["master.key", "master.key.0123456789abcdef.old", "hub.lock", "control.sock"]
    async with opened(folder) as store:
        (folder / "master.key").write_text("the only one")
        (folder / own[-3]).write_text("the one before")
        os.link(folder / "master.key", tmp_path / "same.key")
        before = {name: (folder / name).stat().st_ino for name in names(folder)}
        ways = (folder, link, folder / ".." / "data")
        for target in (*(way / name for way in ways for name in own), tmp_path / "same.key"):
            with pytest.raises(e.BackupFailed, match="data folder itself"):
                await store.backup(target, overwrite=overwrite)
        assert {name: (folder / name).stat().st_ino for name in names(folder)} == before
        assert (folder / "master.key").read_text() == "the only one"


async def test_only_a_regular_file_is_replaced(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "fifo")
    async with opened(tmp_path) as store:
        for name in ("link", "dangling", "fifo"):
            with pytest.raises(e.BackupFailed, match="not a regular file"):
                await store.backup(tmp_path / name, overwrite=True)
        for folder in (tmp_path, Path("/")):
            with pytest.raises(e.BackupFailed, match="is a folder"):
                await store.backup(folder, overwrite=True)
    assert (tmp_path / "precious").read_text() == "precious"
    assert names(tmp_path) == ["dangling", "fifo", "folkmoot.db", "link", "precious"]


async def test_a_backup_that_is_cancelled_in_its_last_check_is_stopped_and_never_published(
    tmp_path, monkeypatch
):
    folder = tmp_path / "copy"
    folder.mkdir()
    checking = Gate()

    def check(path: Path, *, stop: Event) -> list[str]:
        checking.wait()
        return find_faults(path, stop=stop)

    async with opened(tmp_path) as store:
        await fill(store)
        monkeypatch.setattr(backup, "find_faults", check)
        copying = asyncio.ensure_future(store.backup(folder / "backup.db"))
        await checking.entered()
        copying.cancel()
        await asyncio.sleep(0)
        checking.open()
        with pytest.raises(asyncio.CancelledError):
            await copying
    assert names(folder) == []


async def test_a_backup_of_a_database_at_rest_leaves_nothing_beside_it(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    told: list[list[str]] = []
    async with opened(folder) as store:
        await fill(store, 20)
    copy_database(
        folder / "folkmoot.db",
        tmp_path / "backup.db",
        progress=lambda *_: told.append(names(folder)),
    )
    assert told
    assert all(seen == ["folkmoot.db"] for seen in [*told, names(folder)])


async def test_a_database_that_comes_into_use_while_it_is_copied_is_copied_again(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store, 20)

    def interfere(*_: int) -> None:
        with closing(apsw.Connection(str(store.path))) as other:
            other.execute("INSERT OR REPLACE INTO notes VALUES (1000, 'late')").fetchall()

    todo = [interfere]
    target = tmp_path / "backup.db"
    copy_database(store.path, target, progress=lambda *pages: todo.pop()(*pages) if todo else None)
    with closing(apsw.Connection(str(target))) as copy:
        assert copy.execute("SELECT body FROM notes WHERE id = 1000").fetchall() == [("late",)]


async def test_a_backup_for_which_there_is_no_room_says_so_in_words(tmp_path):
    async with opened(tmp_path) as store:
        await fill(store)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(e.BackupFailed) as caught:
            copy_database(tmp_path / "folkmoot.db", tmp_path / "backup.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "disk" in caught.value.message
    assert "not an error" not in caught.value.message
    assert names(tmp_path) == ["folkmoot.db"]
