"""Listens: the open wishes to hear of changes over one link."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from folkmoot.core.errors import FolkmootError
from folkmoot.core.message import ErrorObject, MessageId, Notification, Response
from folkmoot.mcp.wire import (
    ACKNOWLEDGED,
    SUBSCRIPTION_KEY,
    members_of,
    meta_of,
    params_of,
)
from folkmoot.relay.upstream.calls import Unanswered

logger = logging.getLogger("folkmoot.backend")

Heard: TypeAlias = Callable[[Notification], None]


class Listen:
    """One of them. The server says first what of it it will do."""

    def __init__(self, message_id: int, heard: Heard, close: Callable[[Listen], None]) -> None:
        self.id = message_id
        self._close = close
        self.heard = heard
        self.agreed: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        """Set once the server will say nothing more."""

    def close(self) -> None:
        """Hear nothing more, and have the server know."""
        self._close(self)

    def end(self, error: Exception) -> None:
        """There is nothing more to hear."""
        if not self.agreed.done():
            self.agreed.set_exception(error)
            # Whoever waited for it may have left.
            self.agreed.exception()
        self.ended.set()


class Listens:
    """By the ids of their requests, which the server repeats in all that it says for them."""

    def __init__(self) -> None:
        self._open: dict[MessageId, Listen] = {}

    @property
    def pending(self) -> bool:
        """Whether the server has yet to agree to one, and may speak of that."""
        return any(not listen.agreed.done() for listen in self._open.values())

    def open(self, message_id: int, heard: Heard, close: Callable[[Listen], None]) -> Listen:
        """Begin one."""
        listen = self._open[message_id] = Listen(message_id, heard, close)
        return listen

    def close(self, listen: Listen) -> bool:
        """Have one be over; whether the server does not know of that yet."""
        return self._open.pop(listen.id, None) is not None

    def tell(self, notice: Notification) -> bool:
        """Tell the one that a notice is for; whether there is one."""
        named = meta_of(notice).get(SUBSCRIPTION_KEY)
        listen = self._open.get(named) if type(named) is int else None
        if listen is None:
            return False
        if notice.method != ACKNOWLEDGED:
            try:
                listen.heard(notice)
            except Exception:
                # What one listener gets wrong must not end a link that others share.
                logger.exception("a change of a server's could not be passed on")
        elif not listen.agreed.done():
            listen.agreed.set_result(members_of(params_of(notice).get("notifications")))
        return True

    def answered(self, answer: Response) -> bool:
        """The server ends one; whether there is one."""
        listen = self._open.pop(answer.id, None) if type(answer.id) is int else None
        if listen is None:
            return False
        said = answer.error.message if isinstance(answer.error, ErrorObject) else "It ended."
        error = FolkmootError(f"The server does not announce changes: {said}")
        listen.end(Unanswered(error, begun=False, gone=False))
        return True

    def fail(self, error: Exception) -> None:
        """End all of them."""
        for listen in list(self._open.values()):
            listen.end(error)
        self._open.clear()
