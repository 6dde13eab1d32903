"""Stream: what one HTTP response tells a client, kept for a while in case it does not arrive.

Events wait in the stream until its reader has written them. A reader that goes away may be followed
by another, which goes on after the last event its client has. `resumable` says which streams are
kept, and for how long.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from folkmoot.core.transport import SseMetadata, TransportContext
from folkmoot.mcp.framing import encode_event
from folkmoot.taskgroups import waited

if TYPE_CHECKING:
    from folkmoot.mcp.server.resumable import ResumableStreams

MOST_EVENTS: Final = 256
MOST_BYTES: Final = 1024 * 1024
"""So much of a stream is kept for a client that comes back, or for one that reads slowly."""
UNSENT: Final = 1024 * 1024
"""So many bytes may wait for a reader before the sender waits."""
RETRY_SECONDS: Final = 1.0
"""After so long a client whose connection broke comes back."""
OK: Final = 200

_NUMBER: Final = re.compile("[0-9]{1,15}")


class Weight(Enum):
    """What is dropped first when a client does not keep up."""

    PROGRESS = 0
    """A later one says more."""
    LOG = 1
    QUESTION = 2
    """Never dropped; there are few, and someone waits for the answer."""


DROPPED: Final = (Weight.PROGRESS, Weight.LOG)
"""What may be dropped, in this order."""


class KeptEvent(NamedTuple):
    number: int
    event_id: str | None
    data: bytes
    weight: Weight


class FreshEvents(NamedTuple):
    """The events that a reader has to write, as one piece, and the number of the last of them."""

    upto: int
    data: bytes


class PlainAnswer(NamedTuple):
    """An answer that was the first thing to come, and leaves without a stream."""

    status: int
    body: bytes


class Stream:
    """One stream. A `keeper` keeps it, once something is said in it, and gives its events ids.

    A `plain` one may end as JSON. One that takes no `events` is for a client that reads nothing but
    the answer. A `lossy` one drops progress and log messages where another would have their sender
    wait. A `listening` one answers no request.
    """

    def __init__(
        self,
        *,
        plain: bool = False,
        events: bool = True,
        lossy: bool = False,
        listening: bool = False,
        keeper: ResumableStreams | None = None,
    ) -> None:
        self.name = ""
        self.listening = listening
        self.events = events
        self.answer: PlainAnswer | None = None
        self.done = False
        self.arrived = False
        """Whether all of it was written to a client that was there."""
        self.begun = False
        """Whether a client may know of its events, and so come back for them."""
        self.primed = False
        """Whether it begins with an event that only says where to come back."""
        self.reader: StreamReader | None = None
        self.unsent = 0
        self.abandoned: Callable[[], None] | None = None
        """Called if it is given up before it is done; without it, it is kept until then."""
        self.delivered: Callable[[], None] | None = None
        """Called when it has arrived."""
        self._plain = plain
        self._lossy = lossy
        self._keeper = keeper
        self._events: deque[KeptEvent] = deque()
        self._bytes = 0
        self._number = 0
        self._sent = 0
        self._taken = 0
        """The number of the last event that is being written."""
        self._lost = 0
        """The number of the last event that nobody can have any more."""
        self._thinned = 0
        """The number of the last log message that was dropped."""
        self._foreign = False
        """Whether events came with the ids of another server's stream."""
        self._room: list[asyncio.Future[None]] = []

    @property
    def size(self) -> int:
        """The number of bytes that the stream keeps."""
        return self._bytes

    @property
    def resumable(self) -> bool:
        """Whether the client can resume the stream."""
        return self._keeper is not None and bool(self.name)

    def put(
        self,
        raw: bytes,
        said: TransportContext | None = None,
        *,
        last: bool = False,
        status: int = OK,
        weight: Weight = Weight.QUESTION,
    ) -> None:
        """Say something in the stream; `last` is the answer, and then it is done."""
        if self.done:
            return
        self.done = last
        if last and self._plain and not self.begun and not self._number:
            self.answer = PlainAnswer(status, raw)
            self.unsent += len(raw)
        else:
            self._add(raw, said, weight)
        self._wake()
        if last:
            self._tell_keeper()

    def end(self) -> None:
        """Say nothing more."""
        self.done = True
        self._wake()
        self._tell_keeper()

    def discard(self) -> None:
        """Close the stream without keeping it."""
        if self._keeper is not None and self.name:
            self._keeper.forget(self)
        else:
            self.close()

    def close(self) -> None:
        """Drop all kept events, and release readers and writers."""
        unfinished, self.done, self._keeper = not self.done, True, None
        self._events.clear()
        self._bytes = self.unsent = 0
        if self.reader is not None:
            self.reader.leave()
        self._wake_senders()
        if unfinished and self.abandoned is not None:
            self.abandoned()

    def give_way(self) -> bool:
        """Keep nothing that was written already; whether somebody reads the rest."""
        while self._events and self._events[0].number <= self._sent:
            self._drop(0)
        return self.reader is not None

    def attach(self, after: int | None = None) -> StreamReader:
        """A reader, in the place of the last one; it goes on there, or after an event."""
        if self.reader is not None:
            self.reader.leave()
        if after is not None:
            self._sent = self._taken = after
            self.unsent = sum(len(each.data) for each in self._events if each.number > after)
        self.reader = StreamReader(self)
        self._tell_keeper()
        return self.reader

    @property
    def waiting(self) -> int:
        """How many events nobody has begun to write."""
        count = 0
        for each in reversed(self._events):
            if each.number <= self._taken:
                break
            count += 1
        return count

    def drop_waiting(self) -> None:
        """Drop the events not being written yet; no client can resume before the next one."""
        while self._events and self._events[-1].number > self._taken:
            self._lost = max(self._lost, self._events[-1].number)
            self._drop(len(self._events) - 1)

    def place_of(self, event_id: str) -> int | None:
        """The place to resume after the event with this id.

        None if it is no event of this stream, or what follows it cannot be had any more.
        """
        place = None
        name, _, number = event_id.rpartition("-")
        if name == self.name and _NUMBER.fullmatch(number):
            place = int(number)
        elif self._foreign:
            place = next((each.number for each in self._events if each.event_id == event_id), None)
        return None if place is None or not self._lost <= place <= self._number else place

    def is_thinned(self, after: int) -> bool:
        """Whether log messages were dropped of what follows an event."""
        return after < self._thinned

    def first(self) -> bytes:
        """An event that says nothing, so that a client knows from the start where to come back."""
        self._begin()
        return encode_event(b"", event_id=f"{self.name}-{self._sent}", retry=RETRY_SECONDS)

    async def room(self) -> None:
        """Wait until not too much is unsent, or nobody reads any more."""
        while self.unsent > UNSENT and self.reader is not None and not self.done:
            await self._turn()

    async def flushed(self, most: int = UNSENT) -> None:
        """Wait until no more than so much is unsent, also at the end of the stream."""
        while self.unsent > most and self.reader is not None:
            await self._turn()

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room.append(turn)
        await turn

    def answered(self) -> None:
        """The answer has left without a stream."""
        self.unsent = 0
        self._wake_senders()

    def fresh(self) -> FreshEvents:
        """What is new for the reader."""
        parts: list[bytes] = []
        for each in reversed(self._events):
            if each.number <= self._sent:
                break
            parts.append(each.data)
        parts.reverse()
        self._taken = self._number
        return FreshEvents(self._number, b"".join(parts))

    def sent(self, written: FreshEvents) -> None:
        """The reader has written this."""
        self._sent = written.upto
        self.unsent -= len(written.data)
        self._trim()
        self._wake_senders()

    def read(self) -> None:
        """Everything was written to a connected client."""
        self.arrived = True
        delivered, self.delivered = self.delivered, None
        if delivered is not None:
            delivered()

    def left(self, reader: StreamReader) -> None:
        """A reader is gone; the stream goes on without one."""
        if self.reader is reader:
            self.reader = None
            self._taken = self._sent
            if self._keeper is None:
                # Nobody can come back to it.
                self.done = True
                self._events.clear()
            self._trim()
            self._wake_senders()
            self._tell_keeper()

    def _begin(self) -> None:
        if self._keeper is not None and not self.name:
            self._keeper.enter(self)

    def _tell_keeper(self) -> None:
        if self._keeper is not None and self.name:
            self._keeper.attended(self)

    def _add(self, raw: bytes, said: TransportContext | None, weight: Weight) -> None:
        self._begin()
        if self.name and self._keeper is None:
            # There was no room for it.
            return
        event = said.metadata if said is not None else None
        known = event if isinstance(event, SseMetadata) else None
        self._number += 1
        event_id = known.event_id if known is not None else None
        self._foreign = self._foreign or bool(event_id)
        if not event_id and self._keeper is not None:
            event_id = f"{self.name}-{self._number}"
        data = encode_event(
            raw,
            event_id=event_id or None,
            event_type=(known.event_type if known is not None else None) or "message",
            retry=known.retry_after if known is not None else None,
        )
        kept = KeptEvent(self._number, event_id, data, weight)
        if self._lossy and weight in DROPPED and len(data) > MOST_BYTES:
            self._miss(kept)
            return
        if not self.done:
            self._trim(len(data))
        self._events.append(kept)
        self.unsent += len(data)
        self._resize(len(data))

    def _trim(self, more: int = 0) -> None:
        """Drop events over the budget: written ones first, then those that may be missed."""
        if self._keeper is None:
            self.give_way()
        count = MOST_EVENTS - bool(more)
        while len(self._events) > count or self._bytes + more > MOST_BYTES:
            place = self._place_to_drop()
            if place is None:
                return
            self._drop(place)

    def _place_to_drop(self) -> int | None:
        if self._events and self._events[0].number <= self._sent:
            return 0
        if self.reader is None or self._lossy:
            for weight in DROPPED:
                for place, each in enumerate(self._events):
                    if each.weight is weight and each.number > self._taken:
                        return place
        return None

    def _drop(self, place: int) -> None:
        kept = self._events[place]
        del self._events[place]
        if kept.number > self._sent:
            self.unsent -= len(kept.data)
        self._miss(kept)
        self._resize(-len(kept.data))

    def _miss(self, kept: KeptEvent) -> None:
        if kept.weight is Weight.LOG:
            self._thinned = max(self._thinned, kept.number)
        elif kept.weight is Weight.QUESTION:
            self._lost = max(self._lost, kept.number)

    def _resize(self, change: int) -> None:
        self._bytes += change
        if self._keeper is not None:
            self._keeper.resized(self, change)

    def _wake(self) -> None:
        if self.reader is not None:
            self.reader.wake()

    def _wake_senders(self) -> None:
        waiting, self._room = self._room, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)


class StreamReader:
    """Writes a stream into one HTTP response, until it is done or the client is gone."""

    def __init__(self, stream: Stream) -> None:
        self.gone = False
        self._stream = stream
        self._news = asyncio.Event()
        self._taken: FreshEvents | None = None
        if stream.unsent or stream.done:
            self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for something new, or the end; whether there was any in this time."""
        return await waited(self._news, seconds)

    async def more(self, seconds: float) -> bytes | None:
        """What is new, nothing after so long a silence, or None at the end."""
        stream = self._stream
        written, self._taken = self._taken, None
        if written is not None and not self.gone:
            stream.sent(written)
        while not self.gone:
            fresh = stream.fresh()
            if fresh.data:
                self._taken = fresh
                return fresh.data
            if stream.done:
                stream.read()
                return None
            self._news.clear()
            if not await self.wait(seconds):
                return b""
        return None

    def wake(self) -> None:
        """There are new events."""
        self._news.set()

    def leave(self) -> None:
        """The client is gone, or reads elsewhere."""
        if not self.gone:
            self.gone = True
            self._news.set()
            self._stream.left(self)
