"""Whether a tape is what it should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core.errors import TapeUnreadable
from folkmoot.proxy.tape.validate import findings
from tests.proxy.tape.studio import TO_CLIENT, TO_SERVER, conversation, recording

Lines = list[dict[str, Any]]


def found(path: Path) -> list[tuple[int, str]]:
    return [(each.line, each.text) for each in findings(path) if each.severe]


def odd(path: Path) -> list[tuple[int, str]]:
    return [(each.line, each.text) for each in findings(path) if not each.severe]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A tape of seven lines: header, ping, its answer, what ties them, another request and end."""
    with recording(tmp_path / "t.jsonl") as studio:
        studio.call(1, "ping", took=0.5)
        studio.tool(2, "echo", "x")
    return tmp_path / "t.jsonl"


def broken(path: Path, how: Callable[[Lines], object]) -> Path:
    """The tape with its lines changed."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    how(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_tape_of_the_recorder_is_right(tape: Path, tmp_path: Path) -> None:
    assert list(findings(tape)) == []
    assert found(conversation(tmp_path / "a.jsonl")) == []
    assert found(conversation(tmp_path / "a.jsonl.zst")) == []


def test_a_tape_that_is_being_recorded_is_odd_and_not_wrong(tmp_path: Path) -> None:
    for name in ("t.jsonl", "t.jsonl.zst"):
        with recording(tmp_path / name, end=False) as studio:
            studio.say(TO_SERVER, {"id": 1, "method": "ping"})
            studio.recorder.commit()
            assert found(tmp_path / name) == []
            assert odd(tmp_path / name) == [
                (2, "ping (id 1) got no answer"),
                (2, "is the last line, and no end line"),
            ]


def test_a_torn_last_line_is_odd_and_not_wrong(tape: Path) -> None:
    tape.write_bytes(tape.read_bytes()[:-9])
    assert found(tape) == []
    assert odd(tape)[0] == (8, "is cut off, as the last line of a torn tape is")


def change(number: int, *path: str, to: Any) -> Callable[[Lines], object]:
    def how(lines: Lines) -> None:
        inside: Any = lines[number - 1]
        for name in path[:-1]:
            inside = inside[name]
        inside[path[-1]] = to

    return how


WRONG: dict[str, tuple[Callable[[Lines], object], tuple[int, str]]] = {
    "a newer format": (change(1, "format", to=9), (1, "has format 9; this program reads up to 1")),
    "no time": (change(1, "started", to="noon"), (1, "does not say when it was started")),
    "two headers": (lambda lines: lines.insert(1, lines[0]), (2, "is a second header")),
    "a gap": (lambda lines: lines.__delitem__(4), (5, "message 3 is missing before it")),
    "a wide gap": (change(5, "seq", to=9), (5, "messages 3 to 8 are missing before it")),
    "a number twice": (change(3, "seq", to=1), (3, "has number 1, which does not follow 1")),
    "no JSON-RPC": (change(2, "message", "jsonrpc", to="1.0"), (2, "holds no JSON-RPC message")),
    "another text": (
        change(2, "text", to='{"jsonrpc":"2.0","id":2,"method":"ping"}'),
        (2, "holds no JSON-RPC message: The message and its text say different things"),
    ),
    "no direction": (change(2, "direction", to="sideways"), (2, "has no direction: it is unknown")),
    "the wrong side": (
        change(5, "direction", to="server_to_client"), (5, "tools/call cannot come from the server")
    ),
    "an answer to nothing": (
        lambda lines: lines.__delitem__(3), (3, "answers no request: there is none with id 1")
    ),
    "another id": (change(3, "message", "id", to="1"), (4, "ties 2 to 1 wrongly: their ids")),
    "the same way": (
        change(3, "direction", to="client_to_server"),
        (4, "ties 2 to 1 wrongly: both flow the same way"),
    ),
    "another request": (change(4, "request", to=7), (4, "ties to message 7, which is no open")),
    "another answer": (change(4, "response", to=7), (4, "ties message 7, which is not the answer")),
    "another method": (change(4, "method", to="x"), (4, "ties 2 to 1 wrongly: the method is ping")),
    "another name": (change(7, "name", to="x"), (7, "ties 4 to 3 wrongly: the name is 'echo'")),
    "another outcome": (
        change(4, "outcome", to="error"), (4, "ties 2 to 1 wrongly: the outcome is result")
    ),
    "another time": (change(4, "seconds", to=3.0), (4, "ties 2 to 1 wrongly: it took 0.500000 s")),
    "a wrong count": (change(8, "messages", to=9), (8, "counts 9 messages; there are 4")),
    "no end time": (change(8, "ended", to=""), (8, "does not say when it ended: '' is no time")),
    "after the end": (
        lambda lines: lines.append(lines.pop(6)), (8, "comes after the end line")
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", WRONG)
def test_what_is_wrong_is_found_where_it_is(tape: Path, how: str) -> None:
    breaking, (line, text) = WRONG[how]
    wrong = found(broken(tape, breaking))
    assert any(at == line and said.startswith(text) for at, said in wrong), wrong


def test_a_broken_line_does_not_hide_what_is_behind_it(tape: Path) -> None:
    lines = tape.read_bytes().splitlines(keepends=True)
    lines[1] = b'{"type":"message"\n'
    lines[7] = lines[7].replace(b'"messages":4', b'"messages":5')
    tape.write_bytes(b"".join(lines))
    where = [line for line, _ in found(tape)]
    assert where[0] == 2
    assert where[-1] == 8


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"hello\n", "is not a tape"),
        (b'{"type":"end","reason":"","messages":0,"ended":""}\n', "is not a tape"),
        (b"\x28\xb5\x2f\xfdnothing like it", "cannot be decompressed"),
    ],
)
def test_what_is_no_tape_is_told_in_one_finding(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    (only,) = found(path)
    assert only[0] == 1
    assert text in only[1]


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TapeUnreadable, match="No such file"):
        list(findings(tmp_path / "none.jsonl"))


def test_what_was_cancelled_or_stopped_needs_no_answer(tmp_path: Path) -> None:
    with recording(tmp_path / "t.jsonl") as studio:
        studio.say(TO_SERVER, {"id": 1, "method": "tools/list"})
        studio.say(TO_CLIENT, {"id": 1, "method": "ping"})
        notice = {"method": "notifications/cancelled", "params": {"requestId": 1}}
        studio.say(TO_SERVER, notice)
    assert odd(tmp_path / "t.jsonl") == [(3, "ping (id 1) got no answer")]


def test_lines_of_types_that_came_later_are_passed_over(tape: Path) -> None:
    broken(tape, lambda lines: lines.insert(2, {"type": "weather", "sun": True}))
    assert list(findings(tape)) == []
