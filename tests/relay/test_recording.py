"""Tapes one after the other: nothing is lost, doubled or told between two of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core.ports import Carried
from folkmoot.proxy.replay.script import Script
from folkmoot.proxy.tape import TapeRecorder, TapeSide, read_tape
from folkmoot.proxy.tape.file import numbered
from folkmoot.relay.recording import Recording, Rotation
from tests.clocks import StillClock
from tests.proxy.tape.talk import answer, call, said, words

WORDS = "The boat is ready."
STDIO = TapeSide("stdio")


def begun(folder: Path, *, best_effort: bool = False) -> Rotation:
    """Tapes of which each is full with one message."""
    recording = Recording(folder=folder, tape_bytes=1, best_effort=best_effort)
    return recording.begin(StillClock(), TapeSide("http"), TapeSide("hub"))


def test_every_message_is_on_one_tape(tmp_path):
    tapes, paths = begun(tmp_path), []
    for number in range(4):
        paths.append(tapes.tape.path)
        tapes.note(call(number, "echo"))
        tapes.commit()
    tapes.close()
    assert sorted({*paths, tapes.tape.path}) == sorted(tmp_path.glob("*.jsonl"))
    read = [read_tape(path) for path in paths]
    assert [[entry.message.id for entry in tape.entries] for tape in read] == [[0], [1], [2], [3]]
    assert [tape.end.reason for tape in read if tape.end] == ["continued"] * 4


@pytest.mark.requirement("proxy.record-no-secrets")
def test_mail_that_was_asked_for_on_one_tape_stays_out_of_the_next(tmp_path):
    tapes = begun(tmp_path)
    tapes.note(call(1, "msg/inbox"))
    tapes.commit()
    tapes.note(answer(1, words(json.dumps({"messages": [{"body": WORDS}]}))))
    second = tapes.tape.path
    tapes.commit()
    tapes.close()
    assert WORDS not in second.read_text()
    read = read_tape(second)
    assert (len(read.entries), read.correlations) == (1, [])


@pytest.mark.parametrize("best_effort", [False, True])
def test_where_no_next_tape_can_be_begun_the_present_one_goes_on(tmp_path, *, best_effort):
    folder = tmp_path / "tapes"
    tapes = begun(folder, best_effort=best_effort)
    path = tapes.tape.path
    folder.rename(tmp_path / "elsewhere")
    for number in range(3):
        tapes.note(call(number, "echo"))
        tapes.commit()
    assert tapes.tape.path == path
    (tmp_path / "elsewhere").rename(folder)
    tapes.note(call(3, "echo"))
    tapes.commit()
    assert tapes.tape.path != path
    tapes.close()
    assert len(read_tape(path).entries) == 4


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("talk.jsonl", "talk.2.jsonl"),
        ("talk.jsonl.zst", "talk.2.jsonl.zst"),
        ("talk.v1.jsonl", "talk.v1.2.jsonl"),
        ("talk", "talk.2"),
        ("talk.zst", "talk.2.zst"),
    ],
)
def test_the_second_tape_of_a_name_keeps_its_ending(name, second):
    assert numbered(Path(name), 1) == Path(name)
    assert numbered(Path("a", name), 2) == Path("a", second)


def test_a_name_that_another_takes_in_the_same_moment_is_passed_over(tmp_path, monkeypatch):
    seen = Path.is_file
    blind = {tmp_path / "t.jsonl"}

    def is_file(path: Path) -> bool:
        """Not there yet, the first time one looks."""
        if path in blind:
            blind.remove(path)
            return False
        return seen(path)

    (tmp_path / "t.jsonl").write_text("somebody's")
    monkeypatch.setattr(Path, "is_file", is_file)
    Recording(file=tmp_path / "t.jsonl", redact=False).begin(StillClock(), STDIO, STDIO).close()
    assert (tmp_path / "t.jsonl").read_text() == "somebody's"
    assert read_tape(tmp_path / "t.2.jsonl").entries == []


def tape_at(path: Path, *said: Carried, command: str = "server") -> TapeRecorder:
    """A tape of a proxy that was told this file, with this on it."""
    tape: Any = Recording(file=path).begin(StillClock(), STDIO, TapeSide("stdio", command))
    for each in said:
        tape.note(each)
    tape.commit()
    return tape


def recorded(path: Path, *said: Carried, command: str = "server") -> Path:
    tape = tape_at(path, *said, command=command)
    tape.close()
    return tape.path


DISCOVERY = (
    said({"id": 0, "method": "server/discover", "params": {}}),
    answer(0, {"supportedVersions": ["2026-07-28"]}),
)


@pytest.mark.requirement("proxy.record-discovery")
def test_a_client_that_starts_its_command_once_to_discover_it_records_one_tape(tmp_path):
    file = tmp_path / "tape.jsonl"
    assert recorded(file, *DISCOVERY) == file
    assert recorded(file, call(1, "echo"), answer(1, words("hi"))) == file
    assert list(tmp_path.iterdir()) == [file]
    tape = read_tape(file)
    assert tape.end is not None
    assert [entry.seq for entry in tape.entries] == [1, 2, 3, 4]
    calls = Script.of(tape.entries).calls
    assert [each.message.method for each in calls] == ["server/discover", "tools/call"]
    assert all(each.answered for each in calls)
    # Whatever has more on it is left alone, and so is what another server answered.
    assert recorded(file, *DISCOVERY) == numbered(file, 2)
    before = numbered(file, 2).read_bytes()
    assert recorded(file, call(1, "echo"), command="other") == numbered(file, 3)
    assert numbered(file, 2).read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3


def test_a_tape_that_is_still_recorded_on_is_left_alone(tmp_path):
    file = tmp_path / "tape.jsonl"
    tape = tape_at(file, *DISCOVERY)
    assert recorded(file, call(1, "echo")) == numbered(file, 2)
    tape.note(call(1, "echo"))
    tape.commit()
    tape.close()
    assert len(read_tape(file).entries) == 3
