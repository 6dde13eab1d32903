"""What the server says while no stream of its client is open: kept, within bounds, until one is."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.errors import TooManyInFlight
from folkmoot.core.message import Notification, Request, encode_message
from folkmoot.mcp.server.refusals import refused

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import Response

logger = logging.getLogger("folkmoot.proxy")

MOST: Final = 256
MOST_BYTES: Final = 1024 * 1024


class Unheard:
    """Messages that wait for a stream. When there are too many, the oldest notification goes."""

    def __init__(self) -> None:
        self._kept: deque[MessageEnvelope[Any]] = deque()
        self._bytes = 0
        self._told = False

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, envelope: MessageEnvelope[Any]) -> Response | None:
        """Keep a message; a request that there is no room for is answered with what comes back."""
        size = len(encode_message(envelope.message))
        while self._kept and (len(self._kept) >= MOST or self._bytes + size > MOST_BYTES):
            if not self._drop_notification():
                if isinstance(envelope.message, Request):
                    error = TooManyInFlight("The client listens to none of its streams.")
                    return refused(error, envelope.message.id)
                return None
        self._kept.append(envelope)
        self._bytes += size
        return None

    def take(self) -> list[MessageEnvelope[Any]]:
        """All of them, in their order; nothing is kept any more."""
        kept = list(self._kept)
        self._kept.clear()
        self._bytes = 0
        return kept

    def _drop_notification(self) -> bool:
        for place, envelope in enumerate(self._kept):
            if isinstance(envelope.message, Notification):
                del self._kept[place]
                self._bytes -= len(encode_message(envelope.message))
                if not self._told:
                    self._told = True
                    logger.warning("notifications are dropped: a client listens to no stream")
                return True
        return False
