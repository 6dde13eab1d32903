"""A stream of events from a server, over as many connections as it takes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from folkmoot.core.errors import MessageError, MessageTooLarge, ServerAnswerInvalid
from folkmoot.core.message import ProtocolMessage, decode_message
from folkmoot.core.transport import SseMetadata, TransportContext
from folkmoot.mcp.sse import Event, EventReader
from folkmoot.mcp.wire import EVENT_ID_HEADER

if TYPE_CHECKING:
    from folkmoot.core.strict import Limits
    from folkmoot.mcp.client.connection import Answer

LONGEST_ID: Final = 1024
"""A longer event id cannot be asked for: it would not fit into a header."""
SHORTEST_WAIT: Final = 0.05
FIRST_WAIT: Final = 0.25
LONGEST_WAIT: Final = 30.0
STEADY_SECONDS: Final = 5.0
"""A connection that held this long counts as a good one, even if it brought nothing."""

Take: TypeAlias = Callable[[ProtocolMessage, TransportContext, int], Awaitable[None]]
Unreadable: TypeAlias = Callable[[bytes, MessageError], Awaitable[None]]


class Stream:
    """One stream: its name, and what is needed to resume it."""

    def __init__(self, name: str, limits: Limits, take: Take, unreadable: Unreadable) -> None:
        self.name = name
        self.last_event_id: str | None = None
        self.barren = 0
        """How many connections in a row brought no event."""
        self._retry: float | None = None
        self._limits = limits
        self._take = take
        self._unreadable = unreadable

    @property
    def resuming(self) -> dict[str, str]:
        """The header that asks for the rest of the stream; none if the server cannot know it."""
        last = self.last_event_id
        return {} if last is None or len(last) > LONGEST_ID else {EVENT_ID_HEADER: last}

    @property
    def wait(self) -> float:
        """Seconds to wait before the next connection, by the server's wish or by our patience."""
        if self._retry is not None and self.barren <= 1:
            return min(max(self._retry, SHORTEST_WAIT), LONGEST_WAIT)
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self.barren, 16))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret

    async def read(self, answer: Answer) -> None:
        """Take every message that comes over one connection, until it ends."""
        reader = EventReader(self._limits.message_bytes)
        now = asyncio.get_running_loop().time
        began = now()
        self.barren += 1
        try:
            async for chunk in answer.content.iter_any():
                for event in reader.feed(chunk):
                    self.barren = 0
                    await self.take(event, answer)
        except MessageTooLarge as error:
            await self._unreadable(b"", error)
            raise ServerAnswerInvalid(
                f"The server's answer cannot be read: {error.message}"
            ) from None
        finally:
            if now() - began >= STEADY_SECONDS:
                self.barren = 0

    async def take(self, event: Event, answer: Answer) -> None:
        """Take one event; of what kind it is decides whether there is a message in it."""
        if event.event_id is not None:
            self.last_event_id = event.event_id or None
        if event.retry is not None:
            self._retry = event.retry
        if not event.data or event.event_type not in (None, "", "message"):
            return
        try:
            message = decode_message(event.data, self._limits)
        except MessageError as error:
            await self._unreadable(event.data, error)
            return
        metadata = SseMetadata(
            self.name, event.event_id, event.event_type, event.retry, self.last_event_id
        )
        transport = TransportContext(metadata, answer.came_over)
        await self._take(message, transport, len(event.data))
