"""Messages on their way through interceptors, each connection's in their order.

A hub without interceptors has none of this: what comes goes straight to the room.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import Final

from folkmoot.core.errors import FolkmootError, InternalError
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.transport import TransportContext
from folkmoot.rooms.journal import Spawn
from folkmoot.rooms.live import LiveRoom, note_blocked
from folkmoot.rooms.model import Visitor
from folkmoot.rooms.ports import Enter, Outlet, Said

logger = logging.getLogger("folkmoot.rooms")

WEBSOCKET: Final = TransportContext.websocket()
MOST_QUEUED: Final = 64
"""Messages of a connection that may wait; it is not read while there are as many."""


class Intake:
    """The way of one connection's messages into its room."""

    def __init__(
        self, live: LiveRoom, outlet: Outlet, visitor: Visitor, enter: Enter, spawn: Spawn
    ) -> None:
        self._live = live
        self._outlet = outlet
        self._visitor = visitor
        self._enter = enter
        self._spawn = spawn
        self._queue: deque[bytes] = deque()
        self._working = False

    def put(self, data: bytes) -> None:
        """A message came."""
        self._queue.append(data)
        if len(self._queue) == MOST_QUEUED:
            self._outlet.hold()
        if not self._working:
            self._working = True
            self._spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._queue and self._outlet.is_open:
                await self._pass_on(self._queue.popleft())
                if len(self._queue) == MOST_QUEUED - 1:
                    self._outlet.release()
        finally:
            self._working = False

    async def _pass_on(self, data: bytes) -> None:
        message: bytes | McpxMessage = data
        try:
            message = self._live.machine.decode(data)
            name = self._live.name
            blocked = partial(note_blocked, name, self._visitor.principal, message)
            accept = partial(self._accept, data)
            await self._enter(Said(message, self._visitor, accept, blocked, WEBSOCKET, name))
        except FolkmootError as error:
            self._live.refuse(self._outlet, message, error)
        except Exception:
            logger.exception("an interceptor failed")
            self._live.refuse(self._outlet, message, InternalError("An interceptor failed."))

    async def _accept(self, data: bytes) -> None:
        # As it came: whatever was done to the message that was shown does not count.
        if self._outlet.is_open:
            self._live.receive(self._outlet, data)
