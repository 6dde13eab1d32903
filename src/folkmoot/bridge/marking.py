"""Marking: mail counts as read once it was handed to the client, opened or marked as unreadable."""

from __future__ import annotations

import asyncio
from typing import Any, Final, TypeAlias

from folkmoot.bridge.calls import Envelope
from folkmoot.bridge.device import Warn
from folkmoot.bridge.hub import SideHub
from folkmoot.core.errors import FolkmootError
from folkmoot.core.message import Response

MOST_WAITING: Final = 256
"""Pages to be marked; what is beyond stays unread."""
SETTLE_SECONDS: Final = 5.0
"""How long the next look at mail waits for the last one to be marked."""

ByThread: TypeAlias = dict[str, list[str]]


class Marker:
    """Marks what was handed over, one page after the other; `run` does the work."""

    def __init__(self, hub: SideHub, warn: Warn) -> None:
        self._hub = hub
        self._warn = warn
        self._handed: asyncio.Queue[ByThread] = asyncio.Queue(MOST_WAITING)

    def expect(self, notes: dict[Any, Any], incoming: ByThread) -> None:
        """Mark these once the answer to the request with these notes has been handed over."""
        if incoming:
            notes[self] = incoming

    def handed(self, envelope: Envelope) -> None:
        """A message has been handed to the client."""
        if not isinstance(envelope.message, Response):
            return
        incoming = envelope.context.notes.pop(self, None)
        if incoming is None:
            return
        try:
            self._handed.put_nowait(incoming)
        except asyncio.QueueFull:
            self._warn("too much is to be marked as read at once; some mail stays unread.")

    async def settled(self) -> None:
        """Wait until everything handed over is marked, for a while."""
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._handed.join()
        except TimeoutError:
            self._warn("the hub is slow to mark mail as read.")

    async def run(self) -> None:
        """Mark, for as long as this runs."""
        while True:
            incoming = await self._handed.get()
            try:
                for thread_id, message_ids in incoming.items():
                    await self._mark(thread_id, message_ids)
            finally:
                self._handed.task_done()

    async def _mark(self, thread_id: str, message_ids: list[str]) -> None:
        try:
            await self._hub.call("msg/mark_read", thread_id=thread_id, message_ids=message_ids)
        except FolkmootError as error:
            self._warn(f"mail that was read stays unread: {error.message}")
