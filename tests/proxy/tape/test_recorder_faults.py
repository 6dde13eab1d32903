"""A tape that cannot be written says so, and ends with a whole line."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from folkmoot.core import errors as e
from folkmoot.proxy.redaction import TapeRedactor
from folkmoot.proxy.tape import TapeRecorder, read_tape, redact_tape
from folkmoot.proxy.tape.file import LOOK_SECONDS
from tests.proxy.tape.strategies import opened, record
from tests.proxy.tape.talk import call

NAMES = ["tape.jsonl", "tape.jsonl.zst"]


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file grows beyond this size meanwhile, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", NAMES)
def test_on_a_full_disk_traffic_stops_and_the_tape_ends_with_a_whole_line(tmp_path, name):
    told: list[e.TapeUnwritable] = []
    tape = opened(tmp_path / name, on_failure=told.append)
    tape.note(call(1, "echo"))
    tape.commit()
    size = tape.path.stat().st_size
    with full_at(size + 50):
        for number in (2, 3):
            tape.note(call(number, "echo", text=os.urandom(200).hex()))
        with pytest.raises(e.TapeUnwritable, match="cannot be written: File too large"):
            tape.commit()
    assert tape.path.stat().st_size == size
    assert tape.failed
    assert len(told) == 1
    # Room that comes later does not undo that messages are missing.
    with pytest.raises(e.TapeUnwritable):
        tape.note(call(4, "echo"))
    with pytest.raises(e.TapeUnwritable):
        tape.commit()
    tape.close()
    read = read_tape(tape.path)
    assert ([entry.seq for entry in read.entries], read.cut, read.end) == ([1], False, None)


def test_lines_that_still_fit_are_kept(tmp_path):
    tape = opened(tmp_path / "tape", best_effort=True)
    tape.note(call(1, "echo"))
    tape.commit()
    line = tape.path.read_bytes().splitlines()[1]
    with full_at(tape.path.stat().st_size + 2 * len(line) + 10):
        for number in (2, 3, 4):
            tape.note(call(number, "echo"))
        tape.commit()
    assert [entry.seq for entry in read_tape(tape.path).entries] == [1, 2, 3]
    assert tape.dropped == 1


@pytest.mark.parametrize("name", NAMES)
def test_with_best_effort_messages_go_missing_and_are_counted(tmp_path, name):
    told: list[e.TapeUnwritable] = []
    tape = opened(tmp_path / name, best_effort=True, on_failure=told.append)
    number = 0

    def say() -> None:
        nonlocal number
        number += 1
        tape.note(call(number, "echo", text=os.urandom(200).hex()))
        tape.commit()

    say()
    with full_at(tape.path.stat().st_size + 50):
        for _ in range(3):
            say()
            assert tape.failed
    say()
    assert not tape.failed
    with full_at(tape.path.stat().st_size + 50):
        say()
    assert len(told) == 2
    say()
    tape.close()
    read = read_tape(tape.path)
    assert read.end.messages == len(read.entries)
    assert tape.dropped == number - len(read.entries)
    assert tape.dropped >= 2
    assert {1, 5, 7} <= {entry.seq for entry in read.entries}


@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_is_full_from_the_start_leaves_no_tape_or_one_that_comes_later(tmp_path, name):
    path = tmp_path / name
    with full_at(10):
        with pytest.raises(e.TapeUnwritable, match="cannot be written"):
            opened(path)
        assert not path.exists()
        tape = opened(path, best_effort=True)
        tape.note(call(1, "echo"))
        tape.commit()
    assert tape.dropped == 1
    tape.note(call(2, "echo"))
    tape.commit()
    assert read_tape(path).header.program == "p"
    assert [entry.seq for entry in read_tape(path).entries] == [2]


def test_an_end_that_cannot_be_written_is_said(tmp_path):
    tape = opened(tmp_path / "tape")
    with full_at(10), pytest.raises(e.TapeUnwritable):
        tape.close()
    assert not read_tape(tape.path).cut
    careless = opened(tmp_path / "other", best_effort=True)
    with full_at(10):
        careless.close()
    assert careless.failed


def test_a_folder_that_is_missing_or_no_folder_is_named(tmp_path):
    path = tmp_path / "none" / "tape"
    with pytest.raises(e.TapeUnwritable) as missing:
        opened(path, best_effort=True)
    assert missing.value.message == f"{path}: cannot be created: No such file or directory."
    (tmp_path / "file").touch()
    with pytest.raises(e.TapeUnwritable, match="Not a directory"):
        opened(tmp_path / "file" / "tape")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(e.TapeUnwritable, match="cannot be created: Permission denied"):
            opened(tmp_path / "tape")
    finally:
        tmp_path.chmod(0o700)


def test_a_redaction_for_which_there_is_no_room_leaves_nothing(tmp_path):
    source = record(tmp_path / "tape", [call(1, "echo", text="x" * 500)])
    with full_at(300), pytest.raises(e.TapeUnwritable):
        redact_tape(source, tmp_path / "out", TapeRedactor(b"k" * 32))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_tape_that_was_removed_cannot_be_written_for_long(tmp_path, name):
    tape = opened(tmp_path / name)
    tape.path.unlink()
    with pytest.raises(e.TapeUnwritable, match="The file was removed"):
        write_on(tape)
    tape.close()


def write_on(tape: TapeRecorder) -> None:
    ends = time.monotonic() + 60 * LOOK_SECONDS
    while time.monotonic() < ends:
        tape.note(call(1, "echo"))
        tape.commit()


def test_whoever_reads_the_log_is_told_where_the_file_is_and_a_client_is_not(tmp_path):
    told: list[e.TapeUnwritable] = []
    tape = opened(tmp_path / "tape.jsonl", on_failure=told.append)
    tape.note(call(1, "echo"))
    with full_at(10), pytest.raises(e.TapeUnwritable) as raised:
        tape.commit()
    assert str(tmp_path) in told[0].message
    assert str(tmp_path) not in raised.value.message
    assert tape.failed
    with pytest.raises(e.TapeUnwritable) as again:
        tape.note(call(2, "echo"))
    assert str(tmp_path) not in again.value.message
    tape.close()
