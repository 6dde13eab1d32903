"""A tape that is shown while it is recorded."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from folkmoot.cli.tape.timeline import followed
from folkmoot.core import errors as e
from folkmoot.proxy.tape import EndLine, Header, MessageLine
from tests.proxy.tape.studio import Studio, recording


def steps(path: Path, *waits: Any) -> Iterator[Any]:
    """What is followed; each time nothing is new, the next of these happens."""
    waiting = iter(waits)
    return followed(path, lambda: next(waiting)())


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.zst"])
def test_lines_are_given_as_they_are_written(tmp_path, name):
    with recording(tmp_path / name) as studio:

        def later() -> None:
            studio.call(1, "ping")
            studio.recorder.commit()

        seen = list(steps(tmp_path / name, later, lambda: None, studio.recorder.close))
    kinds = [type(each) for each in seen]
    assert (kinds[:2], kinds[2:4]) == ([Header, type(None)], [MessageLine, MessageLine])
    assert kinds.count(type(None)) == 3
    assert kinds[-1] is EndLine


def test_a_line_that_is_taken_back_is_forgotten(tmp_path):
    path = tmp_path / "t.jsonl"
    with recording(path) as studio:
        whole = path.read_bytes()

        half, end = b'{"type":"mess', b'{"type":"end","reason":"x","messages":0,"ended":""}\n'
        writes = [partial(path.write_bytes, whole + more) for more in (half, b"", end)]
        seen = [each for each in steps(path, *writes) if each is not None]
    assert [type(each) for each in seen] == [Header, EndLine]
    assert studio.recorder.path == path


@pytest.mark.parametrize("content", [b"hello\n", b"\x28\xb5\x2f\xfdhello hello hello"])
def test_what_is_no_tape_is_not_followed(tmp_path, content):
    (tmp_path / "t.jsonl").write_bytes(content)
    with pytest.raises(e.TapeUnreadable):
        list(steps(tmp_path / "t.jsonl"))


def said(studio: Studio, number: int) -> None:
    studio.tool(number, "echo", f"answer {number}")
    studio.recorder.commit()


def test_the_command_shows_each_message_when_it_comes_and_ends_with_the_tape(cli):
    with recording(cli.folder / "t.jsonl") as studio:
        said(studio, 1)
        with cli.begin("tape", "show", "--follow", "t.jsonl", stdin=subprocess.DEVNULL) as shown:
            assert [shown.stdout.readline() for _ in range(2)][1].endswith("answer 1\n")
            said(studio, 2)
            assert [shown.stdout.readline() for _ in range(2)][1].endswith("answer 2\n")
            studio.recorder.close()
            assert shown.stdout.readline() == ""
            assert shown.wait(60) == 0


def test_the_last_messages_are_shown_before_what_comes(tmp_path, cli):
    with recording(tmp_path / "t.jsonl") as studio:
        for number in range(1, 6):
            said(studio, number)
        last = ("tape", "show", "-f", "--last", "2", "--direction", "server", "t.jsonl")
        with cli.begin(*last, stdin=subprocess.DEVNULL) as shown:
            for number in (4, 5):
                assert shown.stdout.readline().endswith(f"answer {number}\n")
            said(studio, 6)
            assert shown.stdout.readline().endswith("answer 6\n")
            studio.recorder.close()
            assert shown.stdout.readline() == ""
            assert shown.wait(60) == 0


def test_little_is_decompressed_at_once(tmp_path, monkeypatch):
    path = tmp_path / "tape.jsonl.zst"
    with recording(path) as studio:
        studio.tool(1, "echo", "x" * 1_000_000)
    assert path.stat().st_size < 2_000
    monkeypatch.setattr("folkmoot.cli.tape.timeline.PIECE", 16)
    monkeypatch.setattr("folkmoot.cli.tape.timeline.LONGEST", 300_000)
    with pytest.raises(e.TapeUnreadable, match="longer than a line may be"):
        list(followed(path))
