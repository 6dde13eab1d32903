"""Envelopes for plain transports."""

from __future__ import annotations

from collections import deque

import pytest

from folkmoot.core.adapter import ContextAdapter, with_context
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import Notification, ProtocolMessage
from folkmoot.core.ports import TransportWithContext
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import TransportContext, TransportType

HELLO = Notification(method="notifications/hello")


class StoppedClock:
    def now(self) -> float:
        return 2.0

    def monotonic(self) -> float:
        return 1.0


class Plain:
    """A transport that answers what it was sent."""

    def __init__(self) -> None:
        self.carried: deque[ProtocolMessage] = deque()

    async def receive(self) -> ProtocolMessage:
        return self.carried.popleft()

    async def send(self, message: ProtocolMessage) -> None:
        self.carried.append(message)


@pytest.mark.requirement(
    "transport.receive-envelope", "transport.send-envelope", "transport.current-context"
)
async def test_a_plain_transport_carries_envelopes():
    plain = Plain()
    carrier = with_context(plain, StoppedClock())
    await carrier.send_envelope(MessageEnvelope.new(HELLO, TimingContext(0.0, 0.0)))
    assert list(plain.carried) == [HELLO]
    envelope = await carrier.receive_envelope()
    assert envelope.message == HELLO
    assert envelope.context.timing == TimingContext(1.0, 2.0)
    assert envelope.context.transport is carrier.current_context()
    assert carrier.current_context().transport_type is TransportType.UNKNOWN


async def test_the_context_it_is_given_is_on_every_message():
    context = TransportContext.stdio(4711)
    carrier = ContextAdapter(Plain(), StoppedClock(), context)
    await carrier.send(HELLO)
    await carrier.send(HELLO)
    assert (await carrier.receive_envelope()).context.transport is context
    assert await carrier.receive() == HELLO


class Telling(Plain):
    """A plain transport that knows its own context."""

    def current_context(self) -> TransportContext:
        return TransportContext.stdio(7)


def test_a_transport_that_tells_its_context_is_asked_for_it():
    carrier = with_context(Telling(), StoppedClock(), TransportContext.websocket())
    assert carrier.current_context() == TransportContext.stdio(7)
    quiet = with_context(Plain(), StoppedClock(), TransportContext.websocket())
    assert quiet.current_context() == TransportContext.websocket()


@pytest.mark.requirement("transport.is-a-protocol")
def test_a_transport_that_knows_envelopes_is_left_as_it_is():
    carrier = with_context(Plain(), StoppedClock())
    assert isinstance(carrier, TransportWithContext)
    assert not isinstance(Plain(), TransportWithContext)
    assert with_context(carrier, StoppedClock()) is carrier
    assert TransportWithContext not in type(carrier).__mro__
