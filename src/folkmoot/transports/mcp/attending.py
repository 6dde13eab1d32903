"""Attending: what is done for a call that takes longer than most.

Its client is watched, if it may leave, and hears after a while that we are there. A call that is
answered soon costs no more than an entry in a table: one timer looks after all that are new.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from folkmoot.transports.mcp.line import OPEN_SECONDS

if TYPE_CHECKING:
    from starlette.types import Receive

    from folkmoot.transports.mcp.line import Line
    from folkmoot.transports.mcp.opencalls import OpenCall

logger = logging.getLogger("folkmoot.mcp")

WATCH_SECONDS: Final = 0.05
"""A call that takes longer is worth watching whether its client is still there."""


class Attended:
    """One call."""

    __slots__ = ("_call", "_leaving", "_line", "_receive", "_timer", "due")

    def __init__(self, line: Line, call: OpenCall, receive: Receive | None, due: float) -> None:
        self._line = line
        self._call = call
        self._receive = receive
        self._leaving: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.due = due
        """When it has taken longer than most."""

    def begin(self) -> None:
        """It takes longer than most."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(OPEN_SECONDS - WATCH_SECONDS, self._line.open)
        if self._receive is not None:
            self._leaving = self._line.tasks.create_task(self._leave(self._receive))

    def end(self) -> None:
        """Nothing is to be done any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._leaving is not None:
            self._leaving.cancel()

    async def _leave(self, receive: Receive) -> None:
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        except Exception as error:  # noqa: BLE001 - a connection that cannot be read is gone too
            logger.debug("a client was lost", extra={"error": type(error).__name__})
        self._call.stop()


class Attending:
    """All calls: those that are new, in the order they came, and those that take longer."""

    def __init__(self) -> None:
        self._new: dict[Attended, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, line: Line, call: OpenCall, receive: Receive | None) -> Attended:
        """Attend to a call until `end`; `receive` is where its client would be heard to leave."""
        loop = asyncio.get_running_loop()
        attended = Attended(line, call, receive, loop.time() + WATCH_SECONDS)
        self._new[attended] = None
        if self._timer is None:
            self._timer = loop.call_at(attended.due, self._look)
        return attended

    def end(self, attended: Attended) -> None:
        """A call is over."""
        self._new.pop(attended, None)
        attended.end()

    def _look(self) -> None:
        """See which of the new ones take longer than most; looks again while there are others."""
        self._timer = None
        loop = asyncio.get_running_loop()
        for attended in tuple(self._new):
            if attended.due > loop.time():
                self._timer = loop.call_at(attended.due, self._look)
                return
            del self._new[attended]
            attended.begin()
