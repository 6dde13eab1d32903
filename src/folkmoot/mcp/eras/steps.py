"""Step: what is to be sent because a message came; and the ids of requests that we make."""

from __future__ import annotations

from itertools import count
from typing import TypeAlias

import msgspec

from folkmoot.core.message import MessageId, ProtocolMessage


class ToServer(msgspec.Struct, frozen=True, gc=False):
    """Send this to the server."""

    message: ProtocolMessage
    after: float = 0.0
    """Seconds it had better wait first, where the server should not be asked again at once."""


class ToClient(msgspec.Struct, frozen=True, gc=False):
    """Send this to the client."""

    message: ProtocolMessage
    about: MessageId | None = None
    """The client's request that it was said during, where that is known."""


Step: TypeAlias = ToServer | ToClient


class OwnIds:
    """Makes ids that neither side uses: a name of this conversation's own, and a counter."""

    def __init__(self, name: str) -> None:
        self._prefix = f"folkmoot-{name}-"
        self._count = count(1)

    def next(self) -> str:
        """An id that was never used."""
        return f"{self._prefix}{next(self._count)}"

    def made(self, message_id: MessageId | None) -> bool:
        """Whether this object created an id."""
        return type(message_id) is str and message_id.startswith(self._prefix)
