from __future__ import annotations

import asyncio
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Bus, Event, Listener, Missed, Subscription
from tests.contract.engines import BUSES

pytestmark = pytest.mark.parametrize("open_bus", BUSES)


async def receive(subscription: Subscription, count: int) -> list[Event | Missed]:
    found: list[Event | Missed] = []
    async with asyncio.timeout(300):
        async for event in subscription:
            found.append(event)
            if len(found) == count:
                break
    return found


async def until_received(bus: Bus, subscription: Subscription, data: Any) -> None:
    """Say something again and again, until it comes."""
    found: list[Event | Missed] = []
    while Event("a", data) not in found:
        bus.emit("a", data)
        found = await receive(subscription, 1)


SUBJECTS = ["room", "room.2", "room.2.message", "room.2.message.sent", "rooms", "mail.2.message"]

PATTERNS = {
    "room": ["room"],
    "room.2.message": ["room.2.message"],
    "room.*": ["room.2"],
    "room.*.message": ["room.2.message"],
    "*.*.message": ["room.2.message", "mail.2.message"],
    "*": ["room", "rooms"],
    "room.>": ["room.2", "room.2.message", "room.2.message.sent"],
    "*.2.>": ["room.2.message", "room.2.message.sent", "mail.2.message"],
    ">": SUBJECTS,
}


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_a_pattern_matches_the_subjects_it_says_and_no_other(bus, pattern):
    subscription = await bus.subscribe(pattern)
    found: list[str] = []
    async with asyncio.timeout(300):
        for subject in [*SUBJECTS, PATTERNS[pattern][0]]:
            await bus.publish(subject, None)
            if subject in PATTERNS[pattern]:
                [event] = await receive(subscription, 1)
                assert isinstance(event, Event)
                found.append(event.subject)
    assert found == [*PATTERNS[pattern], PATTERNS[pattern][0]]


async def test_events_come_in_the_order_of_publication_to_every_subscriber(bus):
    subscriptions = [await bus.subscribe("a.*") for _ in range(3)]
    for number in range(4):
        await bus.publish("a.b", number)
    for subscription in subscriptions:
        found = await receive(subscription, 4)
        assert found == [Event("a.b", number) for number in range(4)]


async def test_an_event_arrives_as_json_values_and_never_as_the_object_that_was_sent(bus):
    sent: dict[str, Any] = {"list": [1, 2], "tuple": (3,), "text": "ü"}
    first, second = await bus.subscribe("a"), await bus.subscribe("a")
    await bus.publish("a", sent)
    sent["list"].append("changed after it was sent")
    [one], [two] = await receive(first, 1), await receive(second, 1)
    assert isinstance(one, Event)
    assert isinstance(two, Event)
    assert one.data == two.data == {"list": [1, 2], "tuple": [3], "text": "ü"}
    assert one.data is not two.data


async def test_an_event_that_json_cannot_say_is_refused_when_it_is_published(bus):
    endless: list[Any] = []
    endless.append(endless)
    for event in (object(), {"f": print}, "\ud800", endless):
        with pytest.raises(e.EventUnencodable):
            await bus.publish("a", event)


async def test_an_event_over_the_size_limit_is_refused(bus):
    await bus.publish("a", "x" * 1022)
    with pytest.raises(e.EventTooLarge, match="1,025 bytes"):
        await bus.publish("a", "x" * 1023)


async def test_a_full_queue_drops_the_oldest_and_tells_of_the_gap_once(bus):
    slow = await bus.subscribe("a")
    for number in range(7):
        await bus.publish("a", number)
    expected = [Missed(3), *(Event("a", number) for number in (3, 4, 5, 6))]
    assert await receive(slow, 5) == expected
    await bus.publish("a", 7)
    assert await receive(slow, 1) == [Event("a", 7)]


async def test_a_slow_subscriber_costs_the_others_nothing(bus):
    await bus.subscribe("a")
    quick = await bus.subscribe("a")
    for number in range(50):
        await bus.publish("a", number)
        assert await receive(quick, 1) == [Event("a", number)]


async def test_closing_a_subscription_ends_its_iteration_and_drops_what_waits(bus):
    subscription = await bus.subscribe("a")
    await bus.publish("a", 1)
    await subscription.close()
    await subscription.close()
    await bus.publish("a", 2)
    assert await receive(subscription, 1) == []


async def test_closing_the_bus_ends_every_iteration_that_waits(bus):
    subscriptions = [await bus.subscribe("a") for _ in range(3)]
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(receive(each, 1)) for each in subscriptions]
        await asyncio.sleep(0)
        await bus.close()
    assert [task.result() for task in waiting] == [[], [], []]


async def test_a_closed_bus_refuses_to_publish_and_to_subscribe(bus):
    await bus.close()
    with pytest.raises(e.BusClosed):
        await bus.publish("a", 1)
    with pytest.raises(e.BusClosed):
        await bus.subscribe("a")


@pytest.mark.parametrize(
    "subject",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "a b",
        "a\n",
        "é",
        "*",
        "a.*",
        ">",
        "a.>",
        "a*",
        "x" * 300,
        "a." * 20,
    ],
)
async def test_what_is_no_subject_is_refused(bus, subject):
    with pytest.raises(e.SubjectInvalid):
        await bus.publish(subject, 1)


@pytest.mark.parametrize("pattern", ["", "a.", "a..b", "a b", ">.a", "a*", "a.b>", "**", "a\n"])
async def test_what_is_no_pattern_is_refused(bus, pattern):
    with pytest.raises(e.SubjectInvalid):
        await bus.subscribe(pattern)


async def test_a_listener_has_been_called_when_publishing_returns_and_in_the_order_of_listening(
    bus,
):
    heard: list[tuple[str, str, Any]] = []

    def listener(name: str) -> Listener:
        return lambda event: heard.append((name, event.subject, event.data))

    for number in range(5):
        bus.listen("a.*", listener(str(number)))
    end = bus.listen("a.b", listener("exact"))
    bus.emit("a.b", {"n": (1,)})
    names = ["0", "1", "2", "3", "4", "exact"]
    assert heard == [(name, "a.b", {"n": [1]}) for name in names]
    heard.clear()
    end()
    end()
    await bus.publish("a.c", None)
    await bus.publish("b", None)
    assert heard == [(name, "a.c", None) for name in names[:-1]]


async def test_a_listener_that_fails_costs_nobody_the_event(bus, caplog):
    heard: list[Event] = []

    def fail(_: Event) -> None:
        raise LookupError("not here")

    bus.listen("a", fail)
    bus.listen("a", heard.append)
    subscription = await bus.subscribe("a")
    bus.emit("a", 1)
    assert heard == await receive(subscription, 1) == [Event("a", 1)]
    assert "a listener failed" in caplog.text


async def test_a_subject_has_an_audience_while_someone_subscribed_or_listens(bus):
    subscription = await bus.subscribe("room.*")
    assert bus.has_audience("room.2")
    await subscription.close()
    end = bus.listen("room.>", lambda _: None)
    assert bus.has_audience("room.2.said")
    end()
    # One that cannot tell may say yes of others.
    assert bus.has_audience("mail.2") in (False, True)


async def test_nothing_is_missed_where_nothing_was_lost(bus):
    missed: list[bool] = []
    end = bus.listen_missed(lambda: missed.append(True))
    for number in range(20):
        bus.emit("a", number)
    end()
    end()
    assert missed == []
