"""The settings file is written whole or not at all."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from folkmoot.cli.output import ExitCode
from folkmoot.core import errors as e
from folkmoot.settings import load
from folkmoot.settings.editing import edit

BACKEND = '[backends.abc]\nurl = "http://h/"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hub.toml"
    path.write_bytes("\ufeffport = 1\r\n".encode())
    path.chmod(0o640)
    return path


def test_what_is_written_keeps_the_mode_and_every_byte_that_was_there(file):
    changed = edit(load(file, environ={}), lambda text: text + BACKEND)
    assert list(changed.gateway.backends) == ["abc"]
    assert file.read_bytes() == "\ufeffport = 1\r\n".encode() + BACKEND.encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(file.parent.iterdir()) == [file]


def test_what_a_hub_would_not_read_is_not_written(file):
    before = file.read_bytes()
    with pytest.raises(e.SettingsError, match=r"hub.toml:2: unknown setting 'x'"):
        edit(load(file, environ={}), lambda text: f"{text}x = 1\n")
    edit(load(file, environ={}), lambda text: text + BACKEND, pretend=True)
    assert file.read_bytes() == before


def test_what_another_program_writes_meanwhile_is_not_undone(file, monkeypatch):
    def fsync(_: int) -> None:
        file.write_text("port = 2\n")

    monkeypatch.setattr("os.fsync", fsync)
    with pytest.raises(e.SettingsUnwritable, match="another program has just changed it"):
        edit(load(file, environ={}), lambda text: text + BACKEND)
    assert file.read_text() == "port = 2\n"
    assert list(file.parent.iterdir()) == [file]


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    (tmp_path / "in-the-way").write_text("")
    loaded = load(environ={"FOLKMOOT_DATA": str(tmp_path / "in-the-way")})
    with pytest.raises(e.SettingsUnwritable, match="cannot be written: not a directory"):
        edit(loaded, lambda text: text + BACKEND)


def test_what_others_may_write_is_not_run_and_every_command_that_would_says_so(cli):
    file = cli.folder / "hub.toml"
    file.write_text('[backends.none]\ncommand = ["false"]\n')
    file.chmod(0o666)
    told = "hub.toml: can be written by others; run: chmod go-w hub.toml"
    for command in (
        "serve --data data --config hub.toml",
        "config check hub.toml",
        "backends test none --config hub.toml",
        "backends add two --config hub.toml -- false",
    ):
        cli.fails(*command.split(), told=told, code=ExitCode.SETTINGS)
    assert not (cli.folder / "data").exists()
    doctor = json.loads(cli("doctor", "--config", "hub.toml", "--json").out)
    assert told in [each["text"] for each in doctor["findings"] if each["level"] == "problem"]
    assert cli("config", "show", "--config", "hub.toml").code == 0
    servers = cli.folder / "mcp.json"
    servers.write_text('{"mcpServers": {"two": {"command": "false"}}}')
    servers.chmod(0o666)
    ran = cli("backends", "add", "--from", "mcp.json", "--data", "other")
    assert "mcp.json: can be written by others; run: chmod go-w mcp.json" in ran.err
