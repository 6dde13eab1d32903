"""Clients that do not read, do not answer, or are gone."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest

from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.websocket import LinkLimits, text_frame
from folkmoot.transports.websocket.frames import LOST
from tests.transports.websocket.support import (
    CLOSE,
    PING,
    PONG,
    Client,
    deaf,
    frame,
    opened,
)

CHUNK = b"x" * 16_384
BOUND = 1 << 20


@pytest.mark.long
@pytest.mark.requirement("wire.slow-consumer")
@pytest.mark.settings(
    limits=LinkLimits(max_unsent_bytes=BOUND, close_seconds=0.5, ping_seconds=3600)
)
async def test_ten_of_a_hundred_that_never_read_are_closed_and_the_others_get_everything(hub):
    rounds = 400

    async def hear(one: Client) -> None:
        for _ in range(rounds):
            assert await one.text() == CHUNK

    asleep = [await deaf(hub.port) for _ in range(10)]
    await hub.party.number(10)
    slow = list(hub.party.guests)
    awake = [await Client.connect(hub.port) for _ in range(90)]
    for one in awake:
        assert (await one.ask()).status == 101
    await hub.party.number(100)
    hearing = asyncio.gather(*(hear(one) for one in awake))
    said = text_frame(CHUNK)
    for _ in range(rounds):
        hub.party.audience.send(said)
        await asyncio.gather(*(guest.link.drained() for guest in hub.party.guests[10:]))
        for guest in slow:
            assert guest.link.unsent <= BOUND + 4 * len(said) + 65_536
    await hearing
    for guest in slow:
        await guest.left.wait()
        assert [end[0] for end in guest.ends] == [CloseCode.TOO_SLOW]
    assert len(hub.party.audience) == 90
    for one in asleep:
        one.wake()
        with suppress(ConnectionError):
            while await one.reader.read(65_536):
                pass
    assert hub.endpoint.closed == {CloseCode.TOO_SLOW: 10}
    for one in asleep + awake:
        one.leave()


@pytest.mark.settings(limits=LinkLimits(max_unsent_bytes=BOUND))
async def test_a_slow_reader_that_wakes_in_time_learns_why_it_was_closed(hub):
    one = await deaf(hub.port)
    guest = await hub.guest()
    while guest.link.is_open:
        hub.party.audience.send(text_frame(CHUNK))
        await asyncio.sleep(0)
        assert guest.link.unsent < 2 * BOUND
    assert guest.link.unsent < BOUND
    why = await one.awoken()
    one.send(frame(why, CLOSE))
    assert await one.reader.read() == b""
    one.leave()
    assert int.from_bytes(why[:2], "big") == CloseCode.TOO_SLOW


FEW_FRAMES = LinkLimits(max_unsent_bytes=1 << 40, max_unsent_frames=100, close_seconds=0.1)
FEW_BYTES = LinkLimits(max_unsent_bytes=BOUND, close_seconds=0.1)


@pytest.mark.parametrize(("limits", "pings"), [(FEW_FRAMES, False), (FEW_BYTES, True)])
async def test_too_many_frames_however_small_and_pings_without_end_are_too_many(limits, pings):
    async with opened(limits) as hub:
        one = await deaf(hub.port)
        guest = await hub.guest()
        while guest.link.is_open:
            if pings:
                one.send(frame(b"p" * 125, PING) * 100)
            else:
                hub.party.audience.send(text_frame(CHUNK))
            await asyncio.sleep(0)
            assert guest.link.unsent <= 2 * BOUND or not pings
        await guest.left.wait()
        assert guest.ends[0][0] == CloseCode.TOO_SLOW
        one.leave()


@pytest.mark.settings(limits=LinkLimits(max_unsent_bytes=16 * BOUND))
async def test_a_slow_reader_that_goes_on_reading_loses_nothing(hub):
    one = await deaf(hub.port)
    guest = await hub.guest()
    number = 0
    while guest.link.unsent < BOUND:
        hub.party.audience.send(text_frame(b"%d " % number + CHUNK))
        number += 1
        await asyncio.sleep(0)
    waiting = asyncio.ensure_future(guest.link.drained())
    one.wake()
    for expected in range(number):
        assert await one.text() == b"%d " % expected + CHUNK
    await waiting
    assert guest.link.is_open
    one.leave()


@pytest.mark.requirement("room.close-pong-timeout")
@pytest.mark.settings(limits=LinkLimits(ping_seconds=0.05, pong_seconds=0.1, close_seconds=0.1))
async def test_a_client_that_answers_no_ping_is_closed(hub, one):
    assert await one.receive() == (PING, b"")
    opcode, payload = await one.receive()
    assert (opcode, payload[:2]) == (CLOSE, CloseCode.PONG_TIMEOUT.to_bytes(2, "big"))
    assert await one.reader.read() == b""
    guest = hub.party.guests[0]
    await guest.left.wait()
    assert hub.endpoint.closed == {CloseCode.PONG_TIMEOUT: 1}
    assert guest.ends == [(CloseCode.PONG_TIMEOUT, "No pong arrived in time.")]


@pytest.mark.settings(limits=LinkLimits(ping_seconds=0.05, pong_seconds=0.5))
async def test_a_client_that_answers_pings_stays(hub, one):
    for _ in range(4):
        assert await one.receive() == (PING, b"")
        one.send(frame(b"", PONG))
    assert hub.party.guests[0].link.is_open


@pytest.mark.settings(limits=LinkLimits(ping_seconds=0.05, pong_seconds=0.05))
async def test_a_client_whose_reading_is_paused_is_not_taken_for_gone(hub, one):
    link = (await hub.guest()).link
    link.pause_reading()
    one.send(frame(b"later"))
    for _ in range(5):
        assert await one.receive() == (PING, b"")
    assert hub.party.guests[0].heard == []
    link.resume_reading()
    while (received := await one.receive())[0] == PING:
        one.send(frame(b"", PONG))
    assert received[1] == b"later"


@pytest.mark.parametrize("abrupt", [False, True])
async def test_a_client_that_hangs_up_without_a_close_is_lost(hub, one, abrupt):
    if abrupt:
        one.writer.transport.abort()
    else:
        one.writer.write_eof()
    guest = await hub.guest()
    await guest.left.wait()
    assert (len(hub.party.audience), guest.ends) == (0, [(LOST, "")])


@pytest.mark.settings(limits=LinkLimits(close_seconds=0.1))
async def test_a_client_that_does_not_answer_a_close_loses_its_connection(hub, one):
    (await hub.guest()).link.close(4403, "go")
    assert (await one.receive())[0] == CLOSE
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await one.reader.readexactly(1)
    assert hub.endpoint.open_links == 0


async def test_clients_that_do_not_read_do_not_hold_up_the_stop():
    limits = LinkLimits(stop_seconds=0.2, close_seconds=60)
    async with opened(limits, shutdown_seconds=60) as hub:
        one = await deaf(hub.port)
        guest = await hub.guest()
        while guest.link.unsent < BOUND:
            hub.party.audience.send(text_frame(CHUNK))
            await asyncio.sleep(0)
        started = time.monotonic()
    one.leave()
    assert time.monotonic() - started < 20
