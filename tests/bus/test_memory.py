from __future__ import annotations

from folkmoot.bus import MemoryBus
from folkmoot.core.ports import Event, Missed


async def test_a_queue_is_bounded_by_bytes_as_well():
    bus = MemoryBus(max_event=100, max_queued=1000, max_queued_bytes=250)
    subscription = await bus.subscribe("a")
    for letter in "abcde":
        await bus.publish("a", letter * 98)
    found = []
    async for event in subscription:
        found.append(event)
        if len(found) == 3:
            break
    assert found == [Missed(3), Event("a", "d" * 98), Event("a", "e" * 98)]


async def test_a_closed_subscription_is_forgotten():
    bus = MemoryBus()
    subscriptions = [await bus.subscribe(f"a.{number}") for number in range(10)]
    assert bus.subscriptions == 10
    for subscription in subscriptions:
        await subscription.close()
    assert bus.subscriptions == 0
