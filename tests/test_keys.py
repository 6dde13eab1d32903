from __future__ import annotations

import base64
import os
import pickle
import re
import resource
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.datafolder import DataFolder
from folkmoot.keys import (
    MasterKey,
    Replacement,
    check_key,
    format_key,
    load_master_key,
    make_key,
    parse_key,
    put_key,
    read_key,
    spellings,
)

SECRET = bytes(range(32))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a data folder has its key."""
    return tmp_path / "master.key"


def load(file: Path, *, given: str | None = None, database_exists: bool = False) -> MasterKey:
    return load_master_key(file, given=given, database_exists=database_exists)


@pytest.mark.requirement("key.file-made-at-first-start")
def test_the_first_start_makes_a_private_key_file_that_later_starts_read(file, tmp_path):
    key = load(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load(file, database_exists=True).secret() == key.secret()
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]


@pytest.mark.requirement("key.not-beside-existing-database")
def test_a_key_is_never_made_beside_an_existing_database(tmp_path):
    with pytest.raises(e.KeyUnusable, match="is missing, and the database"):
        load(tmp_path / "master.key", database_exists=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        SECRET.hex(),
        SECRET.hex().upper(),
        base64.urlsafe_b64encode(SECRET).decode(),
        base64.urlsafe_b64encode(SECRET).decode().rstrip("="),
        f"  {SECRET.hex()}\n",
    ],
)
def test_a_key_may_be_given_in_hexadecimal_or_base64url(tmp_path, text):
    assert load(tmp_path / "master.key", given=text, database_exists=True).secret() == SECRET
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("key.malformed")
@pytest.mark.parametrize(
    "text",
    ["", "hunter2-hunter2", "00" * 31, "00" * 33, "é" * 43, "*" * 43, "A" * 44, "A" * 43 + "=="],
)
def test_what_is_no_key_is_refused_without_being_repeated(file, tmp_path, text):
    with pytest.raises(e.KeyUnusable, match="FOLKMOOT_MASTER_KEY: is not a master key") as caught:
        load(tmp_path / "master.key", given=text)
    assert not text or text not in str(caught.value)
    file.touch(0o600)
    file.write_text(text)
    with pytest.raises(e.KeyUnusable, match="is not a master key") as caught:
        load(file)
    assert not text or text not in str(caught.value)


def test_a_key_that_is_given_wins_over_the_file(file):
    made = load(file)
    assert load(file, given=SECRET.hex()).id != made.id


@pytest.mark.requirement("key.file-permissions")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_key_file_that_others_may_use_is_refused_with_the_remedy(file, mode):
    make_key(file)
    file.chmod(mode)
    with pytest.raises(e.KeyUnusable, match=re.escape(f"Run: chmod 600 {file}")):
        load(file)


def test_what_is_not_a_file_is_refused_without_waiting(file, tmp_path):
    os.mkfifo(file, 0o600)
    with pytest.raises(e.KeyUnusable, match="is not a file"):
        load(file)
    file.unlink()
    file.mkdir(0o700)
    with pytest.raises(e.KeyUnusable):
        load(file)
    file.rmdir()
    file.symlink_to(tmp_path / "nowhere")
    with pytest.raises(e.KeyUnusable, match="cannot be read"):
        load(file)


def test_a_place_where_no_key_can_be_made_is_named(tmp_path):
    with pytest.raises(e.KeyUnusable, match="cannot be created: No such file or directory"):
        load(tmp_path / "missing" / "master.key")


def test_several_who_make_a_key_at_once_agree_on_one(file, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        ids = {key.id for key in pool.map(make_key, [file] * 8)}
    assert ids == {read_key(file).id}
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]


def test_the_id_of_a_key_is_stable_and_tells_keys_apart():
    assert MasterKey(SECRET).id == "eadb83f8efba1d51"
    assert MasterKey(SECRET[::-1]).id != "eadb83f8efba1d51"


def test_a_key_shows_nothing_but_its_id():
    key = MasterKey(SECRET)
    for shown in (repr(key), str(key), f"{key}"):
        assert shown == f"<MasterKey {key.id}>"
    with pytest.raises(TypeError):
        pickle.dumps(key)
    assert not hasattr(key, "__dict__")


def test_a_key_is_written_as_it_is_read():
    assert parse_key(format_key(MasterKey(SECRET)), "x").secret() == SECRET


def test_a_key_of_the_wrong_length_is_refused():
    with pytest.raises(e.KeyUnusable, match="32 bytes"):
        MasterKey(b"short")


def test_a_key_that_opens_nothing_is_refused_naming_it_and_those_that_do():
    key, other = MasterKey(SECRET), MasterKey(SECRET[::-1])
    check_key(key, [other.id, key.id])
    with pytest.raises(e.KeyMismatch, match=f"{key.id}.*{other.id}"):
        check_key(key, [other.id])


def test_every_spelling_that_is_read_as_a_key_can_be_hidden():
    key = MasterKey(SECRET)
    for text in spellings(key):
        assert parse_key(text, "x").secret() == SECRET
    assert {SECRET.hex(), format_key(key)} <= set(spellings(key))


def test_a_key_is_put_into_a_new_private_file_and_never_over_another(tmp_path):
    file = tmp_path / "copy"
    put_key(file, MasterKey(SECRET))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_key(file).secret() == SECRET
    with pytest.raises(e.KeyUnusable, match="already exists"):
        put_key(file, MasterKey(SECRET[::-1]))
    assert read_key(file).secret() == SECRET
    with pytest.raises(e.KeyUnusable, match="cannot be created: No such file"):
        put_key(tmp_path / "missing" / "copy", MasterKey(SECRET))


@pytest.mark.requirement("rest.rotate-master")
def test_a_replacement_changes_nothing_until_it_takes_the_place_of_the_file(file, tmp_path):
    old, new = make_key(file), MasterKey(SECRET)
    given_up = Replacement(file, new)
    assert read_key(file).id == old.id
    given_up.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]

    replacement = Replacement(file, new)
    replacement.publish()
    replacement.sync()
    replacement.discard()
    assert read_key(file).id == new.id
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]


@pytest.mark.requirement("rest.rotate-master")
def test_a_replacement_that_a_crash_left_is_removed_by_the_next_start(file, tmp_path):
    old = make_key(file)
    Replacement(file, MasterKey(SECRET))
    assert len(list(tmp_path.iterdir())) == 2
    DataFolder.open(tmp_path).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hub.lock", "master.key"]
    assert read_key(file).id == old.id


def test_a_key_file_that_is_a_link_is_not_replaced(tmp_path):
    secret, file = tmp_path / "secret", tmp_path / "master.key"
    key = make_key(secret)
    file.symlink_to(secret)
    with pytest.raises(e.KeyUnusable, match="is a link"):
        Replacement(file, MasterKey(SECRET))
    assert file.is_symlink()
    assert read_key(file).id == key.id
    assert len(list(tmp_path.iterdir())) == 2


def test_a_replacement_for_which_there_is_no_room_leaves_the_key_and_nothing_else(file, tmp_path):
    old = make_key(file)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, before[1]))
    try:
        with pytest.raises(e.KeyUnusable, match="cannot be replaced: File too large"):
            Replacement(file, MasterKey(SECRET))
        with pytest.raises(e.KeyUnusable, match="cannot be created: File too large"):
            put_key(tmp_path / "copy", old)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]
    assert read_key(file).id == old.id
