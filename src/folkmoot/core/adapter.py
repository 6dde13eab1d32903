"""Adapts a plain transport to envelopes: received messages gain a context, sent ones lose it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.ports import TransportWithContext
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import UNKNOWN, TransportContext

if TYPE_CHECKING:
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Clock, Transport


def with_context(
    transport: Transport, clock: Clock, context: TransportContext = UNKNOWN
) -> TransportWithContext:
    """The transport itself if it carries envelopes already, else a wrapper that does."""
    if isinstance(transport, TransportWithContext):
        return transport
    return ContextAdapter(transport, clock, context)


class ContextAdapter:
    """A plain send/receive transport, seen as one that carries envelopes.

    It knows neither direction nor session: whoever owns the connection sets them. A transport that
    can tell its own context is asked for it; for the others the given one stands.
    """

    def __init__(
        self, transport: Transport, clock: Clock, context: TransportContext = UNKNOWN
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._tell: Callable[[], TransportContext] = getattr(
            transport, "current_context", lambda: context
        )

    async def receive(self) -> ProtocolMessage:
        """The next message, without its context."""
        return await self._transport.receive()

    async def send(self, message: ProtocolMessage) -> None:
        """Send a message that has no context."""
        await self._transport.send(message)

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        """The next message, with the time it came and the transport it came over."""
        message = await self._transport.receive()
        timing = TimingContext(self._clock.monotonic(), self._clock.now())
        return MessageEnvelope.new(message, timing).with_transport(self._tell())

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Send the message; a plain transport has no place for its context."""
        await self._transport.send(envelope.message)

    def current_context(self) -> TransportContext:
        """The context every received message is given."""
        return self._tell()
