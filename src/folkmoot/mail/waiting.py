"""Waiting for news instead of polling: the bus wakes, and the store says what is new."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from folkmoot.core.errors import BusError
from folkmoot.core.ports import Bus, Missed
from folkmoot.mail.model import Page
from folkmoot.mail.sending import Stored

LOG = logging.getLogger(__name__)

MOST_SECONDS = 55


def subject_of_mailbox(user_id: str) -> str:
    """Where the bus tells of new messages for someone: `{"seq", "thread_id", "muted"}`."""
    return f"mail.{user_id}"


async def announce(bus: Bus, stored: Stored) -> None:
    """Tell of a message that is committed. Whoever misses it finds it in the store."""
    message = stored.message
    event = {"seq": message.seq, "thread_id": message.thread_id, "muted": stored.muted}
    try:
        await bus.publish(subject_of_mailbox(message.to_id), event)
    except BusError as error:
        LOG.warning("A new message was not announced: %s", error.message)


async def wait_for_page(
    bus: Bus, user_id: str, seconds: float, look: Callable[[], Awaitable[Page | None]]
) -> Page | None:
    """The first page that looking brings, now or after something was announced; or nothing.

    It only looks: whoever is cancelled here has changed nothing.
    """
    # Subscribed before the first look, so that nothing falls between the two.
    subscription = await bus.subscribe(subject_of_mailbox(user_id))
    try:
        page = await look()
        if page is None:
            async with asyncio.timeout(seconds):
                async for event in subscription:
                    if isinstance(event, Missed) or is_loud(event.data):
                        page = await look()
                    if page is not None:
                        await subscription.close()
    except TimeoutError:
        return None
    finally:
        await subscription.close()
    return page


def is_loud(event: Any) -> bool:
    """Whether an announced message is one to wake for."""
    return not event["muted"]
