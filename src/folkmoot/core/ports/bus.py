"""Publish and subscribe: events of committed changes, and messages between nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

__all__ = [
    "Bus",
    "Event",
    "Listener",
    "LoggedChange",
    "MessageHandler",
    "Missed",
    "MissedListener",
    "NodeBus",
    "Subscription",
]


class Event(msgspec.Struct, frozen=True):
    """Something that was published, as plain JSON values."""

    subject: str
    data: Any


class Missed(msgspec.Struct, frozen=True):
    """Events were dropped at this place in the order: re-read the store from the last cursor.

    They are as many as `count`, or more where they were lost between processes.
    """

    count: int


class Subscription(Protocol):
    """The events of one subscriber, in order, through a bounded queue.

    When the queue is full the oldest event is dropped, and one `Missed` stands for the gap.
    """

    def __aiter__(self) -> AsyncIterator[Event | Missed]:
        """What was published since, one after the other, until subscription or bus is closed."""

    async def close(self) -> None:
        """Stop receiving; what waits in the queue is dropped and the iteration ends."""


Listener: TypeAlias = Callable[[Event], None]
"""Called with an event before its publisher goes on: it forgets, marks or closes, and never waits.

What it raises is logged, and is not the publisher's.
"""

MissedListener: TypeAlias = Callable[[], None]
"""Called when events of other processes were lost, or may have been."""
LoggedChange: TypeAlias = tuple[int, str, bytes]
"""A change in a log: its number, its subject and its event as JSON."""


class Bus(Protocol):
    """Wakes and fans out. What it loses costs latency, never data: cursors re-read the store."""

    def emit(self, subject: str, event: Any, *, change: int = 0) -> None:
        """Publish without waiting; every listener has been called when it returns.

        An event with the number of a `change` can also be read from a log of changes.
        """

    def has_audience(self, subject: str) -> bool:
        """Whether anyone may receive what is published there; a bus that cannot tell says yes."""

    def listen(self, pattern: str, listener: Listener) -> Callable[[], None]:
        """Have a listener called with each event, in the order of listening; the answer ends it."""

    def listen_missed(self, listener: MissedListener) -> Callable[[], None]:
        """Have a listener called when events were lost on their way; the answer ends it."""

    def listen_doubt(self, listener: MissedListener) -> Callable[[], None]:
        """Have a listener called when all that was read before may be outdated."""

    async def publish(self, subject: str, event: Any) -> None:
        """Carry an event to everyone who subscribed to its subject, after the commit."""

    async def subscribe(self, pattern: str) -> Subscription:
        """Receive what is published from now on; `*` stands for one token, `>` for the rest."""

    async def close(self) -> None:
        """Close every subscription; whoever publishes or subscribes afterwards is refused."""


MessageHandler: TypeAlias = Callable[[str, bytes], None]
"""Called with the id of the node that sent a message, and the message."""


class NodeBus(Bus, Protocol):
    """A bus that several processes share, each of them a node."""

    @property
    def node(self) -> str:
        """The id of this process; no other process has it, nor this one after a restart."""

    @property
    def is_connected(self) -> bool:
        """Whether other nodes can be reached, as far as is known."""

    def send(self, node: str, message: bytes) -> bool:
        """Send a message to one node; False if it was not sent, and it may be lost if it was.

        Messages between two nodes arrive in their order and at most once.
        """

    def receive(self, handler: MessageHandler) -> None:
        """Have a handler called with each message that other nodes send to this one."""

    def replay(self, changes: Sequence[LoggedChange]) -> None:
        """Give this process's listeners what they have not heard of a log of changes."""

    def doubt(self) -> None:
        """Call those who `listen_doubt`."""
