"""Server-Sent Events: what is written can be read, wherever the bytes are cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors
from folkmoot.mcp.framing import EventReader, SseEvent, encode_event

LIMIT = 1024 * 1024


def read(raw: bytes, size: int | None = None, limit: int = LIMIT) -> list[SseEvent]:
    reader, size = EventReader(limit), size or max(len(raw), 1)
    pieces = (raw[at : at + size] for at in range(0, len(raw), size))
    return [event for piece in pieces for event in reader.feed(piece)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_every_line_end_is_understood_wherever_the_bytes_are_cut(end, size):
    lines = [
        b"\xef\xbb\xbfid: 7",
        b"event: message",
        b"retry: 1500",
        b": a comment",
        b'data: {"a":',
        b"data:1}",
        b"",
        b"data",
        b"",
        b"",
        b"data:  two",
        b"unknown: field",
        b"",
        b"",
    ]
    assert read(end.join(lines), size) == [
        SseEvent(b'{"a":\n1}', "7", "message", 1.5),
        SseEvent(b""),
        SseEvent(b" two"),
    ]


X, Y = SseEvent(b"x"), SseEvent(b"y")
NAMED = [SseEvent(b"", "3"), SseEvent(b"", retry=0.01), SseEvent(b"", "")]


@pytest.mark.parametrize(
    ("raw", "events"),
    [
        # Without data an event is given when it helps to connect again.
        (b"id: 3\n\nretry: 10\n\nevent: ping\n\n: nothing\n\nid:\n\n", NAMED),
        # What an event names is not the next one's.
        (b"id: 1\nretry: 1\ndata: x\n\ndata: y\n\n", [SseEvent(b"x", "1", retry=0.001), Y]),
        # One that is cut off is not given.
        (b"data: x\n\ndata: y\n", [X]),
        (b"retry: soon\ndata: x\n\n", [X]),
        (b"retry: -1\ndata: x\n\n", [X]),
        (b"retry: " + b"9" * 5000 + b"\ndata: x\n\n", [X]),
        (b"id: a\0b\ndata: x\n\n", [X]),
        (encode_event(b"a\r\nb\rc\n"), [SseEvent(b"a\nb\nc\n")]),
        # Comments without end are no event.
        (b": still here\n" * 100_000 + b"data: x\n\n", [X]),
    ],
)
def test_what_is_read_is_what_counts(raw, events):
    assert read(raw, 100, limit=10_000) == events


@pytest.mark.parametrize("raw", [b"data: " + b"x" * 101, b"data: x\n" * 20, b": " + b"c" * 101])
def test_an_event_larger_than_the_limit_is_refused_before_it_is_whole(raw):
    with pytest.raises(errors.MessageTooLarge):
        read(raw, 10, limit=100)


def test_fifty_megabytes_in_small_pieces_are_read_in_linear_time():
    reader, piece = EventReader(64 * 1024 * 1024), b"x" * 4096
    began = time.process_time()
    reader.feed(b"data: ")
    for _ in range(50 * 256):
        reader.feed(piece)
    (event,) = reader.feed(b"\n\n")
    assert len(event.data) == 50 * 1024 * 1024
    # Joining the line anew for every piece would take minutes.
    assert time.process_time() - began < 5


def test_what_would_end_a_line_is_left_out_of_id_and_type():
    raw = encode_event(b"x", event_id="1\r\ndata: y\0", event_type="a\nb")
    assert read(raw) == [SseEvent(b"x", "1data: y", "ab")]


_field = st.text().filter(lambda text: not set(text) & set("\r\n\0")).map(str.strip)


@given(
    events=st.lists(
        st.builds(
            SseEvent,
            st.binary().filter(lambda data: b"\r" not in data),
            st.none() | _field,
            st.none() | _field,
            st.none() | st.integers(0, 10**6).map(lambda ms: ms / 1000),
        ),
        max_size=5,
    ),
    size=st.integers(1, 40),
)
def test_what_is_written_is_what_is_read(events, size):
    raw = b"".join(
        encode_event(e.data, event_id=e.event_id, event_type=e.event_type, retry=e.retry)
        for e in events
    )
    assert read(raw, size) == events
