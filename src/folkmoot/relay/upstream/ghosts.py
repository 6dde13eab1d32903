"""Ghosts: requests that nobody wants answered any more, and of which the server may still speak."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from folkmoot.core.message import MessageId

SECONDS: Final = 30.0
"""How long a server may speak of what was cancelled."""
MOST: Final = 1024


class Ghost(NamedTuple):
    """One of them: until when, whose it was, and whether a server asks during such a request."""

    until: float
    person: str
    asks: bool


class Ghosts:
    """While there are any, what could belong to them is nobody's but of whoever left them."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ghosts: dict[MessageId, Ghost] = {}
        self._crowded_until = 0.0
        """Until when a server may speak of some that are not remembered."""

    def add(self, message_id: MessageId | None, person: str, *, asks: bool) -> None:
        """A request of someone's was cancelled."""
        if message_id is None:
            return
        until = self._loop.time() + SECONDS
        if len(self._ghosts) >= MOST:
            # Whoever cancels a thousand calls has nobody forgotten by that.
            self._crowded_until = until
            del self._ghosts[next(iter(self._ghosts))]
        self._ghosts[message_id] = Ghost(until, person, asks)

    def answered(self, message_id: MessageId | None) -> None:
        """The server has answered, and is done with it."""
        if self._ghosts and message_id is not None:
            self._ghosts.pop(message_id, None)

    def haunt(self, person: str, *, asking: bool) -> bool:
        """Whether what is said may be of another's than `person`, who is nobody when empty.

        `asking` says that it is a question.
        """
        now = self._loop.time()
        if now < self._crowded_until:
            return True
        while self._ghosts:
            oldest = next(iter(self._ghosts))
            if self._ghosts[oldest].until > now:
                break
            del self._ghosts[oldest]
        mine = person or None
        return any(
            ghost.person != mine and (ghost.asks or not asking) for ghost in self._ghosts.values()
        )
