"""The stream on which a server of the handshake era says what nobody asked it."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from folkmoot.core.errors import CarryError
from folkmoot.mcp.client.failures import may_recover
from folkmoot.mcp.client.streams import Stream
from folkmoot.mcp.client.weblink import EVENTS, LISTENS, OK, as_headers

if TYPE_CHECKING:
    from folkmoot.mcp.client.http import HttpLink

logger = logging.getLogger("folkmoot.proxy")


class Listening:
    """Opens the stream, and opens it again where it broke off, until there is none to be had."""

    def __init__(self, link: HttpLink, sender: dict[str, str]) -> None:
        self.begun = asyncio.Event()
        """Set once the server has said whether there is such a stream."""
        self._link = link
        self._sender = sender
        self._stream = Stream(f"get-{link.count()}", link.limits, link.deliver, link.unreadable)

    async def run(self) -> None:
        """Take what comes, over as many connections as it takes."""
        try:
            while True:
                if not await self._connect():
                    return
                await asyncio.sleep(self._stream.wait)
        finally:
            self.begun.set()

    async def _connect(self) -> bool:
        """Take what comes over one connection; whether another is worth the attempt."""
        stream = self._stream
        last = stream.resuming
        headers = as_headers(self._link.in_session(self._sender | LISTENS | last))
        try:
            async with self._link.target.ask("GET", headers) as answer:
                self.begun.set()
                if answer.status in OK and answer.content_type == EVENTS:
                    await stream.read(answer)
                    return True
                status = answer.status
        except CarryError as error:
            stream.barren += 1
            logger.debug("a stream broke", extra={"error": error.message})
            return True
        stream.barren += 1
        # 405 is how a server says that it has none.
        return may_recover(status)
