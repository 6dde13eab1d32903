"""A file is whole, whoever looks and whatever happens."""

from __future__ import annotations

import stat

import pytest

from folkmoot.staging import stage, staged


def test_what_is_staged_is_beside_the_file_and_takes_its_place(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("old")
    with staged(path, b"new", 0o640) as part:
        assert path.read_text() == "old"
        assert part.parent == tmp_path
        part.replace(path)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_not_put_in_place_is_removed(tmp_path):
    path = tmp_path / "settings.toml"
    with pytest.raises(ZeroDivisionError), staged(path, b"new"):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_a_file_that_nobody_gave_a_mode_is_its_owners_alone(tmp_path):
    assert stat.S_IMODE(stage(tmp_path / "token", b"x").stat().st_mode) == 0o600
