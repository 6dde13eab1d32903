"""Watching: what is done for requests that take longer than most.

Their clients are watched for leaving, and hear after a while that we are there. A request that is
answered soon costs no more than an entry in a table: one timer looks after all that are new.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from folkmoot.mcp.server.responses import OPEN_SECONDS

if TYPE_CHECKING:
    from starlette.types import Receive

    from folkmoot.mcp.server.responses import Reply

logger = logging.getLogger("folkmoot.mcp")

WATCH_SECONDS: Final = 0.05
"""A request that takes longer is worth watching whether its client is still there."""


class Watched(Struct, eq=False):
    """One request; `left` is called when its client leaves."""

    receive: Receive
    left: Callable[[], object]
    reply: Reply | None
    """Opened as a stream after a while, so that nobody takes us for dead."""
    due: float
    """When it has taken longer than most."""
    leaving: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None

    async def watch(self) -> None:
        """Call `left` when the client has left."""
        await until_gone(self.receive)
        if self.reply is not None:
            self.reply.lost = True
        self.left()


class Watching:
    """All requests: those that are new, in the order they came, and those that take longer.

    `tasks` owns whoever waits for clients to leave.
    """

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._new: dict[Watched, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(
        self, receive: Receive, left: Callable[[], object], reply: Reply | None = None
    ) -> Watched:
        """Watch a request until `end`; `receive` is where its client is heard to leave."""
        loop = asyncio.get_running_loop()
        watched = Watched(receive, left, reply, loop.time() + WATCH_SECONDS)
        self._new[watched] = None
        if self._timer is None:
            self._timer = loop.call_at(watched.due, self._look)
        return watched

    def end(self, watched: Watched) -> None:
        """A request is over."""
        self._new.pop(watched, None)
        if watched.leaving is not None:
            watched.leaving.cancel()
            if watched.timer is not None:
                watched.timer.cancel()

    def _look(self) -> None:
        """See which of the new ones take longer than most; looks again while there are others."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for watched in tuple(self._new):
            if watched.due > loop.time():
                self._timer = loop.call_at(watched.due, self._look)
                return
            del self._new[watched]
            watched.leaving = self._tasks.create_task(watched.watch())
            if watched.reply is not None:
                patience = OPEN_SECONDS - WATCH_SECONDS
                watched.timer = loop.call_later(patience, watched.reply.open)


async def until_gone(receive: Receive) -> None:
    """Wait until a client has closed its connection; one that cannot be read is gone too."""
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody is there
        logger.debug("a client was lost", extra={"error": type(error).__name__})


async def leave_with(receive: Receive, leave: Callable[[], object]) -> None:
    """Call `leave` when a client has closed its connection."""
    await until_gone(receive)
    leave()


async def has_left(receive: Receive) -> bool:
    """Whether the client has closed its connection. The body of the request must have been read."""
    try:
        async with asyncio.timeout(0):
            message = await receive()
    except TimeoutError:
        return False
    return bool(message["type"] == "http.disconnect")
