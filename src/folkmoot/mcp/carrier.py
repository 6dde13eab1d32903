"""Carrier: what every transport of the proxy is, whichever side it is on.

It gives each message it receives its envelope, with the direction of the side it stands on, and
takes only envelopes whose direction leads out of it. It changes nothing about a message. What it
has received and nobody has taken yet may wait in an `EnvelopeQueue`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.session import ANONYMOUS, SessionContext
from folkmoot.core.strict import Limits
from folkmoot.core.timing import TimingContext

if TYPE_CHECKING:
    from folkmoot.core.message import MessageId, ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.transport import TransportContext
    from folkmoot.mcp.peer import Tag

ABOUT: Final = "folkmoot/about"
"""The extension of an envelope that says which request of the client's it was said during."""
PROXY_LIMITS = Limits(message_bytes=64 * 1024 * 1024, nesting=256)
"""What one message may ask of the proxy; the sides have limits of their own."""


class Carrier(ABC):
    """One end of a conversation: a `TransportWithContext` that knows which side it is on."""

    shared = False
    """Whether several clients speak through it, under ids that differ."""
    start_seconds = 0.0
    """How long its other side may still say nothing, while it has said nothing yet."""

    def __init__(
        self, receives: MessageDirection, clock: Clock, limits: Limits = PROXY_LIMITS
    ) -> None:
        self.receives = receives
        """The direction of what comes out of it."""
        self.session: SessionContext = ANONYMOUS
        """The session of what it receives from now on; set by whoever follows the conversation."""
        self.clock = clock
        self.limits = limits

    @abstractmethod
    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        """The next message, in the order they came; `TransportClosed` when there is none more."""

    async def receive_tagged(self) -> tuple[MessageEnvelope[Any], MessageId | None]:
        """The next message, and the request on whose own stream it was read."""
        return await self.receive_envelope(), None

    @abstractmethod
    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Take a message, once not too much is unsent; `TransportClosed` when nobody is there."""

    @abstractmethod
    def current_context(self) -> TransportContext:
        """What the transport can say of itself now."""

    @abstractmethod
    async def close(self) -> None:
        """End it in good order, within a bounded time. May be called again."""

    @property
    def waiting(self) -> bool:
        """Whether a message was received already, so that receiving it takes no time."""
        return False

    @property
    def reachable(self) -> bool:
        """Whether what is sent may still reach someone who has nothing more to say."""
        return True

    @property
    def attended(self) -> bool:
        """Whether a peer listens at this end, so that silence does not mean absence."""
        return False

    async def listening(self) -> None:
        """Wait until the peer listens for unrequested messages; by default at once."""
        return

    async def silent(self) -> None:
        """Wait until nothing more will come in at this end, though some may not be received yet."""
        await asyncio.Event().wait()

    async def receive(self) -> ProtocolMessage:
        """The next message, without its context."""
        return (await self.receive_envelope()).message

    async def send(self, message: ProtocolMessage) -> None:
        """Send a message that has no context yet."""
        await self.send_envelope(MessageEnvelope(message, self.context_of(self.receives.reverse())))

    def envelope_of(
        self, message: ProtocolMessage, transport: TransportContext | None = None
    ) -> MessageEnvelope[Any]:
        """The envelope of a message that was received now."""
        return MessageEnvelope(message, self.context_of(self.receives, transport))

    def context_of(
        self, direction: MessageDirection, transport: TransportContext | None = None
    ) -> MessageContext:
        """The context of a message that comes or goes now."""
        timing = TimingContext(self.clock.monotonic(), self.clock.now())
        return MessageContext(timing, direction, self.session, transport or self.current_context())

    def check_way(self, envelope: MessageEnvelope[Any]) -> None:
        """Refuse a message whose direction does not lead out here."""
        if envelope.context.direction is not self.receives.reverse():
            way = envelope.context.direction.value
            raise e.Misrouted(f"A message on the way {way} cannot leave at this side.")


Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Carrier]]
"""Makes one way to the server, for one conversation; leaving it ends the conversation."""


MOST_MESSAGES: Final = 1024
MOST_BYTES: Final = 8 * 1024 * 1024


class EnvelopeQueue:
    """Envelopes in the order they came, from many streams to one taker; nothing is dropped."""

    def __init__(self, ending: str = "The link to the server is closed.") -> None:
        self._ending = ending
        """What whoever takes is told once there is nothing more."""
        self.held: deque[tuple[MessageEnvelope[Any], int, Tag]] = deque()
        """What was put in and not taken, with its size."""
        self._bytes = 0
        self._ended = False
        self._came = asyncio.Event()
        self._putting: deque[asyncio.Future[None]] = deque()
        """Who waits for room, in the order they came."""

    async def put(self, envelope: MessageEnvelope[Any], size: int, tag: Tag = None) -> None:
        """Add a message, with the request on whose stream it came, once there is room.

        After the end it goes nowhere.
        """
        while self._full and not self._ended:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._putting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    # The turn that came at the same moment is somebody else's now.
                    self._next_turn()
                raise
        if self._ended:
            return
        self.held.append((envelope, size, tag))
        self._bytes += size
        self._came.set()
        self._next_turn()

    def add(self, envelope: MessageEnvelope[Any]) -> None:
        """Add a message of our own, which waits for no room."""
        if not self._ended:
            self.held.append((envelope, 0, None))
            self._came.set()

    async def get(self) -> MessageEnvelope[Any]:
        """The next message; `TransportClosed` once there is none and none comes any more."""
        return (await self.get_tagged())[0]

    async def get_tagged(self) -> tuple[MessageEnvelope[Any], Tag]:
        """The next message, and the request on whose stream it came."""
        while not self.held:
            if self._ended:
                raise e.TransportClosed(self._ending)
            self._came.clear()
            await self._came.wait()
        envelope, size, tag = self.held.popleft()
        self._bytes -= size
        self._next_turn()
        return envelope, tag

    def end(self) -> None:
        """Take nothing more."""
        self._ended = True
        self._came.set()
        while self._putting:
            self._wake(self._putting.popleft())

    @property
    def _full(self) -> bool:
        return len(self.held) >= MOST_MESSAGES or self._bytes >= MOST_BYTES

    def _next_turn(self) -> None:
        while self._putting and not self._full:
            turn = self._putting.popleft()
            if self._wake(turn):
                return

    @staticmethod
    def _wake(turn: asyncio.Future[None]) -> bool:
        if turn.done():
            return False
        turn.set_result(None)
        return True
