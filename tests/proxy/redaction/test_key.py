"""The key of redaction."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.proxy.redaction import folder_key, own_key_file, redaction_key


def test_a_key_is_made_once_and_is_its_owners_alone(tmp_path):
    file = tmp_path / "deep" / "folder" / "key"
    key = redaction_key(file)
    assert len(key) == 32
    assert redaction_key(file) == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["key"]
    assert redaction_key(tmp_path / "other") != key
    file.chmod(0o640)
    with pytest.raises(e.KeyUnusable, match=f"Run: chmod 600 {file}"):
        redaction_key(file)


@pytest.mark.parametrize("content", ["", "zz", "ab" * 31, "ab" * 33, "é"])
def test_what_is_no_key_is_not_used_and_not_replaced(tmp_path, content):
    file = tmp_path / "key"
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(e.KeyUnusable, match="is not a key of redaction"):
        redaction_key(file)
    assert file.read_text() == content


def test_what_is_no_file_is_not_used(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "file").touch()
    for name, why in {
        "pipe": "is not a file",
        ".": "cannot be used: Is a directory",
        "file/key": "cannot be used: Not a directory",
    }.items():
        with pytest.raises(e.KeyUnusable, match=why):
            redaction_key(tmp_path / name)


def test_single_tapes_use_a_key_in_the_state_folder_and_those_of_a_folder_share_one(tmp_path):
    assert folder_key(tmp_path) == folder_key(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".redaction-key"]
    assert own_key_file({}, tmp_path) == tmp_path / ".local/state/folkmoot/redaction.key"
    given = {"XDG_STATE_HOME": "/var/state"}
    assert own_key_file(given, tmp_path) == Path("/var/state/folkmoot/redaction.key")
    assert own_key_file({"XDG_STATE_HOME": "here"}, tmp_path) == own_key_file({}, tmp_path)
