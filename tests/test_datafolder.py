from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.datafolder import DataFolder, Paths, examine, running_hub


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def levels(folder: Path) -> dict[str, str]:
    return {finding.subject: finding.level for finding in examine(folder)}


@pytest.fixture(autouse=True)
def _open_mask() -> object:
    previous = os.umask(0)
    yield
    os.umask(previous)


def test_a_new_folder_and_the_parents_made_for_it_are_private(tmp_path):
    with DataFolder.open(tmp_path / "a" / "b") as folder:
        assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == 0o700
        assert mode(folder.paths.lock) == 0o600
        assert not folder.tightened


def test_a_folder_that_was_made_in_vain_is_removed(tmp_path):
    with DataFolder.open(tmp_path / "a" / "b"):
        pass
    assert list(tmp_path.iterdir()) == []
    with DataFolder.open(tmp_path / "a" / "b") as folder:
        folder.paths.master_key.write_text("key")
    with DataFolder.open(tmp_path / "a" / "b") as folder:
        folder.paths.master_key.unlink()
    assert (tmp_path / "a" / "b" / "hub.lock").exists()


def test_nobody_gets_a_lock_on_a_file_that_is_gone(tmp_path, monkeypatch):
    locked = fcntl.flock

    def lock(descriptor: int, flags: int) -> None:
        Paths(tmp_path).lock.unlink()
        locked(descriptor, flags)

    monkeypatch.setattr("folkmoot.datafolder.folder.fcntl.flock", lock)
    with pytest.raises(e.DataFolderInUse, match="was just removed"):
        DataFolder.open(tmp_path)


def test_the_things_in_it_have_fixed_names(tmp_path):
    paths = Paths(tmp_path)
    found = (paths.database, paths.master_key, paths.control_socket, paths.lock)
    assert [path.name for path in found] == [
        "folkmoot.db",
        "master.key",
        "control.sock",
        "hub.lock",
    ]
    assert not paths.database_exists()
    paths.database.write_bytes(b"")
    assert not paths.database_exists()
    paths.database.write_bytes(b"x")
    assert paths.database_exists()


def test_a_folder_that_others_could_read_is_closed_to_them(tmp_path):
    tmp_path.chmod(0o755)
    with DataFolder.open(tmp_path) as folder:
        assert folder.tightened
    assert mode(tmp_path) == 0o700


def test_a_second_hub_is_told_who_has_the_folder(tmp_path):
    with (
        DataFolder.open(tmp_path),
        pytest.raises(e.DataFolderInUse, match=rf"another hub \(process {os.getpid()}\)") as caught,
    ):
        DataFolder.open(tmp_path)
    assert caught.value.data == {"pid": os.getpid()}


def test_a_folder_can_be_taken_again_after_it_was_closed(tmp_path):
    for _ in range(2):
        folder = DataFolder.open(tmp_path)
        assert folder.paths.lock.read_text() == f"{os.getpid()}\n"
        assert running_hub(tmp_path) == os.getpid()
        folder.close()
        folder.close()
        assert running_hub(tmp_path) is None


def test_the_lock_of_a_killed_hub_is_free(tmp_path):
    program = (
        "import pathlib, sys, time\n"
        "from folkmoot.datafolder import DataFolder\n"
        "folder = DataFolder.open(pathlib.Path(sys.argv[1]))\n"
        "print('taken', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "taken\n"
        assert running_hub(tmp_path) == child.pid
        with pytest.raises(e.DataFolderInUse, match=str(child.pid)):
            DataFolder.open(tmp_path)
        child.kill()
    DataFolder.open(tmp_path).close()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(e.DataFolderUnwritable, match=re.escape(f"{file}: is not a folder.")):
        DataFolder.open(file)
    with pytest.raises(e.DataFolderUnwritable, match="Not a directory"):
        DataFolder.open(file / "below")
    assert levels(file)["data folder"] == "problem"


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "hub.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(e.DataFolderUnwritable, match=r"hub\.lock: cannot be opened"):
        DataFolder.open(tmp_path)
    assert not (tmp_path / "precious").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_where_we_may_not_write_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(e.DataFolderUnwritable, match="Permission denied"):
            DataFolder.open(tmp_path / "data")
        with pytest.raises(e.DataFolderUnwritable, match="cannot be written"):
            DataFolder.open(tmp_path)
        assert levels(tmp_path)["data folder"] == "problem"
        assert levels(tmp_path / "data")["data folder"] == "problem"
    finally:
        tmp_path.chmod(0o700)


def test_a_place_that_the_system_keeps_to_itself_is_refused():
    with pytest.raises(e.DataFolderUnwritable, match="cannot be created"):
        DataFolder.open(Path("/proc/folkmoot/data"))


def test_examining_a_folder_that_is_not_there_changes_nothing(tmp_path):
    assert set(levels(tmp_path / "a" / "b").values()) == {"ok"}
    assert not (tmp_path / "a").exists()


def test_examining_tells_what_is_open_to_others_and_how_to_mend_it(tmp_path):
    paths = Paths(tmp_path)
    paths.database.write_bytes(b"x")
    paths.master_key.write_text("key")
    for path, wide in ((tmp_path, 0o750), (paths.database, 0o640), (paths.master_key, 0o604)):
        path.chmod(wide)
    assert [(item.level, item.advice) for item in examine(tmp_path) if item.level != "ok"] == [
        ("warning", f"Run: chmod 700 {tmp_path}"),
        ("warning", f"Run: chmod 600 {paths.database}"),
        ("problem", f"Run: chmod 600 {paths.master_key}"),
    ]
    assert mode(tmp_path) == 0o750


def test_examining_tells_of_a_running_hub(tmp_path):
    with DataFolder.open(tmp_path):
        texts = [finding.text for finding in examine(tmp_path)]
        assert f"running, process {os.getpid()}" in texts
    assert "not running" in [finding.text for finding in examine(tmp_path)]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_lock_that_is_no_file_is_refused_without_waiting(tmp_path, make):
    tmp_path.chmod(0o700)
    make(tmp_path / "hub.lock")
    with pytest.raises(e.DataFolderUnwritable, match=r"hub\.lock: cannot be opened"):
        running_hub(tmp_path)
    with pytest.raises(e.DataFolderUnwritable, match=r"hub\.lock: cannot be opened"):
        DataFolder.open(tmp_path)
    assert levels(tmp_path)["hub"] == "problem"


def test_a_folder_in_the_place_of_the_database_is_refused(tmp_path):
    paths = Paths(tmp_path)
    paths.database.mkdir()
    with pytest.raises(e.DataFolderUnwritable, match=r"folkmoot\.db: is a folder"):
        paths.database_exists()


@pytest.mark.parametrize("us", [0, 4242])
def test_a_folder_of_another_user_is_refused_even_to_root(tmp_path, monkeypatch, us):
    owner = 65534 if os.geteuid() == 0 else os.geteuid()
    os.chown(tmp_path, owner, -1)
    monkeypatch.setattr(os, "geteuid", lambda: us)
    with pytest.raises(
        e.DataFolderUnwritable, match=f"belongs to user {owner}; run the hub as that"
    ):
        DataFolder.open(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert levels(tmp_path)["data folder"] == "problem"


def test_what_a_killed_maker_of_the_key_left_is_removed(tmp_path):
    (tmp_path / ".master.key.0a1b2c3d.part").write_text("half a key")
    (tmp_path / "kept.part").touch()
    with DataFolder.open(tmp_path):
        assert sorted(file.name for file in tmp_path.iterdir()) == ["hub.lock", "kept.part"]


def test_examining_what_may_not_be_seen_is_a_finding(tmp_path, monkeypatch):
    stat_of = Path.stat

    def guarded(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if self.is_relative_to(tmp_path / "closed" / "data"):
            raise PermissionError(13, "Permission denied", str(self))
        return stat_of(self, follow_symlinks=follow_symlinks)

    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(Path, "stat", guarded)
    assert levels(tmp_path / "closed" / "data") == {"data folder": "problem", "disk space": "ok"}


def test_examining_a_socket_does_not_fail(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Paths(tmp_path).control_socket))
        assert levels(tmp_path)["permissions"] == "warning"
