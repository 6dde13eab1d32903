"""What is said to a server that nobody waits for: answers to its questions, and cancellations."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import CarryError, TransportClosed

if TYPE_CHECKING:
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.mcp.carrier import Carrier

logger = logging.getLogger("folkmoot.backend")

MOST_WAITING: Final = 256
"""What a server that takes nothing may leave unsent; more is dropped."""


class Outbox:
    """Sends one after the other, so that a server that is slow to accept holds nobody up."""

    def __init__(self, link: Carrier) -> None:
        self._link = link
        self._waiting: deque[ProtocolMessage] = deque()
        self._more = asyncio.Event()
        self.dropped = 0

    def put(self, message: ProtocolMessage) -> None:
        """Have something sent, unless too much waits already."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(message)
        self._more.set()

    async def run(self) -> None:
        """Send what is put in, until the link is closed."""
        while True:
            while self._waiting:
                try:
                    await self._link.send(self._waiting.popleft())
                except TransportClosed:
                    return
                except CarryError as error:
                    logger.debug("a server did not take a message", extra={"error": error.message})
            self._more.clear()
            await self._more.wait()
