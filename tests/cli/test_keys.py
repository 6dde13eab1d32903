"""`folkmoot keys`: the master key, told by its id alone and changed whether a hub runs or not."""

from __future__ import annotations

import json
import stat
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from folkmoot.cli.output import ExitCode
from folkmoot.datafolder import DataFolder, Paths
from folkmoot.keys import (
    format_key,
    fresh_key,
    put_key,
    read_key,
)
from folkmoot.offline import opened
from folkmoot.settings import load
from folkmoot.store import inspect_database
from tests.cli.conftest import let_run
from tests.harness import run

VARIABLE = "FOLKMOOT_MASTER_KEY"


def opened_by(tmp_path: Path) -> tuple[str, ...]:
    """The ids of the keys that open the database."""
    return inspect_database(Paths(tmp_path / ".folkmoot").database).opened_by


@pytest.mark.requirement("rest.rotate-master")
@pytest.mark.requirement("key.backup-says-so")
def test_the_key_is_changed_while_no_hub_runs(cli, data):
    old = read_key(data / "master.key")
    ran = cli("keys", "rotate-master")
    new = read_key(data / "master.key")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines() == [
        f"The master key was rotated from {old.id} to {new.id}.",
        "The old key no longer opens the database.",
        f"The old key is kept in {data / f'master.key.{old.id}.old'}.",
    ]
    assert ran.err.startswith(
        f"folkmoot: warning: earlier backups open only with the old master key ({old.id})."
    )
    assert ran.err.count("\n") == 1
    for key in (old, new):
        assert format_key(key) not in ran.out + ran.err
    assert [file.name for file in data.glob("*.old")] == [f"master.key.{old.id}.old"]
    let_run(data)


@pytest.mark.long
@pytest.mark.requirement("rest.rotate-master")
@pytest.mark.requirement("key.backup-says-so")
def test_the_key_is_changed_while_a_hub_runs_and_the_old_one_opens_older_backups_alone(
    cli, start_hub, tmp_path
):
    hub = start_hub()
    data = tmp_path / ".folkmoot"
    old = read_key(data / "master.key")
    assert cli("backup", "before.db").code == 0
    ran = cli("keys", "rotate-master", "--json", "--keep-old", "old.key")
    assert ran.code == 0, ran.err
    new = read_key(data / "master.key")
    told = json.loads(ran.out)
    assert (told["old"], told["new"], told["settled"]) == (old.id, new.id, True)
    assert told["kept"] == str(tmp_path / "old.key")
    assert f"(id {new.id})" in cli("doctor", "--port", "0").out
    assert f"(id {new.id})" in cli("backup", "after.db").err
    stopped = hub.stop()
    said = stopped.out + stopped.err
    assert "the master key was rotated" in said
    for key in (old, new):
        assert format_key(key) not in said
        assert key.secret().hex() not in said
    for backup, right, wrong in (("before.db", old, new), ("after.db", new, old)):
        restored = tmp_path / backup.removesuffix(".db")
        restored.mkdir(mode=0o700)
        (tmp_path / backup).rename(restored / "folkmoot.db")
        given = {VARIABLE: format_key(wrong)}
        serve = ("serve", "--port", "0", "--data", str(restored))
        refused = cli.fails(*serve, told=wrong.id, code=ExitCode.DATA, **given)
        assert right.id in refused.err
        assert format_key(wrong) not in refused.err
        let_run(restored, **{VARIABLE: format_key(right)})


@pytest.mark.long
@pytest.mark.requirement("rest.rotate-master")
def test_a_key_in_the_environment_is_changed_by_a_start_with_the_new_one(cli, start_hub, tmp_path):
    old = fresh_key()
    before = {VARIABLE: format_key(old)}
    hub = start_hub(**before)
    told = "only you can change: have the new one put into a file with --to"
    cli.fails("keys", "rotate-master", told=told)
    # The command does not need the hub's environment.
    ran = cli("keys", "rotate-master", "--to", "new.key")
    assert ran.code == 0, ran.err
    new = read_key(tmp_path / "new.key")
    assert stat.S_IMODE((tmp_path / "new.key").stat().st_mode) == 0o600
    assert ran.out.splitlines() == [
        f"The database now opens with {old.id} and with {new.id}.",
        f"To finish, start the hub with the new key as {VARIABLE}.",
        "Until then it can be started with either key.",
        f"The new key is in {tmp_path / 'new.key'}.",
    ]
    assert set(opened_by(tmp_path)) == {old.id, new.id}
    hub.stop()
    # A restart with the old key loses nothing, and says what it waits for.
    again = start_hub(**before).stop()
    assert "a master key rotation is pending" in again.err
    assert new.id in again.err
    assert f"and a rotation to {new.id} is pending" in cli("doctor", "--port", "0", **before).out
    start_hub(**{VARIABLE: format_key(new)}).stop()
    assert opened_by(tmp_path) == (new.id,)
    late = cli.fails("serve", "--port", "0", told="", code=ExitCode.DATA, **before)
    assert format_key(old) not in late.err


@pytest.mark.requirement("rest.rotate-master")
def test_an_awaited_key_is_withdrawn_on_request(cli, tmp_path):
    old, new = fresh_key(), fresh_key()
    environ = {VARIABLE: format_key(old)}
    let_run(tmp_path / ".folkmoot", **environ)
    put_key(tmp_path / "new.key", new)
    assert cli("keys", "rotate-master", "--from", "new.key", **environ).code == 0
    assert set(opened_by(tmp_path)) == {old.id, new.id}
    assert cli("keys", "rotate-master", "--cancel", **environ).out == (
        f"The rotation to the master key {new.id} is cancelled. Only the present key opens the "
        "database.\n"
    )
    assert opened_by(tmp_path) == (old.id,)
    cli.fails("keys", "rotate-master", "--cancel", told="nothing to cancel", **environ)


def test_the_new_key_may_come_from_the_standard_input(cli, data):
    mine = fresh_key()
    ran = cli("keys", "rotate-master", "--from", "-", given=mine.secret().hex() + "\n")
    assert ran.code == 0, ran.err
    assert read_key(data / "master.key").id == mine.id
    told = "folkmoot: error: The standard input: is not a master key"
    wrong = {"given": "hunter2-hunter2", "told": told, "code": ExitCode.DATA}
    assert "hunter2" not in cli.fails("keys", "rotate-master", "--from", "-", **wrong).err
    assert read_key(data / "master.key").id == mine.id


@pytest.mark.parametrize("option", ["--to", "--keep-old"])
def test_no_file_is_written_over_and_nothing_is_changed_then(cli, data, option):
    before = (data / "master.key").read_bytes()
    (data.parent / "taken").write_text("mine")
    told = f"folkmoot: error: {data.parent / 'taken'}: already exists.\n"
    cli.fails("keys", "rotate-master", option, "taken", told=told, code=ExitCode.DATA)
    assert (data.parent / "taken").read_text() == "mine"
    assert (data / "master.key").read_bytes() == before
    assert opened_by(data.parent) == (read_key(data / "master.key").id,)


def test_a_copy_of_a_key_that_was_refused_is_not_left_behind(cli, data):
    key = (data / "master.key").read_bytes()
    (data / "master.key").chmod(0o644)
    cli.fails("keys", "rotate-master", "--to", "new.key", told="chmod 600", code=ExitCode.DATA)
    assert not (data.parent / "new.key").exists()
    assert (data / "master.key").read_bytes() == key


def test_a_folder_that_another_command_has_is_left_alone(cli, data):
    before = (data / "master.key").read_bytes()
    with DataFolder.open(data):
        cli.fails("keys", "rotate-master", told=f"error: {data}: is in use", code=ExitCode.DATA)
    assert (data / "master.key").read_bytes() == before


def test_a_key_kept_for_old_backups_that_others_may_read_is_a_problem(cli, data):
    assert cli("keys", "rotate-master").code == 0
    [kept] = data.glob("master.key.*.old")
    kept.chmod(0o644)
    ran = cli("doctor", "--port", "0")
    assert ran.code == ExitCode.FAILED
    assert f"{kept.name}: other users can read or write it" in ran.out


def test_other_commands_open_the_database_in_the_middle_of_a_change(cli):
    old, new = fresh_key(), fresh_key()
    folder = cli.folder / ".folkmoot"
    before = {VARIABLE: format_key(old)}
    let_run(folder, **before)
    put_key(cli.folder / "new.key", new)
    assert cli("keys", "rotate-master", "--from", "new.key", **before).code == 0

    async def open_with(environ: dict[str, str]) -> None:
        loaded = load(None, options={"data": str(folder)}, environ=environ)
        async with AsyncExitStack() as stack:
            await opened(loaded, Paths(folder), stack)

    run(open_with(before))
    assert cli("backup", "middle.db", **before).code == 0
    run(open_with({VARIABLE: format_key(new)}))


def test_on_a_terminal_the_change_is_told_in_lines_that_fit(cli, data):
    old = read_key(data / "master.key")
    seen = cli.shown("keys", "rotate-master", "--discard-old")
    assert f"The master key was rotated from {old.id} to " in seen
    assert "No copy of it was kept here" in seen
    assert list(data.glob("*.old")) == []
