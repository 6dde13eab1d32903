"""Marking: mail counts as read once it was handed to the client, opened or marked as unreadable."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Final, TypeAlias

from folkmoot.bridge.calls import Key, key_of
from folkmoot.bridge.device import Warn
from folkmoot.bridge.hub import SideHub
from folkmoot.core.errors import FolkmootError
from folkmoot.core.message import MessageId, Response

MOST_WAITING: Final = 256
"""Pages on their way to the client, and pages to be marked; what is beyond stays unread."""
SETTLE_SECONDS: Final = 5.0
"""How long the next look at mail waits for the last one to be marked."""

ByThread: TypeAlias = dict[str, list[str]]


class Marker:
    """Marks what was handed over, one page after the other; `run` does the work."""

    def __init__(self, hub: SideHub, warn: Warn) -> None:
        self._hub = hub
        self._warn = warn
        self._leaving: OrderedDict[Key, ByThread] = OrderedDict()
        self._handed: asyncio.Queue[ByThread] = asyncio.Queue(MOST_WAITING)

    def expect(self, message_id: MessageId, incoming: ByThread) -> None:
        """Mark these once the answer with this id has been handed over."""
        if incoming:
            self._leaving[key_of(message_id)] = incoming
            if len(self._leaving) > MOST_WAITING:
                self._leaving.popitem(last=False)

    def handed(self, message: Any) -> None:
        """A message has been handed to the client."""
        if not isinstance(message, Response) or message.id is None:
            return
        incoming = self._leaving.pop(key_of(message.id), None)
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
