"""What waits to be iterated: a bounded buffer that can say it is full."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from folkmoot.client.model import Gap, Message, make_gap
from folkmoot.core.errors import FolkmootError

MOST: Final = 1_024
MOST_BYTES: Final = 8 * 1024 * 1024
"""Beyond either the buffer is full; it takes twice as much, since what was read is there."""


class Inbox:
    """Messages that came and were not yet taken."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._messages: deque[Message] = deque()
        self._bytes = 0
        self._ready = asyncio.Event()
        self._readers = 0
        self._failure: FolkmootError | None = None
        self._ended = False
        self.unread = False
        """Whether nobody will ever take anything, so that nothing is kept."""

    @property
    def is_full(self) -> bool:
        """Whether no more should be read."""
        return len(self._messages) >= MOST or self._bytes >= MOST_BYTES

    @property
    def is_hungry(self) -> bool:
        """Whether someone waits, and nothing is here."""
        return self._readers > 0 and not self._messages

    def offer(self, message: Message) -> bool:
        """Keep a message; False when it does not fit."""
        if self.unread:
            return True
        if len(self._messages) >= 2 * MOST or self._bytes >= 2 * MOST_BYTES:
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

    async def take(self) -> Message | None:
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

    def end(self, failure: FolkmootError | None = None) -> None:
        """Nothing more comes; what is here can still be taken."""
        self._failure = self._failure or failure
        self._ended = True
        self._ready.set()
