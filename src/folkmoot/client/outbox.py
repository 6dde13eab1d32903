"""What was sent and is not acknowledged: sent again after a lost connection, under the same id.

The hub takes an id once. A message that reached it before the connection was lost is not stored a
second time, so everything sent is stored exactly once, or refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from folkmoot.client.model import Message
from folkmoot.core import strict
from folkmoot.core.errors import AnswerLost, FolkmootError, MessageTooLarge
from folkmoot.core.mcpx import PROTOCOL

MOST_SENT: Final = 256
"""Messages that may wait for their acknowledgement; further ones wait before they are sent."""
MOST_POSTED: Final = 256
"""Messages that nobody waits for; of more than these the oldest are forgotten."""


class Sent(Struct):
    """A message on its way."""

    id: str
    data: bytes
    after: int
    """The last message known when it was made, so it is stored behind this one if at all."""
    answer: asyncio.Future[Message]


class Outbox:
    """Everything on its way, in the order it was sent."""

    def __init__(self) -> None:
        self._sent: dict[str, Sent] = {}
        self._posted: dict[str, None] = {}
        self._space = asyncio.Semaphore(MOST_SENT)
        self._write: Callable[[bytes], None] | None = None
        self._failure: FolkmootError | None = None
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
        if len(self._posted) >= MOST_POSTED:
            oldest = next(iter(self._posted))
            del self._posted[oldest]
            self._sent.pop(oldest, None)
        self._posted[id_] = None
        self._add(id_, members, after)

    def _add(self, id_: str, members: dict[str, Any], after: int) -> Sent:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        data = strict.encode({"protocol": PROTOCOL, "id": id_, **members})
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._sent[id_] = sent = Sent(id_, data, after, future)
        if self._write is not None:
            self._write(data)
        self.on_send()
        return sent

    def flow(self, write: Callable[[bytes], None]) -> None:
        """A connection is ready: what waits is sent, and what comes is sent at once."""
        self._write = write
        for sent in list(self._sent.values()):
            write(sent.data)

    def hold(self) -> None:
        """There is no connection: what comes waits."""
        self._write = None

    def acknowledge(self, message: Message) -> None:
        """A message of the room may be one of these, stored."""
        sent = self._end(message.id)
        if sent is not None and not sent.answer.done():
            sent.answer.set_result(message)

    def refuse(self, id_: str, error: FolkmootError) -> bool:
        """The hub refused a message; one that it has already is acknowledged by that."""
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
            self._fail(largest, MessageTooLarge(f"The message has {size:,} bytes: too many."))

    def missed(self, first_seq: int) -> None:
        """Give up what may have been stored where the hub's memory no longer reaches."""
        for sent in list(self._sent.values()):
            if sent.after + 1 < first_seq:
                self._fail(sent, AnswerLost("It is unknown whether the message was stored."))

    def fail(self, error: FolkmootError) -> None:
        """Nothing is sent any more."""
        self._failure = error
        self._write = None
        for sent in list(self._sent.values()):
            self._fail(sent, error)

    def _fail(self, sent: Sent, error: FolkmootError) -> None:
        posted = sent.id in self._posted
        self._end(sent.id)
        if not sent.answer.done() and not posted:
            sent.answer.set_exception(error)

    def _end(self, id_: str) -> Sent | None:
        self._posted.pop(id_, None)
        return self._sent.pop(id_, None)


def _nothing() -> None:
    pass


def _as_stored(sent: Sent, seq: int, sender: str) -> Message:
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
