"""The client's end of the conversation, watched: the bridge learns what was handed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import ProtocolMessage
from folkmoot.core.transport import TransportContext
from folkmoot.mcp.carrier import Carrier


class Handover(Carrier):
    """Another carrier, told of each message that it has taken."""

    def __init__(self, inner: Carrier, handed: Callable[[MessageEnvelope[Any]], None]) -> None:
        super().__init__(inner.receives, inner.clock, inner.limits)
        self._inner = inner
        self._handed = handed

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        """The next message of the client."""
        return await self._inner.receive_envelope()

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Hand a message to the client."""
        await self._inner.send_envelope(envelope)
        self._handed(envelope)

    def current_context(self) -> TransportContext:
        """What the carrier can say of itself."""
        return self._inner.current_context()

    async def close(self) -> None:
        """End it in good order."""
        await self._inner.close()

    @property
    def waiting(self) -> bool:
        """Whether a message was received already."""
        return self._inner.waiting
