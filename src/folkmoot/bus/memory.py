"""The bus within one process; it encodes and decodes as a bus between processes would."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from folkmoot.bus.limits import MAX_EVENT, MAX_QUEUED_EVENT_BYTES, MAX_QUEUED_EVENTS
from folkmoot.bus.subjects import SubjectIndex, check_pattern, check_subject
from folkmoot.core import errors as e
from folkmoot.core.ports import Event, Listener, Missed, MissedListener

logger = logging.getLogger("folkmoot.bus")


class Listening(NamedTuple):
    """A listener, and how many listened before it."""

    number: int
    listener: Listener


class MemoryBus:
    """`core.ports.Bus` for a hub of one process."""

    node = ""
    """The id of this process among those that share the bus: none, as none do."""

    def __init__(
        self,
        *,
        max_event: int = MAX_EVENT,
        max_queued: int = MAX_QUEUED_EVENTS,
        max_queued_bytes: int = MAX_QUEUED_EVENT_BYTES,
    ) -> None:
        self._index: SubjectIndex[MemorySubscription] = SubjectIndex()
        self._open: set[MemorySubscription] = set()
        self._listeners: SubjectIndex[Listening] = SubjectIndex()
        self._missed_listeners: dict[int, MissedListener] = {}
        self._doubt_listeners: dict[int, MissedListener] = {}
        self._numbers = count()
        self._limits = (max_queued, max_queued_bytes)
        self._max_event = max_event
        self._closed = False

    @property
    def dropped(self) -> Counter[str] | None:
        """How many frames between processes were dropped; None where there are none."""
        return None

    async def check(self) -> None:
        """Raise unless other processes could be reached; here there are none."""

    async def start(self, key: bytes) -> None:
        """Reach other processes with a key that they have too; here there are none."""

    @property
    def subscriptions(self) -> int:
        return len(self._open)

    async def publish(self, subject: str, event: Any) -> None:
        """Carry an event to everyone who subscribed to its subject, after the commit."""
        self.emit(subject, event)

    def emit(self, subject: str, event: Any, *, change: int = 0) -> None:  # noqa: ARG002
        """Publish without waiting; every listener has been called when it returns."""
        if self._closed:
            raise e.BusClosed("The bus is closed.")
        tokens = check_subject(subject)
        self._deliver(subject, tokens, self._encode(subject, event))

    def _deliver(self, subject: str, tokens: Sequence[str], data: bytes) -> None:
        """Call the listeners of this process, then wake its subscribers."""
        # No two have one number, so listeners themselves are never compared.
        for _, listener in sorted(self._listeners.match(tokens)):
            try:
                listener(Event(subject, msgspec.json.decode(data)))
            except Exception:
                logger.exception("a listener failed", extra={"subject": subject})
        for subscription in self._index.match(tokens):
            subscription.offer(subject, data)

    def has_audience(self, subject: str) -> bool:
        """Whether anyone listens or subscribed there."""
        tokens = subject.split(".")
        return bool(self._listeners.match(tokens) or self._index.match(tokens))

    def listen(self, pattern: str, listener: Listener) -> Callable[[], None]:
        """Have a listener called with each event, in the order of listening; the answer ends it."""
        tokens = check_pattern(pattern)
        listening = Listening(next(self._numbers), listener)
        self._listeners.add(tokens, listening)
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._listeners.remove(tokens, listening)

        return end

    def listen_missed(self, listener: MissedListener) -> Callable[[], None]:
        """Have a listener called when events were lost on their way; here none ever is."""
        return self._add(self._missed_listeners, listener)

    def listen_doubt(self, listener: MissedListener) -> Callable[[], None]:
        """Have a listener called when all that was read before may be outdated: here never."""
        return self._add(self._doubt_listeners, listener)

    def _add(
        self, table: dict[int, MissedListener], listener: MissedListener
    ) -> Callable[[], None]:
        number = next(self._numbers)
        table[number] = listener

        def end() -> None:
            table.pop(number, None)

        return end

    def _encode(self, subject: str, event: Any) -> bytes:
        try:
            data = msgspec.json.encode(event)
        except (TypeError, ValueError, RecursionError) as error:
            raise e.EventUnencodable(
                f"The event on {subject} cannot be written as JSON."
            ) from error
        if len(data) > self._max_event:
            raise e.EventTooLarge(
                f"The event on {subject} has {len(data):,} bytes; "
                f"the bus carries at most {self._max_event:,}."
            )
        return data

    async def subscribe(self, pattern: str) -> MemorySubscription:
        """Receive what is published from now on; `*` stands for one token, `>` for the rest."""
        if self._closed:
            raise e.BusClosed("The bus is closed.")
        tokens = check_pattern(pattern)
        subscription = MemorySubscription(self, tokens, *self._limits)
        self._index.add(tokens, subscription)
        self._open.add(subscription)
        return subscription

    def forget(self, subscription: MemorySubscription, tokens: list[str]) -> None:
        """Carry nothing more to a subscription."""
        if subscription in self._open:
            self._open.remove(subscription)
            self._index.remove(tokens, subscription)

    async def close(self) -> None:
        """Close every subscription; whoever publishes or subscribes afterwards is refused."""
        self._closed = True
        for subscription in list(self._open):
            await subscription.close()


class MemorySubscription(Struct, eq=False):
    """`core.ports.Subscription`: bounded by events and by bytes, for one consumer."""

    bus: MemoryBus
    tokens: list[str]
    max_queued: int
    max_queued_bytes: int
    _queue: deque[tuple[str, bytes]] = field(default_factory=deque)
    _queued_bytes: int = 0
    _missed: int = 0
    _closed: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, subject: str, data: bytes) -> None:
        """Queue an event; what no longer fits is dropped, the oldest first."""
        self._queue.append((subject, data))
        self._queued_bytes += len(data)
        while len(self._queue) > self.max_queued or self._queued_bytes > self.max_queued_bytes:
            self._queued_bytes -= len(self._queue.popleft()[1])
            self._missed += 1
        self._news.set()

    def miss(self, count: int) -> None:
        """Tell that events were lost before they came here."""
        self._missed += count
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Event | Missed]:
        while True:
            await self._news.wait()
            if self._closed:
                return
            if self._missed:
                missed, self._missed = self._missed, 0
                yield Missed(missed)
            elif self._queue:
                subject, data = self._queue.popleft()
                self._queued_bytes -= len(data)
                yield Event(subject, msgspec.json.decode(data))
            else:
                self._news.clear()

    async def close(self) -> None:
        """Stop receiving; what waits in the queue is dropped and the iteration ends."""
        self.bus.forget(self, self.tokens)
        self._closed = True
        self._queue.clear()
        self._news.set()
