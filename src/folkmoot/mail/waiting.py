"""Waiting for news instead of polling: the bus wakes, and the store says what is new."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal, TypeAlias

from folkmoot.core.events import LAST_READ, subject
from folkmoot.core.ports import Bus, Missed, Tx
from folkmoot.mail.model import MailPage
from folkmoot.mail.sending import MAILBOX

Change: TypeAlias = Literal["read", "state", "removed"]
"""What became of older messages."""


def subject_of_mailbox(user_id: str) -> str:
    """Where the bus carries the events of a mailbox.

    A new message is `{"seq", "id", "thread_id", "muted", "urgent"}`; what its owner, or the hub,
    made of older ones is `{"change", "thread_id"}`, without a thread where it may be many.
    """
    return f"{MAILBOX}{user_id}"


def publish_change(
    tx: Tx, user_ids: Iterable[str], change: Change, thread_id: str | None = None
) -> None:
    """Within a unit: have announced that something was read, set otherwise or removed."""
    for user_id in user_ids:
        tx.publish(subject_of_mailbox(user_id), {"change": change, "thread_id": thread_id})


def publish_marked(tx: Tx, user_id: str, marked: int, thread_id: str | None = None) -> None:
    """Within a unit: have announced that messages were marked read, though perhaps none was new."""
    if marked:
        publish_change(tx, (user_id,), "read", thread_id)
    else:
        tx.publish(subject(LAST_READ, user_id))


async def wait_for_page(
    bus: Bus, user_id: str, seconds: float, look: Callable[[], Awaitable[MailPage | None]]
) -> MailPage | None:
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
