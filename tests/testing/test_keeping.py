"""What was recorded in a test ends on one tape."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from folkmoot.proxy.tape import read_tape
from folkmoot.testing.keeping import keep, recorded_in
from tests.proxy.replay.tapes import answers, asks, record


def test_several_tapes_become_one_that_is_numbered_through(tmp_path: Path) -> None:
    record(tmp_path / "b.jsonl", asks(1, "tools/list"), answers(1, {"of": 1}))
    record(tmp_path / "c.jsonl")
    record(tmp_path / "a.jsonl", asks(1, "tools/list"), answers(1, {"of": 2}))
    kept = tmp_path / "kept" / "it.jsonl"
    keep(recorded_in(tmp_path), kept)
    found = read_tape(kept)
    assert [entry.seq for entry in found.entries] == [1, 2, 3, 4]
    assert [(line.request, line.response) for line in found.correlations] == [(1, 2), (3, 4)]
    assert [e.message.result for e in found.entries[1::2]] == [{"of": 1}, {"of": 2}]  # type: ignore[union-attr]
    assert found.end is not None
    assert found.end.messages == 4
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_tape_that_cannot_be_joined_leaves_the_old_one(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text("old")
    with pytest.raises(Exception, match=r"gone\.jsonl"):
        keep([tmp_path / "gone.jsonl"], kept)
    assert kept.read_text() == "old"
    assert list(tmp_path.iterdir()) == [kept]
