"""Streams that clients come back to: what is kept of them, for how long, and who gives way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.mcp.server.resumable import (
    CALL_BYTES,
    STREAM_BYTES,
    ResumableStreams,
    StreamBudget,
    is_listening,
)
from folkmoot.mcp.server.streams import MOST_EVENTS, Stream, Weight
from tests.harness import reached, run

BOOT = "0123456789abcdef"


def call_of(streams: ResumableStreams, given_up: list[Stream] | None = None) -> Stream:
    """The stream of a call whose client knows of it."""
    stream = Stream(lossy=True, keeper=streams)
    stream.abandoned = lambda: None if given_up is None else given_up.append(stream)
    stream.begun = True
    return stream


def opened() -> tuple[ResumableStreams, Stream]:
    """The streams of a session, and that of a call."""
    streams = ResumableStreams(StreamBudget(BOOT))
    return streams, call_of(streams)


async def read(stream: Stream, after: int | None = None) -> list[bytes]:
    """All that a new reader gets without waiting, event by event."""
    reader = stream.attach(after)
    found = b""
    while data := await reader.more(0):
        found += data
    reader.leave()
    return [part for part in found.split(b"\n\n") if part]


async def test_ids_name_the_process_the_stream_and_the_event():
    streams = ResumableStreams(StreamBudget(BOOT))
    call, other = call_of(streams), call_of(streams)
    listening = Stream(listening=True, keeper=streams)
    names = set()
    for stream in (call, other, listening):
        stream.begun = True
        stream.put(b"{}")
        name, number = stream.name, 1
        assert name.startswith(f"{BOOT}-")
        assert streams.resume(f"{name}-{number}") == (stream, number)
        names.add(name)
    assert len(names) == 3
    assert is_listening(f"{listening.name}-1")
    assert not is_listening(f"{call.name}-1")
    assert not is_listening(f"{listening.name}-1 ")


@settings(max_examples=40)
@given(st.text(max_size=80), st.integers(-5, 10**18))
def test_whatever_is_named_makes_no_stream_skip_what_it_said(words, number):
    async def main() -> None:
        streams, stream = opened()
        stream.put(b"1")
        stream.put(b"2")
        for event_id in (words, f"{words}-{number}", f"{stream.name}-{number}", f"0-{number}"):
            try:
                found, place = streams.resume(event_id)
            except e.EventUnknown:
                continue
            assert (found, place) == (stream, number)
            assert event_id == f"{stream.name}-{number}"
            assert 0 <= number <= 2

    run(main())


async def test_what_was_dropped_and_may_not_be_missed_makes_a_stream_end_there():
    streams, stream = opened()
    for number in range(MOST_EVENTS + 10):
        stream.put(b"%d" % number)
        await read(stream)
    with pytest.raises(e.EventUnknown):
        streams.resume(f"{stream.name}-9")
    _, place = streams.resume(f"{stream.name}-10")
    assert len(await read(stream, place)) == MOST_EVENTS


async def test_what_nobody_has_read_and_may_not_be_missed_is_kept_whole():
    streams, stream = opened()
    stream.put(b"question", weight=Weight.QUESTION)
    for number in range(2 * MOST_EVENTS):
        stream.put(b"log %d" % number, weight=Weight.LOG)
    stream.put(b"answer", last=True)
    _, place = streams.resume(f"{stream.name}-0")
    assert stream.is_thinned(place)
    told = await read(stream, place)
    assert b"question" in told[0]
    assert b"answer" in told[-1]
    assert len(told) == MOST_EVENTS + 1
    assert not stream.is_thinned(2 * MOST_EVENTS)


async def test_an_answer_counts_as_delivered_once_and_only_to_a_reader_that_stays():
    _, stream = opened()
    delivered: list[bool] = []
    stream.delivered = lambda: delivered.append(True)
    stream.put(b"answer", last=True)
    reader = stream.attach()
    assert await reader.more(0)
    reader.leave()
    assert await reader.more(0) is None
    assert delivered == []
    for _ in range(2):
        assert len(await read(stream, 0)) == 1
        assert delivered == [True]


async def test_a_stream_is_forgotten_when_nobody_has_read_it_for_too_long():
    budget = StreamBudget(BOOT, seconds=0.02)
    streams = ResumableStreams(budget)
    given_up: list[Stream] = []
    broken, reading, done = (call_of(streams, given_up) for _ in range(3))
    listening, patient = Stream(listening=True, keeper=streams), Stream(keeper=streams)
    for stream in (broken, reading, done, listening, patient):
        stream.attach()
        stream.put(b"x")
    done.put(b"answer", last=True)
    for stream in (broken, done, listening, patient):
        stream.reader.leave()
    await reached(lambda: len(streams) <= 3)
    # One is read, one tells of changes, and of one the work cannot be ended.
    assert given_up == [broken]
    assert not broken.resumable
    patient.put(b"answer", last=True)
    await reached(lambda: len(streams) <= 2)
    streams.close()
    assert len(streams) == 1
    reading.reader.leave()
    assert (len(streams), len(budget.whole.streams), budget.whole.used) == (0, 0, 0)


async def test_the_oldest_that_nobody_reads_give_way_first_within_each_share():
    most = 16 * 8 * (CALL_BYTES + STREAM_BYTES)
    budget = StreamBudget(BOOT, most_bytes=most)
    given_up: list[Stream] = []
    sessions = [ResumableStreams(budget, account) for account in ("ann", "ann", "ann", "bob")]
    for number in range(20):
        for session in sessions:
            stream = call_of(session, given_up)
            stream.attach().leave()
            stream.put(b"%d" % number)
            assert budget.whole.used <= most
    # A session has a sixteenth, an account an eighth: two sessions fill Ann's.
    assert [len(session) for session in sessions][3] == 7
    assert sum(len(session) for session in sessions[:3]) == 15
    assert len(given_up) == 80 - 22
    for session in sessions:
        session.close()
    assert (budget.whole.used, len(budget.whole.streams), budget._of_account) == (0, 0, {})


async def test_what_has_arrived_gives_way_before_a_call_that_goes_on():
    budget = StreamBudget(BOOT, most_bytes=16 * 128 * 1024)
    streams = ResumableStreams(budget)
    given_up: list[Stream] = []
    broken = call_of(streams, given_up)
    broken.attach().leave()
    broken.put(b"x")
    for number in range(20):
        stream = call_of(streams, given_up)
        stream.attach()
        stream.put(b"x" * 50_000, last=True)
        assert len(await read(stream, 0)) == 1, number
    assert given_up == []
    assert streams.resume(f"{broken.name}-1") == (broken, 1)
    assert len(streams) == 2


async def test_a_stream_that_is_read_gives_up_what_was_written_and_goes_on():
    budget = StreamBudget(BOOT, most_bytes=64 * 1024)
    streams = ResumableStreams(budget)
    stream = call_of(streams)
    reader = stream.attach()
    for number in range(200):
        stream.put(b"%d" % number + b"x" * 1_000)
        assert await reader.more(0)
    stream.put(b"answer", last=True)
    assert b"answer" in (await reader.more(0) or b"")
    assert budget.whole.used < 8 * 1024
    with pytest.raises(e.EventUnknown):
        streams.resume(f"{stream.name}-0")


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("oprlwdf"), st.integers(0, 9_000))))
def test_whatever_happens_the_shares_add_up_and_hold(acts):
    async def main() -> None:
        budget = StreamBudget(BOOT, most_bytes=512 * 1024)
        sessions = [ResumableStreams(budget, who) for who in ("", "", "ann", "bob")]
        opened: list[list[Stream]] = [[] for _ in sessions]
        for who, act, number in acts:
            of = opened[who]
            stream: Any = of[number % len(of)] if of else None
            if act == "o" or stream is None:
                of.append(call_of(sessions[who]))
                of[-1].put(b"x")
            elif act == "p":
                stream.put(b"x" * number, weight=list(Weight)[number % 3])
            elif act == "r":
                await read(stream, 0 if number % 2 else None)
            elif act == "l" and stream.reader is not None:
                stream.reader.leave()
            elif act == "w":
                stream.attach()
            elif act == "d":
                stream.put(b"x" * number, last=True)
            elif act == "f":
                stream.discard()
            kept = [each for session in sessions for each in session._named.values()]
            sizes = [each.size + STREAM_BYTES for each in kept]
            alone = [each for each in kept if each.reader is None and not each.done]
            assert budget.whole.used == sum(sizes) + CALL_BYTES * len(alone)
            unread = [each for each in kept if each.reader is None]
            in_use = sum(each.unsent + STREAM_BYTES for each in kept if each.reader is not None)
            assert not unread or budget.whole.used <= 512 * 1024 + in_use
        for session in sessions:
            for stream in tuple(session._named.values()):
                stream.discard()
        assert (budget.whole.used, len(budget.whole.streams)) == (0, 0)

    run(main())
