"""Tapes one after the other: nothing is lost, doubled or told between two of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from folkmoot.proxy.tape import Side, read_tape
from folkmoot.relay.recording import Recording, Rotation
from tests.proxy.tape.strategies import Watch
from tests.proxy.tape.talk import answer, call, words

WORDS = "The boat is ready."


def begun(folder: Path, *, most: int = 1, best_effort: bool = False) -> Rotation:
    recording = Recording(folder=folder, tape_bytes=most, best_effort=best_effort)
    tapes = recording.begin(Watch(), Side("http"), Side("hub"))
    assert isinstance(tapes, Rotation)
    return tapes


def test_every_message_is_on_one_tape(tmp_path: Path) -> None:
    tapes, paths = begun(tmp_path), []
    for number in range(4):
        paths.append(tapes.tape.path)
        tapes.note(call(number, "echo"))
        tapes.commit()
    tapes.close()
    assert sorted({*paths, tapes.tape.path}) == sorted(tmp_path.glob("*.jsonl"))
    read = [read_tape(path) for path in paths]
    assert [[entry.message.id for entry in tape.entries] for tape in read] == [[0], [1], [2], [3]]  # type: ignore[union-attr]
    assert [tape.end.reason for tape in read if tape.end] == ["continued"] * 4


@pytest.mark.requirement("proxy.record-no-secrets")
def test_mail_that_was_asked_for_on_one_tape_stays_out_of_the_next(tmp_path: Path) -> None:
    tapes = begun(tmp_path)
    tapes.note(call(1, "msg/inbox"))
    tapes.commit()
    tapes.note(answer(1, words(json.dumps({"messages": [{"body": WORDS}]}))))
    second = tapes.tape.path
    tapes.commit()
    tapes.close()
    assert WORDS not in second.read_text()
    read = read_tape(second)
    assert len(read.entries) == 1
    assert read.correlations == []


@pytest.mark.parametrize("best_effort", [False, True])
def test_where_no_next_tape_can_be_begun_the_present_one_goes_on(
    tmp_path: Path, *, best_effort: bool
) -> None:
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
