"""`folkmoot restore`: a backup in the place of a database, and nothing lost on the way."""

from __future__ import annotations

import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from folkmoot.app import Hub
from folkmoot.cli.output import ExitCode
from folkmoot.store import restore as restoring
from tests.apps import TABLES, connect, fill
from tests.cli.conftest import let_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a hub's data and a backup: alice is in both, bob came after the backup."""
    folder = tmp_path_factory.mktemp("hub")

    async def backed_up(hub: Hub) -> None:
        alice = (await hub.accounts.register("alice")).account
        await connect(hub.accounts, alice)
        await hub.store.write(lambda tx: fill(tx, alice.id))
        await hub.store.backup(folder / "monday.db", progress=None)
        await hub.accounts.register("bob")

    let_run(folder / ".folkmoot", backed_up)
    return folder


@pytest.fixture
def here(tmp_path: Path, made: Path) -> Path:
    """A copy of it where commands look by themselves."""
    shutil.copytree(made / ".folkmoot", tmp_path / ".folkmoot", copy_function=shutil.copy)
    shutil.copy(made / "monday.db", tmp_path / "monday.db")
    return tmp_path


def people(database: Path, read: str = "SELECT handle FROM users ORDER BY 1") -> list[str]:
    """Who is in a database, or what else is read, without the hub."""
    with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return [row[0] for row in connection.execute(read)]


def epoch(database: Path) -> list[str]:
    return people(database, "SELECT value FROM meta WHERE key = 'epoch'")


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob(".folkmoot/folkmoot.db.*.old"))


def test_a_backup_takes_the_databases_place_which_is_kept(cli, here):
    database = here / ".folkmoot/folkmoot.db"
    before = epoch(database)
    told = cli.says("restore", "monday.db", "--yes")
    (old,) = kept(here)
    assert f"The database as it was is {old};" in told
    assert [
        name for name in TABLES if people(database, f"SELECT count(*) FROM {name}") == [0]
    ] == []
    assert (people(database), people(old)) == (["alice"], ["alice", "bob"])
    assert epoch(database) != before
    assert people(here / "monday.db") == ["alice"]
    assert (database.stat().st_mode & 0o777, old.stat().st_mode & 0o777) == (0o600, 0o600)
    # Whatever came into the backup before it: sign-ins are gathered for a moment.
    assert cli("audit").out.split()[-3:] == ["database.restored", "operator", "monday.db"]
    assert cli("doctor").code == 0
    assert sorted(it.name for it in (here / ".folkmoot").iterdir() if it.name.startswith(".")) == []
    # And back again: nothing was lost.
    assert cli("restore", str(old), "--yes").code == 0
    assert people(database) == ["alice", "bob"]
    assert len(kept(here)) == 2


def test_a_running_hub_is_not_restored_over(start_hub, cli, here):
    hub = start_hub()
    told = "; stop it first. Nothing was changed."
    cli.fails("restore", "monday.db", "--yes", told=told, code=ExitCode.DATA)
    assert hub.stop().code == 0
    assert people(here / ".folkmoot/folkmoot.db") == ["alice", "bob"]
    assert kept(here) == []


def test_what_is_no_backup_or_has_no_key_changes_nothing(cli, here):
    (here / "text.db").write_text("Not a database at all.")
    with closing(apsw.Connection(str(here / "other.db"))) as connection:
        connection.execute("CREATE TABLE mine (x)")
    torn = (here / "monday.db").read_bytes()
    (here / "torn.db").write_bytes(torn[: len(torn) // 2])
    with closing(apsw.Connection(str(here / "newer.db"))) as connection:
        source = apsw.Connection(str(here / "monday.db"))
        with closing(source), connection.backup("main", source, "main") as copying:
            copying.step()
        connection.execute("INSERT INTO schema_migrations VALUES (999, 'x')")
    (here / "key").touch(0o600)
    (here / "key").write_text("ab" * 32)
    database = here / ".folkmoot/folkmoot.db"
    before = database.read_bytes()
    for arguments, told in (
        (("absent.db",), "absent.db: there is no such file."),
        (("text.db",), "not a database"),
        (("other.db",), "other.db: is not a Folkmoot database; it has other tables."),
        (("torn.db",), "damaged"),
        (("newer.db",), "newer.db: was written by another version of Folkmoot."),
        (("monday.db", "--key", "key"), "the backup needs "),
        (("monday.db",), "there is no terminal to ask for confirmation"),
    ):
        yes = () if told.startswith("there is no terminal") else ("--yes",)
        ran = cli("restore", *arguments, *yes)
        assert ran.code in {ExitCode.FAILED, ExitCode.USAGE}, (arguments, ran)
        assert told in ran.err, (arguments, ran)
        assert database.read_bytes() == before
        assert kept(here) == []


def test_an_older_key_that_was_kept_comes_back_with_its_backup(cli, here):
    folder = here / ".folkmoot"
    old = (folder / "master.key").read_text()
    assert cli("keys", "rotate-master").code == 0
    new = (folder / "master.key").read_text()
    assert "The master key in use is" in cli.says("restore", "monday.db", "--yes")
    assert (folder / "master.key").read_text() == old
    assert new in [key.read_text() for key in folder.glob("master.key.*.old")]
    assert cli("doctor").code == 0


def test_a_backup_and_its_key_make_a_hub_where_none_was(cli, here):
    (here / ".folkmoot/master.key").rename(here / "master.key")
    assert "give it with --key FILE." in cli("restore", "monday.db", "--data", "moved").err
    cli.says("restore", "monday.db", "--data", "moved", "--key", "master.key")
    assert people(here / "moved/folkmoot.db") == ["alice"]
    assert cli("doctor", "--data", "moved").code == 0


def test_what_a_killed_hub_wrote_last_is_kept_too(here):
    database = here / ".folkmoot/folkmoot.db"
    writer = apsw.Connection(str(database))
    writer.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    writer.execute("UPDATE users SET bio = 'The last word.'")
    for side in ("", "-wal", "-shm"):
        shutil.copy(f"{database}{side}", here / f"killed.db{side}")
    writer.close()
    (here / "new.db").write_bytes((here / "monday.db").read_bytes())
    old = restoring.put_in_place(here / "new.db", here / "killed.db")
    assert "The last word." in people(old, "SELECT bio FROM users")
    assert people(here / "killed.db") == ["alice"]
    assert not (here / "killed.db-wal").exists()


def test_a_damaged_database_is_kept_as_it_is(here):
    database = here / "bad.db"
    database.write_bytes(b"broken " * 1_000)
    Path(f"{database}-wal").write_bytes(b"its log")
    (here / "new.db").write_bytes((here / "monday.db").read_bytes())
    old = restoring.put_in_place(here / "new.db", database)
    assert old.read_bytes() == b"broken " * 1_000
    assert Path(f"{old}-wal").read_bytes() == b"its log"
    assert people(database) == ["alice"]


@pytest.mark.parametrize("step", range(1, 8))
def test_wherever_it_is_interrupted_both_databases_are_there(step, here, monkeypatch):
    database, staged = here / ".folkmoot/folkmoot.db", here / ".folkmoot/staged"
    staged.write_bytes((here / "monday.db").read_bytes())
    steps = 0

    def counted(what: Any) -> Any:
        def do(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == step:
                raise KeyboardInterrupt
            return what(*arguments, **options)

        return do

    for owner, name in (
        (Path, "replace"), (Path, "unlink"), (Path, "hardlink_to"),
        (restoring, "sync"), (restoring, "keep_one_file"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    with suppress(KeyboardInterrupt):
        restoring.put_in_place(staged, database)
    monkeypatch.undo()
    if people(database) == ["alice"]:
        (old,) = kept(here)
        assert people(old) == ["alice", "bob"]
    else:
        assert people(database) == ["alice", "bob"]
        assert people(staged) == ["alice"]
