"""Messages from frames, however the network cuts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.limits import MAX_KEPT_BUFFER_BYTES
from folkmoot.transports.websocket.reader import FrameReader, Unfinished
from tests.harness import run
from tests.transports.websocket.support import CONTINUATION, PING, frame


class Heard:
    """Remembers what came."""

    def __init__(self) -> None:
        self.all: list[tuple[str, bytes | int]] = []

    def on_text(self, *messages: bytes) -> None:
        self.all += [("text", data) for data in messages]

    def on_ping(self, payload: bytes) -> None:
        self.all.append(("ping", payload))

    def on_close(self, code: int, reason: str) -> None:
        self.all.append(("close", code))

    def on_violation(self, code: CloseCode, *, readable: bool) -> None:
        self.all.append(("broken", code))


def fragmented(cut: list[bytes]) -> tuple[bytes, tuple[str, bytes]]:
    """What is sent, and what is heard of it."""
    frames = [
        frame(part, CONTINUATION if index else 1, fin=index == len(cut) - 1)
        for index, part in enumerate(cut)
    ]
    return b"".join(frames), ("text", b"".join(cut))


TEXTS = st.text(max_size=200).map(str.encode)
SENT = st.one_of(
    st.integers(0, 70_000).map(lambda n: fragmented([b"x" * n])),
    st.binary(max_size=125).map(lambda p: (frame(p, PING), ("ping", p))),
    st.lists(TEXTS, min_size=1, max_size=4).map(fragmented),
)


@given(st.lists(SENT, max_size=12), st.lists(st.integers(1, 9_000), min_size=1, max_size=20))
def test_any_cut_of_the_same_bytes_makes_the_same_messages(sent, cuts):
    wire = b"".join(each for each, _ in sent)

    async def main() -> list[tuple[str, bytes | int]]:
        heard = Heard()
        reader = FrameReader(heard, 1 << 20)
        start, turn = 0, 0
        while start < len(wire):
            count = cuts[turn % len(cuts)]
            reader.feed(wire[start : start + count])
            start, turn = start + count, turn + 1
        return heard.all

    assert run(main()) == [heard for _, heard in sent]


async def test_a_flood_of_small_frames_does_not_make_the_buffer_grow():
    reader = FrameReader(Heard(), 1 << 20)
    flood = frame(b"x" * 100) * 10_000
    for start in range(0, len(flood), 50_001):
        reader.feed(flood[start : start + 50_001])
        assert reader.buffered <= 8192


async def test_the_buffer_of_a_large_frame_is_given_back():
    reader = FrameReader(Heard(), 1 << 20)
    large = frame(b"x" * (1 << 20))
    reader.feed(large[:-1])
    assert 1 << 20 <= reader.buffered <= 4 << 20
    reader.feed(large[-1:])
    assert reader.buffered <= MAX_KEPT_BUFFER_BYTES


async def test_nothing_after_a_broken_frame_is_kept():
    heard = Heard()
    reader = FrameReader(heard, 1000)
    reader.feed(frame(b"x" * 2000))
    for _ in range(100):
        reader.feed(frame(b"y"))
    assert reader.buffered == 0
    assert heard.all == [("broken", CloseCode.TOO_BIG)]


@pytest.mark.parametrize("fragmented", [False, True])
async def test_of_many_unfinished_messages_the_one_begun_first_is_given_up(*, fragmented):
    unfinished = Unfinished(250_000)
    heard = [Heard() for _ in range(4)]
    readers = [FrameReader(each, 1 << 20, unfinished) for each in heard]
    large = frame(b"x" * 200_000)
    part = frame(b"x" * 80_000, fin=False) if fragmented else large[:80_000]
    for reader in readers[:3]:
        reader.feed(part)
    assert not any(each.all for each in heard)
    # Small messages need no room, and a finished one gives its room back.
    readers[3].feed(frame(b"hello"))
    readers[1].stop()
    readers[3].feed(frame(b"x" * 80_000))
    assert not heard[0].all
    readers[3].feed(part)
    readers[3].feed(frame(b"x" * 20_000, CONTINUATION, fin=False) if fragmented else b"x" * 20_000)
    assert heard[0].all == [("broken", CloseCode.TOO_SLOW)]
    assert not heard[2].all
    for reader in readers:
        reader.stop()
    assert unfinished.total == 0


async def test_who_begins_many_large_messages_gives_up_their_own():
    unfinished = Unfinished(250_000)
    mine, theirs = Heard(), [Heard() for _ in range(5)]
    large = frame(b"x" * 200_000)
    part = large[:80_000]
    first = FrameReader(mine, 1 << 20, unfinished, "ada")
    first.feed(part)
    for each in theirs:
        FrameReader(each, 1 << 20, unfinished, "mallory").feed(part)
    assert not mine.all
    assert [len(each.all) for each in theirs] == [1, 1, 1, 0, 0]
    first.feed(large[80_000:])
    assert mine.all == [("text", b"x" * 200_000)]
