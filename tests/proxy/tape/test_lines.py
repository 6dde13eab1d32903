"""The lines of a tape."""

from __future__ import annotations

import msgspec
import pytest

from folkmoot.core.envelope import MessageDirection
from folkmoot.core.timing import TimingContext
from folkmoot.proxy.tape import FORMAT, Header, TapeSide, follow_lines, read_tape
from folkmoot.proxy.tape.lines import MessageLine, decode_line, encode_line
from tests.proxy.tape.strategies import record
from tests.proxy.tape.talk import answer, call, said, words

HEADER = Header(
    FORMAT, "id", "2026-01-02T03:04:05.000Z", "folkmoot", TapeSide("stdio"), TapeSide("http")
)
MESSAGE = MessageLine(1, TimingContext(1.0, 2.0), msgspec.Raw(b'{"jsonrpc":"2.0","method":"x"}'))


def test_a_line_says_what_it_is_and_leaves_out_what_is_not_so():
    assert encode_line(HEADER).startswith(b'{"type":"header","format":1,')
    assert b"redaction" not in encode_line(HEADER)
    assert b"direction" not in encode_line(MESSAGE)
    assert encode_line(HEADER).endswith(b"}\n")
    assert decode_line(encode_line(HEADER)) == HEADER


def test_a_line_of_a_type_that_came_later_and_members_that_did_are_passed_over(tmp_path):
    path = tmp_path / "tape"
    later = b'{"type":"weather","sun":true}\n'
    path.write_bytes(encode_line(HEADER) + later + encode_line(MESSAGE))
    assert decode_line(later) is None
    assert [entry.seq for entry in read_tape(path).entries] == [1]
    assert decode_line(encode_line(HEADER)[:-2] + b',"sun":true}\n') == HEADER


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'{"type":"message"}',
        b'{"format":1}',
        b'{"type":"end","reason":1}',
        b'{"type":"header"',
        b'{"type":"end","reason":"\xff","messages":1,"ended":""}',
    ],
)
def test_what_is_no_line_is_refused(raw):
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        decode_line(raw)


def test_a_direction_that_nobody_knows_is_unknown():
    line = decode_line(encode_line(MESSAGE)[:-2] + b',"direction":"sideways"}')
    assert line.direction is MessageDirection.UNKNOWN


def test_lines_that_are_read_can_be_written_again(tmp_path):
    spaced = b'\n{"jsonrpc": "2.0",\n "method": "x"} '
    path = record(
        tmp_path / "tape", [call(1, "echo", text="hi"), answer(1, words("hi")), said(spaced)]
    )
    again = tmp_path / "again"
    again.write_bytes(b"".join(map(encode_line, follow_lines(path))))
    assert read_tape(again).entries == read_tape(path).entries
    assert read_tape(again).entries[2].message.raw == spaced
    assert read_tape(again).correlations == read_tape(path).correlations
