"""What was received and nobody has taken yet: bounded, so that whoever reads on waits."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.errors import TransportClosed

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.mcp.peer import Tag

MOST_MESSAGES: Final = 1024
MOST_BYTES: Final = 8 * 1024 * 1024


class Inbox:
    """Envelopes in the order they came, from many streams to one taker; nothing is dropped."""

    def __init__(self, ending: str = "The link to the server is closed.") -> None:
        self._ending = ending
        """What whoever takes is told once there is nothing more."""
        self._held: deque[tuple[MessageEnvelope[Any], int, Tag]] = deque()
        self._bytes = 0
        self._ended = False
        self._came = asyncio.Event()
        self._putting: deque[asyncio.Future[None]] = deque()
        """Who waits for room, in the order they came."""

    def __len__(self) -> int:
        return len(self._held)

    async def put(self, envelope: MessageEnvelope[Any], size: int, tag: Tag = None) -> None:
        """Add a message, with the request on whose stream it came, once there is room.

        After the end it goes nowhere.
        """
        while self._full and not self._ended:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._putting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    # The turn that came at the same moment is somebody else's now.
                    self._next_turn()
                raise
        if self._ended:
            return
        self._held.append((envelope, size, tag))
        self._bytes += size
        self._came.set()
        self._next_turn()

    def add(self, envelope: MessageEnvelope[Any]) -> None:
        """Add a message of our own, which waits for no room."""
        if not self._ended:
            self._held.append((envelope, 0, None))
            self._came.set()

    async def get(self) -> MessageEnvelope[Any]:
        """The next message; `TransportClosed` once there is none and none comes any more."""
        return (await self.get_tagged())[0]

    async def get_tagged(self) -> tuple[MessageEnvelope[Any], Tag]:
        """The next message, and the request on whose stream it came."""
        while not self._held:
            if self._ended:
                raise TransportClosed(self._ending)
            self._came.clear()
            await self._came.wait()
        envelope, size, tag = self._held.popleft()
        self._bytes -= size
        self._next_turn()
        return envelope, tag

    def end(self) -> None:
        """Take nothing more."""
        self._ended = True
        self._came.set()
        while self._putting:
            self._wake(self._putting.popleft())

    @property
    def _full(self) -> bool:
        return len(self._held) >= MOST_MESSAGES or self._bytes >= MOST_BYTES

    def _next_turn(self) -> None:
        while self._putting and not self._full:
            turn = self._putting.popleft()
            if self._wake(turn):
                return

    @staticmethod
    def _wake(turn: asyncio.Future[None]) -> bool:
        if turn.done():
            return False
        turn.set_result(None)
        return True
