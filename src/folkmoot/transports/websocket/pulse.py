"""Pings every link in its turn, and finds those whose client is gone without a word."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from folkmoot.transports.limits import PULSE_GRAIN_SECONDS

if TYPE_CHECKING:
    from folkmoot.transports.websocket.link import WebSocketConnection


class Pulse:
    """One timer for any number of links: all wait equally long, so the first is due first."""

    def __init__(self, ping_seconds: float, pong_seconds: float) -> None:
        self._ping_seconds = ping_seconds
        self._pong_seconds = pong_seconds
        self._resting: dict[WebSocketConnection, float] = {}
        self._asked: dict[WebSocketConnection, float] = {}
        self._doubted: dict[WebSocketConnection, float] = {}
        self._queues = (self._resting, self._asked, self._doubted)
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, link: WebSocketConnection) -> None:
        """Ping this link from now on."""
        self._resting[link] = asyncio.get_running_loop().time() + self._ping_seconds
        self._wind()

    def forget(self, link: WebSocketConnection) -> None:
        for queue in self._queues:
            queue.pop(link, None)
        if self._timer is not None and not any(self._queues):
            self._timer.cancel()
            self._timer = None

    def _wind(self) -> None:
        if self._timer is not None:
            return
        dues = [next(iter(queue.values())) for queue in self._queues if queue]
        if dues:
            loop = asyncio.get_running_loop()
            seconds = max(min(dues) - loop.time(), PULSE_GRAIN_SECONDS)
            self._timer = loop.call_later(seconds, self._beat)

    def _beat(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for link in _due(self._doubted, now):
            if link.is_open and link.quiet:
                link.vanish()
            elif link.is_open:
                self._resting[link] = now + self._ping_seconds
        for link in _due(self._asked, now):
            if not link.is_open:
                continue
            if link.quiet:
                # After a standstill of the whole hub an answer may be here and not yet read.
                self._doubted[link] = now + PULSE_GRAIN_SECONDS
            else:
                self._resting[link] = now + self._ping_seconds
        for link in _due(self._resting, now):
            if link.is_open:
                link.ping()
                self._asked[link] = now + self._pong_seconds
        self._wind()


def _due(queue: dict[WebSocketConnection, float], now: float) -> list[WebSocketConnection]:
    """Take out the links whose time has come."""
    due: list[WebSocketConnection] = []
    for link, time in queue.items():
        if time > now:
            break
        due.append(link)
    for link in due:
        del queue[link]
    return due
