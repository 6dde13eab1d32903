"""What the carriers of the HTTP servers have in common: what comes in, and how it ends."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from folkmoot.core.envelope import MessageDirection
from folkmoot.core.errors import SessionNotFound, TransportClosed
from folkmoot.core.session import ANONYMOUS
from folkmoot.mcp.carrier import Carrier
from folkmoot.mcp.client.inbox import Inbox

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.errors import FolkmootError
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import TransportContext


class FrontCarrier(Carrier):
    """A client on HTTP as the relay sees it, or many of them."""

    def __init__(self, clock: Clock, limits: Limits, context: TransportContext) -> None:
        super().__init__(MessageDirection.CLIENT_TO_SERVER, clock, limits)
        self.over = False
        self._context = context
        self._inbox = Inbox()
        self._silence = asyncio.Event()

    async def take(
        self, message: ProtocolMessage, transport: TransportContext, *, opening: bool = False
    ) -> None:
        """Hand a client's message to the relay, once it has room for it.

        The message that asks for a session is not part of one yet.
        """
        envelope = self.envelope_of(message, transport)
        if opening:
            envelope = envelope.with_session(ANONYMOUS)
        await self._inbox.put(envelope, len(message.raw or b""))
        if self.over:
            raise SessionNotFound("The session has ended.")

    def say(self, message: ProtocolMessage) -> None:
        """Tell the server something in the client's place."""
        self._inbox.add(self.envelope_of(message))

    @property
    def waiting(self) -> bool:
        """Whether a message was received already."""
        return len(self._inbox) > 0

    @property
    def reachable(self) -> bool:
        """Whether the conversation goes on: its end is that of all its streams."""
        return not self.over

    async def receive_envelope(self) -> MessageEnvelope[Any]:
        """The next message, in the order they came."""
        return await self._inbox.get()

    def current_context(self) -> TransportContext:
        """The request that began the conversation."""
        return self._context

    def check_open(self) -> None:
        """Refuse to send where nobody is any more."""
        if self.over:
            raise TransportClosed("The client has ended the conversation.")

    def end(self, error: FolkmootError | None = None) -> None:
        """End the conversation; whoever waits for an answer is told why there is none."""
        if not self.over:
            self.over = True
            self._inbox.end()
            self._silence.set()
            self._ended(error)

    async def silent(self) -> None:
        """Wait until the conversation has ended, whatever of it was not received yet."""
        await self._silence.wait()

    async def close(self) -> None:
        """End the conversation."""
        self.end()

    @abstractmethod
    def _ended(self, error: FolkmootError | None) -> None:
        """Let everyone go who still waits."""
