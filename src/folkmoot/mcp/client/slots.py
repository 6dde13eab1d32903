"""Slots: so many at a time, and the others in the order they came."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """Like a semaphore, but taking a slot that is free costs next to nothing."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_free(self) -> bool:
        """Take a slot if there is one that nobody waits for; whether there was."""
        if not self._free or self._waiting:
            return False
        self._free -= 1
        return True

    async def take(self) -> None:
        """Take a slot, once there is one."""
        if self.take_free():
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # It was given at the same moment, and is somebody else's now.
                self.give()
            raise

    def give(self) -> None:
        """Give a slot back: to whoever waits longest, or to all."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
