"""What one process believes of the frames that claim to be another's."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from folkmoot.bus import frames
from folkmoot.bus.frames import (
    HEAD,
    OVERHEAD,
    VERSION,
    Accepted,
    FrameChecker,
    FrameKind,
    FrameMaker,
    hub_name,
    marked,
)
from folkmoot.bus.limits import ASK_SECONDS, MAX_ASKED, MAX_FRAME_BYTES, MAX_SENT_BYTES

KEY = b"k" * 32
ONE, TWO = "01" * 16, "02" * 16
ALL, TO_TWO = "hub.events", f"hub.node.{TWO}"


def meet(writer: FrameMaker, reader: FrameChecker) -> None:
    """Let a process tell another that it is running."""
    assert reader.read(TO_TWO, writer.ask(TO_TWO), 0.0, to_all=False) is not None


def pair() -> tuple[FrameMaker, FrameChecker]:
    writer, reader = FrameMaker(ONE, KEY), FrameChecker(TWO, KEY)
    meet(writer, reader)
    return writer, reader


def event(reader: FrameChecker, frame: bytes, now: float = 0.0) -> Accepted | None:
    return reader.read(ALL, frame, now, to_all=True)


def message(reader: FrameChecker, frame: bytes) -> Accepted | None:
    return reader.read(TO_TWO, frame, 0.0, to_all=False)


def test_an_event_and_a_message_arrive_whole():
    writer, reader = pair()
    [frame] = writer.event(ALL, b"news", 1024)
    assert event(reader, frame) == Accepted(ONE, b"news")
    [frame] = writer.sent(TO_TWO, b"hello", 1024)
    assert message(reader, frame) == Accepted(ONE, b"hello")
    assert not reader.dropped


@given(st.data())
def test_a_frame_that_was_changed_anywhere_is_dropped(data):
    writer, reader = pair()
    [frame] = writer.event(ALL, b"some news", 1024)
    place = data.draw(st.integers(0, len(frame) - 1))
    changed = bytearray(frame)
    changed[place] ^= data.draw(st.integers(1, 255))
    for wrong in (bytes(changed), frame[:place], frame + b"!"):
        assert event(reader, wrong) is None
    assert reader.dropped.total() == 3
    assert event(reader, frame) == Accepted(ONE, b"some news")


@given(st.binary(max_size=200))
def test_anything_at_all_may_come(data):
    _, reader = pair()
    assert event(reader, data) is None
    assert message(reader, data) is None
    assert reader.dropped.total() == 2


def test_another_hub_has_another_key_and_other_subjects():
    _, reader = pair()
    [frame] = FrameMaker(ONE, b"x" * 32).event(ALL, b"news", 1024)
    assert event(reader, frame) is None
    assert reader.dropped == {"forged": 1}
    assert hub_name(KEY) != hub_name(b"x" * 32)


def test_a_frame_is_valid_only_where_it_was_sent():
    writer, reader = pair()
    [frame] = writer.sent("hub.node." + "03" * 16, b"for three", 1024)
    assert message(reader, frame) is event(reader, frame) is None
    [frame] = writer.sent(ALL, b"a message to all", 1024)
    assert event(reader, frame) is None
    assert reader.dropped == {"forged": 2, "unknown": 1}


def test_nothing_is_accepted_twice_and_nothing_of_its_own():
    writer, reader = pair()
    [news], [sent] = writer.event(ALL, b"news", 1024), writer.sent(TO_TWO, b"hello", 1024)
    assert event(reader, news) is not None
    assert message(reader, sent) is not None
    assert event(reader, news) is message(reader, sent) is None
    assert event(FrameChecker(ONE, KEY), news) is None
    assert reader.dropped == {"replayed": 2}


def test_what_an_ended_process_sent_is_not_accepted_by_one_that_started_later():
    ended = FrameMaker("09" * 16, KEY)
    recorded = [ended.pulse(ALL), *ended.event(ALL, b"old news", 1024)]
    answer = ended.ask(TO_TWO, answer=True)
    later = FrameChecker("0a" * 16, KEY)
    asked = [event(later, frame) for frame in recorded]
    assert asked == [Accepted("09" * 16, unknown=True), None]
    # An answer that another process was given does not introduce it.
    assert later.read("hub.node." + "0a" * 16, answer, 0.0, to_all=False) is None
    assert event(later, recorded[1]) is None
    assert later.dropped == {"unknown_sender": 2, "forged": 1}


def test_an_unknown_sender_is_asked_now_and_then():
    reader = FrameChecker(TWO, KEY)
    pulse = FrameMaker(ONE, KEY).pulse(ALL)
    asked = [event(reader, pulse, now) for now in (0.0, ASK_SECONDS / 2)]
    assert asked == [Accepted(ONE, unknown=True), None]
    assert event(reader, pulse, ASK_SECONDS) == Accepted(ONE, unknown=True)


def test_no_more_are_asked_than_are_remembered():
    reader = FrameChecker(TWO, KEY)
    pulses = [FrameMaker(f"{number:032x}", KEY).pulse(ALL) for number in range(MAX_ASKED + 50)]
    asked = [event(reader, pulse, 0.0) for pulse in pulses]
    assert sum(each is not None for each in asked) == MAX_ASKED
    assert event(reader, pulses[-1], ASK_SECONDS) is not None


def test_who_is_met_late_says_how_much_was_missed():
    writer, reader = FrameMaker(ONE, KEY), FrameChecker(TWO, KEY)
    for _ in range(3):
        writer.skip()
    asking = message(reader, writer.ask(TO_TWO))
    assert asking == Accepted(ONE, missed=3, asks=True)
    assert reader.known == 1


def test_a_pulse_tells_what_was_lost_last_and_an_old_one_tells_nothing():
    writer, reader = pair()
    old = writer.pulse(ALL)
    writer.event(ALL, b"lost", 1024)
    writer.skip()
    assert event(reader, writer.pulse(ALL)) == Accepted(ONE, missed=2)
    assert event(reader, writer.pulse(ALL)) == event(reader, old) == Accepted(ONE)


@given(st.binary(max_size=2_000), st.integers(OVERHEAD + 1, 400))
def test_a_large_message_travels_in_pieces(payload, room):
    writer, reader = pair()
    pieces = writer.sent(TO_TWO, payload, room)
    assert all(len(piece) <= room for piece in pieces)
    found = [message(reader, piece) for piece in pieces]
    assert [each.payload for each in found if each is not None][-1] == payload
    assert [each for each in found if each is not None and each.payload is None] == found[:-1]


def test_a_message_whose_pieces_do_not_follow_one_another_is_dropped():
    writer, reader = pair()
    first, _, third = writer.event(ALL, b"x" * 300, OVERHEAD + 100)
    assert event(reader, first) == Accepted(ONE)
    assert event(reader, third) == Accepted(ONE, missed=2)
    assert reader.dropped == {"cut": 1}
    [following] = writer.event(ALL, b"whole", 1024)
    assert event(reader, following) == Accepted(ONE, b"whole")


def test_pieces_of_two_messages_make_none():
    writer, reader = pair()
    first = writer.event(ALL, b"x" * 300, OVERHEAD + 100)
    second = writer.event(ALL, b"y" * 300, OVERHEAD + 100)
    # What was lost lies between them, so the numbers of the pieces alone would fit.
    found = [event(reader, each) for each in (first[0], second[1], second[2])]
    assert [each.payload for each in found if each is not None] == [None, None, None]
    assert reader.dropped == {"cut": 2}


def test_what_another_release_would_write_is_dropped():
    _, reader = pair()

    def written(
        kind: FrameKind, subject: str, body: bytes, version: int = VERSION, place: Any = (0, 1)
    ) -> bytes:
        head = HEAD.pack(version, kind, bytes.fromhex(ONE), 9, *place)
        return marked(KEY, subject, head, body) + head + body

    for wrong in ({"version": VERSION + 1}, {"place": (1, 1)}, {"place": (0, 0)}):
        assert event(reader, written(FrameKind.EVENT, ALL, b"", **wrong)) is None
    assert reader.dropped == {"unknown": 3}
    ask = written(FrameKind.ASK, TO_TWO, b"short")
    assert message(reader, ask) is None
    assert reader.dropped == {"unknown": 3, "cut": 1}
    assert event(reader, written(FrameKind.EVENT, ALL, b"news")) == Accepted(ONE, b"news", 8)


def test_senders_are_bounded(monkeypatch):
    monkeypatch.setattr(frames, "MAX_PEERS", 2)
    reader = FrameChecker(TWO, KEY)
    writers = [FrameMaker(f"{number:032x}", KEY) for number in range(3)]
    found = [message(reader, one.ask(TO_TWO)) for one in writers]
    assert [each is not None for each in found] == [True, True, False]
    assert (reader.known, reader.dropped) == (2, {"too_many_senders": 1})


def test_pieces_are_bounded(monkeypatch):
    monkeypatch.setattr(frames, "MAX_SENT_BYTES", 250)
    writer, reader = pair()
    found = [event(reader, each) for each in writer.event(ALL, b"x" * 300, OVERHEAD + 100)]
    assert found == [Accepted(ONE), Accepted(ONE), Accepted(ONE, missed=1)]
    assert reader.dropped == {"oversized": 1}
    for size in (OVERHEAD - 1, MAX_FRAME_BYTES + 1):
        assert event(reader, b"x" * size) is None
    assert reader.dropped == {"cut": 1, "oversized": 2}
    assert MAX_SENT_BYTES > MAX_FRAME_BYTES


def test_unfinished_messages_of_all_senders_are_bounded(monkeypatch):
    monkeypatch.setattr(frames, "MAX_UNFINISHED_BYTES", 1_000)
    reader = FrameChecker(TWO, KEY)
    writers = [FrameMaker(f"{number:032x}", KEY) for number in range(20)]
    rest = []
    for writer in writers:
        meet(writer, reader)
        first, second = writer.sent(TO_TWO, b"x" * 190, OVERHEAD + 100)
        assert message(reader, first) is not None
        rest.append(second)
    found = [message(reader, each) for each in rest]
    assert sum(each is not None and each.payload is not None for each in found) == 10
    assert reader.dropped == {"cut": 20}


STEPS = st.sampled_from(["lose", "double", "swap", "pass", "pass", "pass"])


@given(st.lists(st.tuples(st.integers(0, 300), STEPS), min_size=1, max_size=40))
def test_whatever_a_network_does_events_come_once_in_order_and_gaps_are_told(steps):
    writer, reader = pair()
    wire: list[bytes] = []
    sent: list[bytes] = []
    for number, (size, step) in enumerate(steps):
        payload = b"%d:" % number + b"x" * size
        sent.append(payload)
        found = writer.event(ALL, payload, OVERHEAD + 100)
        if step == "lose":
            found = found[:-1]
        elif step == "double":
            found = [*found, *found]
        wire = [*found, *wire] if step == "swap" else [*wire, *found]
    wire.append(writer.pulse(ALL))
    read = [event(reader, frame) for frame in wire]
    got = [each.payload for each in read if each is not None and each.payload is not None]
    missed = sum(each.missed for each in read if each is not None)
    remaining = iter(sent)
    assert all(payload in remaining for payload in got)
    assert got == sent or missed
