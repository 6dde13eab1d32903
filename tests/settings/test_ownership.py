"""Files that others may write do not say what a hub runs."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.relay.upstream.settings_follower import SettingsFollower
from folkmoot.settings import GatewaySpec, load
from folkmoot.settings.files import is_private
from tests.settings.conftest import refused

STRANGER = 54_321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
BACKEND = '[backends.one]\ncommand = ["true"]\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(BACKEND)
    path.chmod(0o644)
    return path


def problem(file: Path) -> str:
    (told,) = refused(file, runs=True)
    return told


def test_a_settings_file_that_everyone_may_write_is_refused_with_the_chmod(file):
    file.chmod(0o646)
    assert problem(file) == f"{file}: can be written by others; run: chmod go-w {file}"
    # Commands that only look at it, and start nothing, are not concerned.
    assert load(file, environ={}).gateway.backends
    file.chmod(0o644)
    assert load(file, environ={}, runs=True).gateway.backends


@as_root
def test_a_group_may_write_it_only_if_it_is_the_owners_own(file):
    file.chmod(0o664)
    os.chown(file, 0, 0)
    assert load(file, environ={}, runs=True).gateway.backends
    os.chown(file, 0, STRANGER)
    assert "run: chmod go-w" in problem(file)
    # Users of containers often have no name, and a group of their own number.
    assert is_private(STRANGER, STRANGER)
    assert not is_private(0, STRANGER)


@as_root
def test_a_settings_file_of_another_user_is_refused_with_the_chown(file):
    os.chown(file, STRANGER, 0)
    assert problem(file) == (
        f"{file}: belongs to user {STRANGER}, who could make the hub run any program; "
        f"run: chown 0 {file}, or run the hub as that user"
    )


def test_a_file_in_a_folder_in_which_others_may_write_is_refused(file):
    file.parent.chmod(0o777)
    assert problem(file) == (
        f"{file}: could be replaced by others, who may write in its folder; "
        f"run: chmod go-w {file.parent}"
    )
    # As in /tmp: nobody can replace what is another's there.
    file.parent.chmod(0o1777)
    assert load(file, environ={}, runs=True).gateway.backends


def test_a_link_is_judged_by_where_it_is_and_where_it_leads(file, tmp_path):
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    link = open_folder / "config.toml"
    link.symlink_to(file)
    assert load(link, environ={}, runs=True).gateway.backends
    open_folder.chmod(0o777)
    assert "could be replaced by others" in problem(link)
    open_folder.chmod(0o755)
    file.chmod(0o666)
    assert "can be written by others" in problem(link)


def test_an_imported_file_is_judged_like_the_settings(file, tmp_path):
    servers = tmp_path / "mcp.json"
    servers.write_text('{"mcpServers": {"one": {"command": "true"}}}')
    servers.chmod(0o666)
    file.write_text(f'[gateway]\nmcp_servers = ["{servers}"]\n')
    assert problem(file) == f"{servers}: can be written by others; run: chmod go-w {servers}"
    servers.chmod(0o644)
    assert load(file, environ={}, runs=True).gateway.backends


def test_a_pipe_of_the_shells_is_taken_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o666)
    writing = threading.Thread(target=pipe.write_text, args=(BACKEND,))
    writing.start()
    assert load(pipe, environ={}, runs=True).gateway.backends
    writing.join()


async def test_a_running_hub_keeps_its_settings_when_others_may_write_the_file(file, caplog):
    applied: list[GatewaySpec] = []

    async def apply(spec: GatewaySpec) -> None:
        applied.append(spec)

    def change(mode: int, text: str | None = None) -> None:
        file.chmod(mode)
        if text is not None:
            file.write_text(text)

    following = SettingsFollower(load(file, environ={}, runs=True), apply)
    before = following._stamps()
    change(0o666)
    # The permissions alone are looked at too.
    assert following._stamps() != before
    change(0o666, '[backends.two]\ncommand = ["evil"]\n')
    with pytest.raises(e.SettingsError, match="can be written by others; run: chmod go-w"):
        await following.reload()
    assert applied == []
    change(0o600)
    await following.reload()
    assert [sorted(spec.backends) for spec in applied] == [["two"]]
    assert "the settings were not changed: " in caplog.text
