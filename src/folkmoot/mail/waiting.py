"""Waiting for news instead of polling: the bus wakes, and the store says what is new."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, TypeAlias

from folkmoot.core.errors import BusError
from folkmoot.core.events import SENT, subject
from folkmoot.core.ports import Bus, Missed
from folkmoot.mail.model import Page
from folkmoot.mail.sending import Stored

LOG = logging.getLogger(__name__)

MAILBOX = "mail."

Change: TypeAlias = Literal["read", "state", "removed"]
"""What became of older messages."""


def subject_of_mailbox(user_id: str) -> str:
    """Where the bus carries the events of a mailbox.

    A new message is `{"seq", "id", "thread_id", "muted", "urgent"}`; what its owner, or the hub,
    made of older ones is `{"change", "thread_id"}`, without a thread where it may be many.
    """
    return f"{MAILBOX}{user_id}"


async def announce(bus: Bus, stored: Stored) -> None:
    """Publish a message that is committed. Whoever misses the event finds it in the store."""
    message = stored.message
    event = {
        "seq": message.seq,
        "id": message.id,
        "thread_id": message.thread_id,
        "muted": stored.muted,
        "urgent": message.priority == "urgent",
    }
    await publish(bus, subject_of_mailbox(message.to_id), event)
    sent = {"id": message.id, "thread_id": message.thread_id}
    await publish(bus, subject(SENT, message.from_id), sent)


async def announce_change(
    bus: Bus, user_ids: Iterable[str], change: Change, thread_id: str | None = None
) -> None:
    """Publish that something in these mailboxes was read, set otherwise or removed."""
    for user_id in user_ids:
        event = {"change": change, "thread_id": thread_id}
        await publish(bus, subject_of_mailbox(user_id), event)


async def publish(bus: Bus, where: str, event: dict[str, Any]) -> None:
    """Publish an event of a mailbox; its change is committed, so a bus that fails is no error."""
    try:
        await bus.publish(where, event)
    except BusError as error:
        LOG.warning("A change of a mailbox was not announced: %s", error.message)


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
    """Whether an event is a new message to wake for."""
    return "seq" in event and not event["muted"]


def is_notable(event: Any) -> bool:
    """Whether listeners are notified of an event; new messages in muted threads raise no notice."""
    return "seq" not in event or not event["muted"]


def is_urgent(event: Any) -> bool:
    """Whether an event is a new message that is urgent, in a thread that is not muted."""
    return is_loud(event) and bool(event.get("urgent"))
