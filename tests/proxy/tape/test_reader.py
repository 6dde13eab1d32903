"""Reading tapes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.proxy.tape import CorrelationLine, EndLine, Header, follow_lines, read_tape
from folkmoot.proxy.tape.reader import TapeLines
from tests.proxy.tape.strategies import record
from tests.proxy.tape.talk import TO_CLIENT, answer, call, said, words

TALK = [
    call(1, "echo", text="a", at=10.0),
    call("1", "echo", text="b", at=10.1),
    answer("1", words("b", isError=True), at=10.25),
    answer(1, words("a"), at=10.5),
    said({"id": 2, "method": "ping"}, TO_CLIENT, at=11.0),
    said({"id": 2, "error": {"code": -32601, "message": "no"}}, at=11.5),
]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return record(tmp_path / "tape.jsonl", TALK)


def broken(path: Path) -> str:
    with pytest.raises(e.TapeUnreadable) as refusal:
        read_tape(path)
    return refusal.value.message


@pytest.mark.requirement("proxy.record", "proxy.correlates-responses")
def test_answers_are_tied_to_their_requests_by_id_with_its_type_and_by_direction(tape):
    ties = read_tape(tape).correlations
    assert [(c.request, c.response, c.outcome, c.method, c.name) for c in ties] == [
        (2, 3, "tool_error", "tools/call", "echo"),
        (1, 4, "result", "tools/call", "echo"),
        (5, 6, "error", "ping", ""),
    ]
    assert [c.seconds for c in ties] == pytest.approx([0.15, 0.5, 0.5])


def test_a_large_tape_can_be_read_line_by_line(tape):
    first, *others = follow_lines(tape)
    assert isinstance(first, Header)
    assert (first.format, first.program) == (1, "folkmoot 0")
    assert first.server.target == "https://mcp.example/mcp"
    assert isinstance(others[-1], EndLine)
    assert sum(isinstance(line, CorrelationLine) for line in others) == 3


def test_what_is_broken_before_the_last_line_is_no_tape(tape):
    lines = tape.read_bytes().splitlines(keepends=True)
    tape.write_bytes(b"".join([*lines[:2], b'{"type":"message","seq":2\n', *lines[3:]]))
    assert broken(tape).startswith(f"{tape}: line 3 cannot be read: ")
    tape.write_bytes(b"".join([*lines[:2], lines[2].replace(b'"2.0"', b'"1.0"'), *lines[3:]]))
    assert broken(tape) == f'{tape}: line 3 holds no message: "jsonrpc" must be "2.0".'


def test_a_last_line_that_was_not_written_whole_is_left_out(tape):
    whole = tape.read_bytes()
    tape.write_bytes(whole + b"\0" * 512)
    read = read_tape(tape)
    assert read.cut
    assert len(read.entries) == len(TALK)
    tape.write_bytes(whole[:-1])
    assert not read_tape(tape).cut
    assert read_tape(tape).end is not None


@pytest.mark.parametrize(
    "content", [b"hello\n", b'{"type":"message"}\n', b"{}", b"[1,2]\n", b'{"type":"end"}\n', b"\n"]
)
def test_what_is_no_tape_is_said_to_be_none(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    assert broken(path) == f"{path}: is not a tape."


def test_a_tape_of_a_newer_format_is_refused(tape):
    tape.write_bytes(tape.read_bytes().replace(b'"format":1', b'"format":2', 1))
    assert broken(tape) == f"{tape}: has format 2; this program reads up to 1."


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    missing = tmp_path / "none"
    assert broken(missing) == f"{missing}: cannot be read: No such file or directory."
    assert broken(tmp_path) == f"{tmp_path}: cannot be read: Is a directory."
    # Nobody waits for a pipe.
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in broken(tmp_path / "pipe")


def test_a_message_and_its_text_must_say_the_same(tmp_path):
    path = record(tmp_path / "tape", [said(b'\n{"jsonrpc":"2.0","method":"x"}')])
    path.write_bytes(path.read_bytes().replace(rb"\"x\"", rb"\"y\""))
    assert broken(path).endswith("The message and its text say different things.")


def test_a_compressed_tape_is_known_by_its_content_and_what_cannot_be_decompressed_is_none(
    tmp_path,
):
    path = record(tmp_path / "tape.jsonl", TALK, compress=True)
    whole = path.read_bytes()
    assert whole.startswith(b"\x28\xb5\x2f\xfd")
    assert len(read_tape(path).entries) == len(TALK)
    # A frame of the same magic number whose block is of the type that is reserved.
    path.write_bytes(whole[:6] + b"\xff" * 20)
    assert broken(path).startswith(f"{path}: line 0 cannot be decompressed: ")


def test_lines_longer_than_any_message_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("folkmoot.proxy.tape.reader.LONGEST", 1000)
    monkeypatch.setattr("folkmoot.proxy.tape.reader.CHUNK", 100)
    lines = TapeLines(record(tmp_path / "tape", [call(1, "echo", text="x" * 2000)]))
    with pytest.raises(e.TapeUnreadable, match="line 2 is longer than a line may be"):
        list(lines)
    assert lines.number == 2


def test_a_message_that_no_proxy_would_have_carried_is_not_decoded(tape, monkeypatch):
    assert read_tape(tape).entries
    monkeypatch.setattr("folkmoot.proxy.tape.lines.MOST_MESSAGE_BYTES", 10)
    with pytest.raises(e.TapeUnreadable, match="a message is too large"):
        read_tape(tape)


def test_tapes_are_read_without_what_only_compressed_ones_need():
    program = "import sys, folkmoot.proxy.tape; print('zstandard' in sys.modules)"
    told = subprocess.check_output([sys.executable, "-c", program], text=True, timeout=60)
    assert told == "False\n"
