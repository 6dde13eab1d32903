from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from folkmoot.bus import MemoryBus
from folkmoot.core import errors as e
from folkmoot.core.ports import Subscription
from folkmoot.mcp.server.service import McpAnswer
from folkmoot.transports.mcp.arrivals import Exchange
from folkmoot.transports.mcp.notices import Notice, Notices, Resubscriptions
from folkmoot.transports.mcp.sessions import McpSession


class SlowBus(MemoryBus):
    """A bus that is asked over a network."""

    async def subscribe(self, pattern: str) -> Subscription:
        await asyncio.sleep(0)
        return await super().subscribe(pattern)


async def notify() -> None:
    raise AssertionError("there is nothing to tell")


class Accounts:
    async def principal(self, credential_id: str) -> str:
        return credential_id


@pytest.fixture
def bus() -> SlowBus:
    return SlowBus()


@pytest.fixture
def notices(bus: SlowBus) -> Notices:
    return Notices(bus, Accounts())  # type: ignore[arg-type] - no more is asked of them


@pytest.fixture
def session() -> McpSession:
    return McpSession("one", "shown", 0.0, credential_id="mark")


async def test_a_session_has_one_subscription_however_many_it_asks_for_at_once(
    bus, notices, session
):
    async with notices.running():
        asked = (notices.subscribe(session, "user", "mark", notify) for _ in range(10))
        await asyncio.gather(*asked)
        while bus.subscriptions > 1:  # noqa: ASYNC110 - the ended ones are closing
            await asyncio.sleep(0)
        held = bus.subscriptions
    assert (held, bus.subscriptions) == (1, 0)


async def test_a_session_that_ends_while_it_subscribes_hears_nothing(bus, notices, session):
    async with notices.running():
        asking = asyncio.ensure_future(notices.subscribe(session, "user", "mark", notify))
        await asyncio.sleep(0)
        session.ended = True
        notices.unsubscribe(session)
        await asking
        await notices.subscribe(session, "user", "mark", notify)
        assert bus.subscriptions == 0


async def test_events_that_were_lost_are_told_of_as_news(bus, notices, session):
    told: asyncio.Queue[Notice] = asyncio.Queue()
    async with notices.running(), notices.listening("user", "mark") as watch:
        await notices.subscribe(session, "user", "mark", told.put)
        for subscription in bus._open:
            subscription.miss(1)
        async with asyncio.timeout(60):
            found = [await watch.next(asyncio.Event()), await told.get()]
    assert found == [Notice(), Notice()]


async def test_a_bus_that_is_closed_is_told_to_whoever_subscribes(bus, notices, session):
    await bus.close()
    async with notices.running():
        with pytest.raises(e.BusClosed):
            await notices.subscribe(session, "user", "mark", notify)


async def test_what_changes_while_a_session_resubscribes_has_it_tried_again(session):
    asked: list[str] = []
    there, renewed = asyncio.Event(), asyncio.Event()

    async def subscribe(_: Exchange, uri: str) -> McpAnswer:
        asked.append(uri)
        if len(asked) == 1:
            there.set()
            await renewed.wait()
            raise e.NotFound("The backend is not connected.")
        return McpAnswer({})

    waiting = Resubscriptions(subscribe)
    exchange: Any = SimpleNamespace(session=session, subscribed=("notes://a",))
    async with waiting.running():
        await waiting.begin(exchange, "inbox://own")
        await there.wait()
        waiting.renew()
        renewed.set()
        while waiting.of(session):  # noqa: ASYNC110 - it is subscribed in the background
            await asyncio.sleep(0)
    assert asked == ["notes://a", "notes://a"]
