"""Lines: a stream's bytes come apart at their line ends, wherever they are cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.mcp.framing import KEPT, LineSplitter, one_line

LINE = st.binary(min_size=1, max_size=40).filter(
    lambda line: not set(b"\n\r") & set(line) and not line.isspace()
)


def taken(lines: LineSplitter) -> list[bytes]:
    found = []
    while (line := lines.take()) is not None:
        found.append(line)
    return found


@given(st.lists(LINE, max_size=20), st.sampled_from([b"\n", b"\r\n"]), st.data())
def test_lines_come_out_whole_and_in_order_wherever_the_bytes_are_cut(wanted, end, data):
    stream = b"".join(line + end for line in wanted)
    lines = LineSplitter(limit=64)
    found = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        lines.feed(stream[:cut])
        stream = stream[cut:]
        if data.draw(st.booleans()):
            found += taken(lines)
    found += taken(lines)
    assert found == wanted
    assert lines.waiting == 0


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_line_that_is_too_long_is_told_once_and_the_next_one_is_read(step):
    lines = LineSplitter(limit=10)
    stream = b"x" * 50 + b"\n" + b"short\n"
    found: list[bytes] = []
    told = 0
    for at in range(0, len(stream), step):
        lines.feed(stream[at : at + step])
        while True:
            try:
                line = lines.take()
            except e.MessageTooLarge:
                told += 1
                continue
            if line is None:
                break
            found.append(line)
    assert told == 1
    assert found == [b"short"]


@pytest.mark.parametrize("step", [1, 100, 700, 5000])
def test_the_ends_of_a_line_that_is_too_long_are_kept(step):
    lines = LineSplitter(limit=1500)
    stream = b"begin" + b"x" * 3000 + b"end"
    for at in range(0, len(stream), step):
        lines.feed(stream[at : at + step])
        assert lines.take() is None
    lines.feed(b"\n")
    with pytest.raises(e.MessageTooLarge):
        lines.take()
    assert lines.passed_over == stream[:KEPT] + stream[-KEPT:]


def test_a_long_line_in_many_pieces_takes_linear_time():
    def seconds(pieces: int) -> float:
        lines = LineSplitter(limit=2**30)
        started = time.process_time()
        for _ in range(pieces):
            lines.feed(b"x" * 1000)
            assert lines.take() is None
        lines.feed(b"\n")
        assert lines.take() == b"x" * 1000 * pieces
        return time.process_time() - started

    assert seconds(16_000) < 40 * max(seconds(1_000), 0.001)


def test_a_message_over_several_lines_says_the_same_on_one():
    assert one_line(b'{\r\n "a": "b\\n"\n}') == b'{   "a": "b\\n" }'
    assert one_line(b'{"a": 1}') == b'{"a": 1}'


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \n", b"\n \t\r\n"])
def test_blank_lines_cost_less_than_lines(blank):
    def seconds(line):
        lines = LineSplitter(1_000)
        lines.feed(b"first\n" + line * 100_000)
        lines.feed(b"\n  last \n\n")
        began = time.process_time()
        taken = list(iter(lines.take, None))
        assert [taken[0], taken[-1]] == [b"first", b"  last "]
        assert lines.waiting == 0
        return time.process_time() - began, len(taken)

    def cheapest(line):
        return min(seconds(line) for _ in range(3))

    spent, taken = cheapest(blank)
    assert taken == 2
    assert spent < cheapest(b"x\n" * blank.count(b"\n"))[0] / 2
