"""The change of the master key, step by step, and what is left wherever it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.datafolder import Paths
from folkmoot.keys import (
    MasterKey,
    Replacement,
    format_key,
    fresh_key,
    load_master_key,
    make_key,
    read_key,
)
from folkmoot.operations import Caller, Services
from folkmoot.operations.dispatch import Dispatcher
from folkmoot.operations.table import OPERATOR
from folkmoot.rotation import KeyRing
from folkmoot.store import SqliteStore, find_faults
from folkmoot.telemetry.redaction import redactor
from folkmoot.vault import Vault

pytestmark = pytest.mark.requirement("rest.rotate-master")

SECRET = b"what was sealed before"


class Opened:
    """A data folder with its vault, as a hub has it."""

    def __init__(self, paths: Paths, store: SqliteStore, vault: Vault, given: str | None) -> None:
        self.paths = paths
        self.store = store
        self.vault = vault
        self.ring = KeyRing(store, vault, paths.master_key, given)

    def key(self) -> MasterKey:
        return read_key(self.paths.master_key)

    async def openers(self) -> tuple[str, ...]:
        return (await self.store.info()).opened_by


@asynccontextmanager
async def opened(folder: Path, given: MasterKey | None = None) -> AsyncIterator[Opened]:
    """Open a data folder as a start does; what was sealed in it before must open."""
    paths = Paths(folder)
    text = format_key(given) if given else None
    key = load_master_key(paths.master_key, given=text, database_exists=paths.database_exists())
    store = await SqliteStore.open(paths.database)
    try:
        vault = await Vault.load(store, key)
        sealed = folder / "sealed"
        if sealed.exists():
            assert vault.open("subject", "row", sealed.read_text()) == SECRET
        else:
            sealed.write_text(vault.seal("subject", "row", SECRET))
        yield Opened(paths, store, vault, text)
    finally:
        await store.close()


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opened(tmp_path) as made:
        yield made


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith("folkmoot.db")}


async def test_a_new_key_takes_the_place_of_the_old_which_is_kept_for_backups(tmp_path):
    async with opened(tmp_path) as hub:
        old = hub.key()
        changed = await hub.ring.rotate()
        new = hub.key()
        assert (changed.old, changed.new, changed.settled) == (old.id, new.id, True)
        assert await hub.openers() == (new.id,)
        assert hub.vault.master_id == hub.ring.key_id == new.id
    kept = tmp_path / f"master.key.{old.id}.old"
    assert changed.kept == str(kept)
    assert read_key(kept).id == old.id
    assert names(tmp_path) == {"master.key", kept.name, "sealed"}
    async with opened(tmp_path):
        pass
    with pytest.raises(e.KeyMismatch):
        async with opened(tmp_path, given=old):
            pass


async def test_the_old_key_is_kept_where_it_is_wanted_or_nowhere(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    async with opened(folder) as hub:
        old = hub.key()
        assert (await hub.ring.rotate(keep=tmp_path / "old.key")).kept == str(tmp_path / "old.key")
        assert read_key(tmp_path / "old.key").id == old.id
        second = hub.key()
        with pytest.raises(e.KeyUnusable, match="already exists"):
            await hub.ring.rotate(keep=tmp_path / "old.key")
        assert hub.key().id == second.id
        assert await hub.openers() == (second.id,)
        assert (await hub.ring.rotate(discard=True)).kept is None
        assert names(folder) == {"master.key", "sealed"}


async def test_a_key_that_the_operator_gives_is_the_new_one(tmp_path):
    mine = fresh_key()
    async with opened(tmp_path) as hub:
        await hub.ring.rotate(mine.secret().hex())
        assert hub.key().id == mine.id
        with pytest.raises(e.CommandInvalid, match="is already in use"):
            await hub.ring.rotate(format_key(mine))
        with pytest.raises(e.KeyUnusable, match="is not a master key") as caught:
            await hub.ring.rotate("hunter2-hunter2")
        assert "hunter2" not in caught.value.message
    for text in (mine.secret().hex(), format_key(mine)):
        assert text not in redactor.redact(f"The text {text} was said.")


async def prepared(hub: Opened, new: MasterKey) -> None:
    Replacement(hub.paths.master_key, new)


async def admitted(hub: Opened, new: MasterKey) -> None:
    Replacement(hub.paths.master_key, new)
    await hub.vault.admit(hub.store, new)


async def published(hub: Opened, new: MasterKey) -> None:
    await hub.vault.admit(hub.store, new)
    Replacement(hub.paths.master_key, new).publish()


async def settled(hub: Opened, new: MasterKey) -> None:
    await published(hub, new)
    await hub.vault.settle_on(hub.store, new)


# How far a change has come, and whose the database is when a hub starts then.
STEPS = {prepared: "old", admitted: "old", published: "new", settled: "new"}


@pytest.mark.parametrize("step", STEPS)
async def test_wherever_a_change_stops_the_key_in_the_file_opens_and_is_the_only_one(
    tmp_path, step
):
    keys = {"old": make_key(tmp_path / "master.key"), "new": fresh_key()}
    async with opened(tmp_path) as hub:
        await step(hub, keys["new"])
    async with opened(tmp_path) as hub:
        assert hub.key().id == keys[STEPS[step]].id
        assert await hub.openers() == (hub.key().id,)
        await hub.ring.rotate()
    async with opened(tmp_path) as hub:
        assert await hub.openers() == (hub.key().id,)


async def test_a_change_that_stopped_in_a_hub_that_goes_on_is_ended_by_the_next_one(hub):
    await published(hub, fresh_key())
    between = hub.key()
    changed = await hub.ring.rotate()
    assert changed.old == between.id
    assert await hub.openers() == (changed.new,)


async def test_a_key_file_that_is_not_the_databases_own_is_not_replaced(hub):
    own = hub.key()
    hub.paths.master_key.unlink()
    with pytest.raises(e.KeyUnusable, match="is missing"):
        await hub.ring.rotate()
    stranger = make_key(hub.paths.master_key)
    with pytest.raises(e.KeyMismatch):
        await hub.ring.rotate()
    assert hub.key().id == stranger.id
    assert await hub.openers() == (own.id,)


def fail(*_: object) -> None:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("os.fsync", e.KeyUnusable),
        ("pathlib.Path.replace", e.KeyUnusable),
        ("folkmoot.store.store.sync", e.DiskFailed),
        ("folkmoot.keys.sync_folder", e.KeyUnusable),
    ],
)
async def test_a_disk_that_fails_leaves_the_old_key_in_place_and_nothing_else(
    tmp_path, monkeypatch, broken, error
):
    async with opened(tmp_path) as hub:
        old = hub.key()
        with monkeypatch.context() as patched:
            patched.setattr(broken, fail)
            with pytest.raises(error):
                await hub.ring.rotate()
        assert hub.key().id == old.id
        assert names(tmp_path) == {"master.key", "sealed"}
        assert await hub.openers() == (old.id,)
        await hub.ring.rotate()
    async with opened(tmp_path):
        pass


def unusable(_: Replacement) -> None:
    raise e.KeyUnusable("The folder cannot be synced.")


@pytest.mark.parametrize("outcome", ["old", "new"])
async def test_a_new_name_that_a_power_cut_may_undo_leaves_both_keys_open(
    tmp_path, monkeypatch, outcome
):
    async with opened(tmp_path) as hub:
        old = hub.key()
        with monkeypatch.context() as patched:
            patched.setattr(Replacement, "sync", unusable)
            with pytest.raises(e.CommandFailed, match="the next start ends the change"):
                await hub.ring.rotate()
        new = hub.key()
        assert new.id != old.id
        assert set(await hub.openers()) == {old.id, new.id}
    if outcome == "old":
        (tmp_path / f"master.key.{old.id}.old").replace(tmp_path / "master.key")
    async with opened(tmp_path) as hub:
        assert await hub.openers() == (old.id if outcome == "old" else new.id,)


async def test_one_change_at_a_time(hub):
    outcomes = await asyncio.gather(*(hub.ring.rotate() for _ in range(4)), return_exceptions=True)
    refused = [it for it in outcomes if isinstance(it, e.CommandFailed)]
    assert len(refused) == 3
    assert "is already being rotated" in refused[0].message
    assert await hub.openers() == (hub.key().id,)
    await hub.ring.rotate()


async def test_whoever_hangs_up_in_the_middle_finds_the_change_done(hub):
    for patience in range(12):
        old = hub.key()
        rotating = asyncio.ensure_future(hub.ring.rotate(discard=True))
        for _ in range(patience):
            await asyncio.sleep(0)
        # A loop that had to wait may find it done.
        is_done = rotating.done()
        rotating.cancel()
        await asyncio.wait([rotating])
        assert rotating.cancelled() is not is_done
        assert await hub.openers() == (hub.key().id,)
        assert (hub.key().id != old.id) is (patience > 0)


async def test_a_backup_made_at_any_moment_of_a_change_opens_with_a_key_that_was_there(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()

    def put_back(backup: Path, place: Path) -> Path:
        place.mkdir()
        backup.rename(place / "folkmoot.db")
        (place / "sealed").write_text((folder / "sealed").read_text())
        return place

    async with opened(folder) as hub:
        keys = {hub.key().id: hub.key()}
        for number in range(10):
            target = tmp_path / f"{number}.db"
            rotating = asyncio.ensure_future(hub.ring.rotate(discard=True))
            for _ in range(number):
                await asyncio.sleep(0)
            made = await hub.store.backup(target)
            await rotating
            keys[hub.key().id] = hub.key()
            assert find_faults(target) == []
            assert made.master_key_id in keys
            place = put_back(target, tmp_path / str(number))
            async with opened(place, given=keys[made.master_key_id]):
                pass


async def test_a_key_of_the_environment_is_awaited_until_a_start_brings_it(tmp_path):
    first, second, third = fresh_key(), fresh_key(), fresh_key()
    async with opened(tmp_path, given=first) as hub:
        with pytest.raises(e.CommandInvalid, match="only you can change"):
            await hub.ring.rotate()
        changed = await hub.ring.rotate(format_key(second))
        assert (changed.old, changed.new) == (first.id, second.id)
        assert (changed.settled, changed.kept, changed.withdrawn) == (False, None, None)
    async with opened(tmp_path, given=first) as hub:
        assert set(await hub.openers()) == {first.id, second.id}
        changed = await hub.ring.rotate(format_key(third))
        assert changed.withdrawn == second.id
    with pytest.raises(e.KeyMismatch):
        async with opened(tmp_path, given=second):
            pass
    async with opened(tmp_path, given=third) as hub:
        assert await hub.openers() == (third.id,)
    assert names(tmp_path) == {"sealed"}


async def test_a_key_that_is_awaited_can_be_given_up(tmp_path):
    first, second = fresh_key(), fresh_key()
    async with opened(tmp_path, given=first) as hub:
        with pytest.raises(e.CommandInvalid, match="nothing to cancel"):
            await hub.ring.cancel()
        await hub.ring.rotate(format_key(second))
        assert await hub.ring.cancel() == second.id
        assert await hub.openers() == (first.id,)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("folkmoot/key", {"more": 1}),
        ("folkmoot/rotate_key", {"new": 5}),
        ("folkmoot/rotate_key", {"keep": "relative"}),
        ("folkmoot/rotate_key", {"keep": "/tmp/a\0b"}),
        ("folkmoot/rotate_key", {"more": 1}),
        ("folkmoot/cancel_rotation", {"more": 1}),
    ],
)
async def test_wrong_arguments_are_refused_and_change_nothing(hub, operation, arguments):
    row = next(row for row in OPERATOR if row.name == operation)
    old = hub.key()
    dispatcher = Dispatcher(Services(key_ring=hub.ring))
    with pytest.raises((e.CommandInvalid, e.ArgumentInvalid)):
        await dispatcher.perform(row, arguments, Caller(operator=True))
    assert hub.key().id == old.id
    assert await hub.openers() == (old.id,)
