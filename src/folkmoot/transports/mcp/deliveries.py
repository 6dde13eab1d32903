"""What is done after an answer has arrived, in tasks that outlive the request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING

from folkmoot.taskgroups import group

if TYPE_CHECKING:
    from folkmoot.operations.call import Delivered

logger = logging.getLogger("folkmoot.mcp")

PATIENCE_SECONDS = 2.0


class Deliveries:
    """Runs what follows a delivery; who asks again waits for it, and so sees what it did.

    A client may close its connection with the answer in hand, which cancels the request: what
    follows must not be cancelled with it.
    """

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self.under_way: dict[str, set[asyncio.Task[None]]] = {}
        """What follows answers, by user."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the tasks; on leaving, let them end."""
        async with group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                while left := tuple(chain.from_iterable(self.under_way.values())):
                    await asyncio.wait(left)

    def start(self, user_id: str, delivered: Delivered) -> None:
        """Begin what follows a delivery to this user."""
        if self._tasks is None:
            raise RuntimeError("deliveries are not running")
        task = self._tasks.create_task(self._follow(delivered))
        ours = self.under_way.setdefault(user_id, set())
        ours.add(task)

        def done(ended: asyncio.Task[None]) -> None:
            ours.discard(ended)
            if not ours and self.under_way.get(user_id) is ours:
                del self.under_way[user_id]

        task.add_done_callback(done)

    async def settled(self, user_id: str) -> None:
        """Wait until what followed this user's earlier answers is done."""
        if ours := self.under_way.get(user_id):
            await asyncio.wait(tuple(ours), timeout=PATIENCE_SECONDS)

    @staticmethod
    async def _follow(delivered: Delivered) -> None:
        try:
            await delivered()
        except Exception:
            logger.exception("what was delivered could not be marked as read")
