"""CancelledRequests: what nobody waits for any more, and the server has not answered yet.

A server may ask or log something for such a request at any time, however long ago it was cancelled.
So it is remembered until the server answers it, or the link is replaced.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from folkmoot.core.message import MessageId, Notification, Request

MOST: Final = 256
"""Requests that are remembered on one link; with one more, the link is replaced."""
ANSWER_SECONDS: Final = 30.0
"""After how long a server that did not answer a cancelled request is not expected to."""


class Cancelled(NamedTuple):
    """One request: whose it was, whether a server asks during such a request, and since when."""

    person: str
    asks: bool
    since: float


class CancelledRequests:
    """The requests of one link that were cancelled, timed out or were given up."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open: dict[MessageId, Cancelled] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def too_many(self) -> bool:
        """Whether the link is to be replaced, since none of them may be forgotten."""
        return len(self._open) > MOST

    @property
    def stale(self) -> bool:
        """Whether one of them will hardly be answered any more."""
        oldest = next(iter(self._open.values()), None)
        return oldest is not None and self._loop.time() - oldest.since >= ANSWER_SECONDS

    def add(self, message_id: MessageId | None, person: str = "", *, asks: bool = False) -> None:
        """Remember a request of `person`; `asks` says that the server may ask during it."""
        if message_id is not None:
            self._open[message_id] = Cancelled(person, asks, self._loop.time())

    def answered(self, message_id: MessageId | None) -> None:
        """Forget a request: the server has answered it, and is done with it."""
        if self._open and message_id is not None:
            self._open.pop(message_id, None)

    def may_own(self, message: Request | Notification, person: str) -> bool:
        """Whether a message may belong to a request of someone else than `person`.

        An empty `person` is nobody: then every remembered request is someone else's.
        """
        question = isinstance(message, Request)
        return any(
            (each.asks or not question) and (not person or each.person != person)
            for each in self._open.values()
        )
