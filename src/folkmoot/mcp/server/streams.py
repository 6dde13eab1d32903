"""Stream: what one HTTP response tells a client, kept for a while in case it does not arrive.

Events wait in the stream until its reader has written them. A reader that goes away may be followed
by another, which goes on after the last event its client has.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import Final, NamedTuple

from folkmoot.core.transport import SseMetadata, TransportContext
from folkmoot.mcp.framing import encode_event

MOST_EVENTS: Final = 256
MOST_BYTES: Final = 1024 * 1024
"""So much of a stream is kept for a client that comes back."""
UNSENT: Final = 1024 * 1024
"""So many bytes may wait for a reader before the sender waits."""
OK: Final = 200

_NUMBER: Final = re.compile("[0-9]{1,15}")


class Kept(NamedTuple):
    """One event as it is written."""

    number: int
    event_id: str | None
    data: bytes


class Fresh(NamedTuple):
    """The events that a reader has to write, as one piece, and the number of the last of them."""

    upto: int
    data: bytes


class Plain(NamedTuple):
    """An answer that was the first thing to come, and leaves without a stream."""

    status: int
    body: bytes


class Stream:
    """One stream. `resumable` gives its events ids and keeps them; a `plain` one may end as JSON.

    One that takes no `events` is for a client that reads nothing but the answer.
    """

    def __init__(
        self, name: str, *, plain: bool = False, events: bool = True, resumable: bool = True
    ) -> None:
        self.name = name
        self.events = events
        self.answer: Plain | None = None
        self.done = False
        """Whether nothing more is said in it."""
        self.begun = False
        """Whether a client may know of its events, and so come back for them."""
        self.reader: Reader | None = None
        self.unsent = 0
        self._plain = plain
        self._resumable = resumable
        self._events: deque[Kept] = deque()
        self._bytes = 0
        self._number = 0
        self._sent = 0
        self._room: list[asyncio.Future[None]] = []

    def put(
        self, raw: bytes, said: TransportContext | None, *, last: bool = False, status: int = OK
    ) -> None:
        """Say something in the stream; `last` is the answer, and then it is done."""
        if self.done:
            return
        self.done = last
        if last and self._plain and not self.begun and not self._number:
            self.answer = Plain(status, raw)
            self.unsent += len(raw)
        else:
            self._add(raw, said)
        self._wake()

    def end(self) -> None:
        """Say nothing more."""
        self.done = True
        self._wake()

    def attach(self, after: int | None = None) -> Reader:
        """A reader, in the place of the last one; it goes on there, or after an event."""
        if self.reader is not None:
            self.reader.leave()
        if after is not None:
            self._sent = after
            self.unsent = sum(len(each.data) for each in self._events if each.number > after)
        self.reader = Reader(self)
        return self.reader

    def place_of(self, event_id: str) -> int | None:
        """After which event of this stream a client goes on that has this one as its last."""
        for each in self._events:
            if each.event_id == event_id:
                return each.number
        # It may have been dropped by now; then what is left is told.
        name, _, number = event_id.rpartition("-")
        if name != self.name or not _NUMBER.fullmatch(number):
            return None
        return min(int(number), self._number)

    def first(self) -> bytes:
        """An event that says nothing, so that a client knows from the start where to come back."""
        return encode_event(b"", event_id=f"{self.name}-{self._sent}")

    async def room(self) -> None:
        """Wait until not too much is unsent, or nobody reads any more."""
        while self.unsent > UNSENT and self.reader is not None and not self.done:
            await self._turn()

    async def flushed(self) -> None:
        """Wait until not too much of what was said is unsent, also at the end of the stream."""
        while self.unsent > UNSENT and self.reader is not None:
            await self._turn()

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room.append(turn)
        await turn

    def answered(self) -> None:
        """The answer has left without a stream."""
        self.unsent = 0
        self._wake_senders()

    def fresh(self) -> Fresh:
        """What is new for the reader."""
        parts: list[bytes] = []
        for each in reversed(self._events):
            if each.number <= self._sent:
                break
            parts.append(each.data)
        parts.reverse()
        return Fresh(self._number, b"".join(parts))

    def sent(self, written: Fresh) -> None:
        """The reader has written this."""
        self._sent = written.upto
        self.unsent -= len(written.data)
        self._trim()
        self._wake_senders()

    def left(self, reader: Reader) -> None:
        """A reader is gone; the stream goes on without one."""
        if self.reader is reader:
            self.reader = None
            self._trim()
            self._wake_senders()

    def _add(self, raw: bytes, said: TransportContext | None) -> None:
        self._number += 1
        event = said.metadata if said is not None else None
        known = event if isinstance(event, SseMetadata) else None
        event_id = known.event_id if known is not None else None
        if not event_id and self._resumable:
            event_id = f"{self.name}-{self._number}"
        data = encode_event(
            raw,
            event_id=event_id or None,
            event_type=(known.event_type if known is not None else None) or "message",
            retry=known.retry_after if known is not None else None,
        )
        self._events.append(Kept(self._number, event_id, data))
        self._bytes += len(data)
        self.unsent += len(data)
        self._trim()

    def _trim(self) -> None:
        most_events, most_bytes = (MOST_EVENTS, MOST_BYTES) if self._resumable else (0, 0)
        while len(self._events) > most_events or self._bytes > most_bytes:
            first = self._events[0] if self._events else None
            if first is None:
                return
            unsent = first.number > self._sent
            if unsent and (self.reader is not None or len(self._events) == 1):
                return
            self._events.popleft()
            self._bytes -= len(first.data)
            if unsent:
                self.unsent -= len(first.data)

    def _wake(self) -> None:
        if self.reader is not None:
            self.reader.wake()

    def _wake_senders(self) -> None:
        waiting, self._room = self._room, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)


class Reader:
    """Writes a stream into one HTTP response, until it is done or the client is gone."""

    def __init__(self, stream: Stream) -> None:
        self.gone = False
        self._stream = stream
        self._news = asyncio.Event()
        self._taken: Fresh | None = None
        if stream.unsent or stream.done:
            self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for something new, or the end; whether there was any in this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

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
                return None
            self._news.clear()
            if not await self.wait(seconds):
                return b""
        return None

    def wake(self) -> None:
        """There is something new."""
        self._news.set()

    def leave(self) -> None:
        """The client is gone, or reads elsewhere."""
        if not self.gone:
            self.gone = True
            self._news.set()
            self._stream.left(self)
