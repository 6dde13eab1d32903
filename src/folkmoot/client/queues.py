"""The two queues of a room: messages that came and wait to be read, messages that wait to be sent.

Both are bounded. A full inbox stops the reading; a sent message is kept until the hub stored it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from folkmoot.client.limits import MAX_INBOX, MAX_INBOX_BYTES, MAX_POSTED, MAX_SENT
from folkmoot.client.model import Gap, Message, make_gap
from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.mcpx import PROTOCOL


class Inbox:
    """Messages that came and were not yet taken."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._messages: deque[Message] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()
        self._readers = 0
        self._failure: e.FolkmootError | None = None
        self._ended = False
        self.unread = False
        """Whether nobody will ever take anything, so that nothing is kept."""

    @property
    def is_full(self) -> bool:
        """Whether no more should be read."""
        return len(self._messages) >= MAX_INBOX or self._bytes >= MAX_INBOX_BYTES

    @property
    def is_hungry(self) -> bool:
        """Whether a reader waits and the inbox is empty."""
        return self._readers > 0 and not self._messages

    def offer(self, message: Message) -> bool:
        """Keep a message; False when it does not fit."""
        if self.unread:
            return True
        if len(self._messages) >= 2 * MAX_INBOX or self._bytes >= 2 * MAX_INBOX_BYTES:
            return False
        self._messages.append(message)
        self._bytes += len(message.raw)
        self._ready.set()
        return True

    def note(self, gap: Gap) -> None:
        """Keep a gap, always; two with nothing between them become one."""
        if self.unread:
            return
        last = self._messages[-1] if self._messages else None
        if isinstance(last, Gap):
            self._messages.pop()
            gap = make_gap(last.after, gap.seq, gap.reason)
        self._messages.append(gap)
        self._ready.set()

    def discard(self) -> None:
        """Nobody will take anything from now on."""
        self.unread = True
        self._messages.clear()
        self._bytes = 0
        self._on_change()

    async def get(self) -> Message | None:
        """The next message, or None after the end; what ended the room is raised in its place."""
        while not self._messages:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return None
            self._ready.clear()
            self._readers += 1
            self._on_change()
            try:
                await self._ready.wait()
            finally:
                self._readers -= 1
        message = self._messages.popleft()
        self._bytes -= len(message.raw)
        self._on_change()
        return message

    def end(self, failure: e.FolkmootError | None = None) -> None:
        """Nothing more comes; what is here can still be taken."""
        self._failure = self._failure or failure
        self._ended = True
        self._ready.set()


class SentMessage(Struct):
    id: str
    data: bytes
    after: int
    """The last message known when it was made, so it is stored behind this one if at all."""
    answer: asyncio.Future[Message]


class Outbox:
    """Everything on its way, in the order it was sent."""

    def __init__(self) -> None:
        self._sent: dict[str, SentMessage] = {}
        self._posted: dict[str, None] = {}
        self._space = asyncio.Semaphore(MAX_SENT)
        self._write: Callable[[bytes], None] | None = None
        self._failure: e.FolkmootError | None = None
        self.sender = ""
        """Who this program is, for a message whose echo was missed."""
        self.on_send: Callable[[], None] = _nothing

    def __len__(self) -> int:
        return len(self._sent)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sent)

    async def send(self, id_: str, members: dict[str, Any], after: int) -> Message:
        """Send a message and answer it as it was stored; a refusal is raised."""
        async with self._space:
            sent = self._add(id_, members, after)
            try:
                return await sent.answer
            finally:
                self._sent.pop(id_, None)

    def post(self, id_: str, members: dict[str, Any], after: int) -> None:
        """Send a message whose fate does not matter."""
        if self._failure is not None:
            return
        if len(self._posted) >= MAX_POSTED:
            oldest = next(iter(self._posted))
            del self._posted[oldest]
            self._sent.pop(oldest, None)
        self._posted[id_] = None
        self._add(id_, members, after)

    def _add(self, id_: str, members: dict[str, Any], after: int) -> SentMessage:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        data = strict.encode({"protocol": PROTOCOL, "id": id_, **members})
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._sent[id_] = sent = SentMessage(id_, data, after, future)
        if self._write is not None:
            self._write(data)
        self.on_send()
        return sent

    def whisper(self, members: dict[str, Any]) -> None:
        """Send a message that the room does not store, if there is a connection."""
        if self._write is not None:
            self._write(strict.encode({"protocol": PROTOCOL, **members}))

    def flow(self, write: Callable[[bytes], None]) -> None:
        """A connection is ready: what waits is sent, and what comes is sent at once."""
        self._write = write
        for sent in list(self._sent.values()):
            write(sent.data)

    def hold(self) -> None:
        """Queue messages while there is no connection."""
        self._write = None

    def acknowledge(self, message: Message) -> None:
        """A message of the room may be one of these, stored."""
        sent = self._end(message.id)
        if sent is not None and not sent.answer.done():
            sent.answer.set_result(message)

    def refuse(self, id_: str, error: e.FolkmootError) -> bool:
        """Settle a refused message; a refusal as duplicate counts as acknowledged."""
        sent = self._sent.get(id_)
        if sent is None:
            return False
        seq = error.data.get("seq")
        if error.code == "id_used" and type(seq) is int:
            self.acknowledge(_as_stored(sent, seq, self.sender))
        else:
            self._fail(sent, error)
        return True

    def refuse_largest(self) -> None:
        """A message was larger than the hub reads; no other can have been meant."""
        if self._sent:
            largest = max(self._sent.values(), key=lambda sent: len(sent.data))
            size = len(largest.data)
            self._fail(largest, e.MessageTooLarge(f"The message has {size:,} bytes: too many."))

    def missed(self, first_seq: int) -> None:
        """Give up what may have been stored where the hub's memory no longer reaches."""
        for sent in list(self._sent.values()):
            if sent.after + 1 < first_seq:
                self._fail(sent, e.AnswerLost("It is unknown whether the message was stored."))

    def fail(self, error: e.FolkmootError) -> None:
        """Nothing is sent any more."""
        self._failure = error
        self._write = None
        for sent in list(self._sent.values()):
            self._fail(sent, error)

    def _fail(self, sent: SentMessage, error: e.FolkmootError) -> None:
        posted = sent.id in self._posted
        self._end(sent.id)
        if not sent.answer.done() and not posted:
            sent.answer.set_exception(error)

    def _end(self, id_: str) -> SentMessage | None:
        self._posted.pop(id_, None)
        return self._sent.pop(id_, None)


def _nothing() -> None:
    pass


def _as_stored(sent: SentMessage, seq: int, sender: str) -> Message:
    """A message whose echo was missed; all but the time is known."""
    members = msgspec.json.decode(sent.data)
    return Message(
        seq=seq,
        id=sent.id,
        sender=sender,
        kind=members["kind"],
        payload=members.get("payload", {}),
        to=tuple(members.get("to", ())),
        correlation_id=tuple(members.get("correlation_id", ())),
        context=members.get("context"),
        raw=sent.data,
    )
