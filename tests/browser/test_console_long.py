"""The console's rooms when they are large, and when they have been open for a long time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.amounts import times
from tests.browser.console import Console
from tests.browser.console_rooms import Crowd, Workers
from tests.browser.harness import Person, expect, is_like, least_of_each

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

pytestmark = [pytest.mark.browser, pytest.mark.long]

# How long the messages of an hour take; without it, as long as the hub needs for some of them.
SECONDS = float(os.environ.get("TEST_BUSY_SECONDS", "0"))
HOUR_OF_MESSAGES = 20_000 if SECONDS else times(4_000)
# Milliseconds from the beginning of a navigation until the first messages are drawn.
PAINTED = """() => new Promise((done) => {
  const look = () => document.querySelector(".message")
    ? requestAnimationFrame(() => done(performance.now()))
    : requestAnimationFrame(look);
  look();
})"""


@pytest.mark.timeout(600)
def test_a_room_with_ten_thousand_messages_of_a_hundred_people_paints_like_one_with_a_hundred(
    hub, desk
):
    ada = Person(hub, "ada")
    for name in ("small", "large"):
        ada.call("room/create", name=name)
    # As many as a page shows, so that the same number is drawn of both.
    for number in range(100):
        ada.call("room/say", room="small", text=f"Word {number}")
    tokens = [Person(hub, f"one_{number}").token for number in range(100)]
    with Crowd(hub, tokens, "large") as crowd:
        crowd.say(each=100)
        assert crowd.rooms[0].last_seq > 10_000
        page = Console(desk, hub, ada.token, "/rooms/small").live()

        def painted(name: str) -> float:
            page.page.goto(f"{page.hub}/rooms/{name}", wait_until="commit")
            milliseconds: float = page.page.evaluate(PAINTED)
            page.live()
            return milliseconds

        few, many = least_of_each(lambda: painted("small"), lambda: painted("large"))
        assert is_like(few, many), (few, many)


class Size(NamedTuple):
    """What a page has in memory, once everything that can be freed is freed."""

    heap: float
    nodes: float
    listeners: float


def size_of(session: CDPSession) -> Size:
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    found = session.send("Performance.getMetrics")["metrics"]
    metrics = {each["name"]: each["value"] for each in found}
    return Size(metrics["JSHeapUsedSize"], metrics["Nodes"], metrics["JSEventListeners"])


@pytest.mark.timeout(int(SECONDS) + 300)
def test_a_page_does_not_grow_while_a_room_says_as_much_as_in_a_busy_hour(hub, desk):
    owner = Person(hub, "owner")
    owner.call("room/create", name="busy", capabilities=["*"])
    tokens = [Person(hub, f"worker_{number}").token for number in range(4)]
    with Workers(hub, tokens, "busy") as workers:
        page = Console(desk, hub, owner.token, "/rooms/busy").live()
        session = page.context.new_cdp_session(page.page)
        session.send("Performance.enable")

        def after(share: float) -> Size:
            messages = int(HOUR_OF_MESSAGES * share)
            workers.work(messages, SECONDS * share)
            expect(page.message(f"That was {messages}.").last).to_be_visible()
            size = size_of(session)
            print(f"after {workers.rooms[0].last_seq} messages: {size}")  # noqa: T201
            return size

        # What a page keeps is there after a tenth; from then on nothing is added.
        first = after(0.1)
        half, end = after(0.4), after(0.5)
        assert page.page.locator(".message").count() <= 240
        for later in (half, end):
            for before, now, slack in zip(first, later, (1_000_000, 1_000, 100), strict=True):
                assert now <= 1.2 * before + slack, (first, half, end)
