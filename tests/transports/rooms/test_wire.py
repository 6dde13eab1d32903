"""What a connection to a room may send and must read, and how it ends otherwise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from tests.clocks import StillClock
from tests.transports.rooms.support import Seat, Town
from tests.transports.websocket.support import Client, deaf

LIMIT = 65_536


def message(size: int) -> str:
    """A message of exactly so many bytes."""
    empty = json.dumps({"protocol": "mcpx/v1", "kind": "chat.message", "payload": {"text": ""}})
    return empty.replace('"text": ""', f'"text": "{"x" * (size - len(empty))}"')


@pytest.mark.settings(limits={"message_bytes": LIMIT})
async def test_a_message_as_large_as_the_limit_is_heard_and_one_byte_more_is_closed(other, seat):
    whole = message(LIMIT)
    assert len(whole) == LIMIT
    await seat.socket.send(whole)
    text = json.loads(whole)["payload"]["text"]
    assert (await seat.heard(text))["seq"] == (await other.heard(text))["seq"]
    await seat.socket.send(message(LIMIT + 1))
    assert (await seat.ended()).code == CloseCode.TOO_BIG
    await other.say("and on")
    await other.heard("and on")


@pytest.mark.requirement("room.close-replaced")
async def test_a_connection_id_that_comes_back_takes_the_place_of_the_first(hub, ann, other):
    await other.hear()
    async with hub.joined(ann.token, conn="phone") as first:
        assert (await other.hear())["kind"] == "system.presence.join"
        async with hub.joined(ann.token, conn="phone") as second:
            assert (await first.ended()).code == CloseCode.REPLACED
            await second.say("here I am")
            # Nobody heard that she left or came.
            assert (await other.hear())["payload"]["text"] == "here I am"


@pytest.fixture
def clock() -> StillClock:
    """Nothing is earned while it stands."""
    return StillClock()


@pytest.mark.requirement("room.close-rate")
@pytest.mark.settings(
    limits={"frames_per_second": 2},
    rate_limits="on",
    rates={"chat_person_per_minute": 1_000_000},
)
async def test_whoever_sends_faster_than_the_rate_is_closed_and_the_others_go_on(
    clock, other, seat
):
    for number in range(10):
        await seat.say(f"{number}")
    await seat.heard("9")
    clock.seconds += 1
    for text in ("two", "more"):
        await seat.say(text)
    await seat.heard("more")
    await seat.say("one too many")
    end = await seat.ended()
    assert (end.code, end.reason) == (CloseCode.OVER_RATE, CLOSE_REASONS[CloseCode.OVER_RATE])
    await other.heard("more")
    await other.say("peace")
    await other.heard("peace")


@pytest.mark.requirement("room.every-kind-rated")
@pytest.mark.settings(rate_limits="on")
async def test_a_flood_of_thoughts_is_refused_and_its_sender_told_when_to_go_on(clock, other):
    for number in range(300):
        thought = {"kind": "reasoning.thought", "payload": {"n": number}}
        await other.send({"id": f"t{number}", **thought})
    heard: list[dict[str, Any]] = []
    while not heard or heard[-1].get("correlation_id") != ["t299"]:
        heard.append(await other.hear())
    refused = [one["payload"] for one in heard if one["kind"] == "system.error"]
    assert {one["error"] for one in refused} == {"rate_limited"}
    assert all(one["retry_after"] >= 1 for one in refused)
    # To come in counts like a message.
    assert len(refused) == 300 - 199


@pytest.mark.requirement("room.every-kind-rated")
@pytest.mark.settings(rate_limits="on")
async def test_a_flood_of_large_thoughts_does_not_fill_the_disk(tmp_path, clock, seat):
    large = {"kind": "reasoning.thought", "payload": {"text": "x" * 1_000_000}}

    async def flood() -> None:
        for number in range(24):
            await seat.send({"id": f"t{number}", **large})

    # Beside it, since the hub ends the connection of one who reads nothing meanwhile.
    flooding = asyncio.create_task(flood())
    told = await seat.hear()
    while told.get("correlation_id") != ["t23"]:
        told = await seat.hear()
    await flooding
    assert told["payload"]["error"] == "rate_limited"
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 25_000_000


@pytest.mark.settings(limits={"frames_per_second": 1})
async def test_without_rate_limits_one_may_send_as_fast_as_one_can(seat):
    for number in range(50):
        await seat.say(f"{number}")
    await seat.heard("49")


@asynccontextmanager
async def asleep(there: Town, token: str, **query: object) -> AsyncIterator[Client]:
    """A client that joins a room and reads nothing, not even the welcome, until it is told to."""
    url = urlsplit(there.url(token, **query))
    client = await deaf(url.port or 0, f"{url.path}?{url.query}")
    try:
        yield client
    finally:
        client.leave()


@pytest.mark.requirement("wire.slow-consumer")
@pytest.mark.settings(limits={"unsent_bytes": LIMIT, "message_bytes": LIMIT})
async def test_one_who_never_reads_is_closed_as_too_slow_while_the_others_go_on(hub, ann, bob):
    async def talk(seat: Seat) -> None:
        for number in range(2_000):
            await seat.say("x" * 32_000, id=f"m-{number}")
            while (told := await seat.hear()).get("id") != f"m-{number}":
                if told["kind"] == "system.presence.leave":
                    assert told["payload"]["participant"]["id"] == "bob"
                    return

    await hub.room(ann, "memory", durable=False)
    async with (
        hub.joined(ann.token, room="memory") as seat,
        asleep(hub, bob.token, room="memory") as slow,
    ):
        await talk(seat)
        await seat.say("and on")
        await seat.heard("and on")
        assert (await slow.awoken())[:2] == CloseCode.TOO_SLOW.to_bytes(2, "big")


@pytest.mark.requirement("room.close-pong-timeout")
@pytest.mark.settings(limits={"ping_seconds": 0.1, "pong_seconds": 1.5})
async def test_a_connection_that_no_longer_answers_is_found_and_its_participant_leaves(
    hub, seat, bob
):
    async with asleep(hub, bob.token) as gone:
        while (told := await seat.hear())["kind"] != "system.presence.leave":
            pass
        assert told["payload"]["participant"]["id"] == "bob"
        assert (await gone.awoken())[:2] == CloseCode.PONG_TIMEOUT.to_bytes(2, "big")


async def test_who_is_released_once_too_often_is_read_again_after_the_next_hold(hub, seat):
    assert (await seat.hear())["kind"] == "system.presence.join"
    ((outlet, _),) = next(iter(hub.hub.rooms._live)).outlets.items()
    outlet.release()
    outlet.hold()
    outlet.release()
    await seat.say("hello", id="one")
    assert (await seat.hear())["id"] == "one"
