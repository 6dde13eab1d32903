"""A message's way: the transports that bring it, and what sees, records and performs it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from folkmoot.core import errors as e
    from folkmoot.core.capability import Rights
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.kinds import Kind
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.policy import Principal
    from folkmoot.core.transport import TransportContext
    from folkmoot.core.verdict import Hold, Verdict

__all__ = [
    "Admitted",
    "Carried",
    "Holding",
    "Interceptor",
    "Recorder",
    "Service",
    "Transport",
    "TransportWithContext",
]


class Transport(Protocol):
    """The plain transport: messages out, messages in, and nothing said about them."""

    async def receive(self) -> ProtocolMessage: ...

    async def send(self, message: ProtocolMessage) -> None: ...


@runtime_checkable
class TransportWithContext(Transport, Protocol):
    """A transport whose messages keep their context."""

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        """The next message with full context."""

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Send a message with its context preserved, as far as the transport can."""

    def current_context(self) -> TransportContext:
        """What the transport can say of itself now."""


class Admitted(msgspec.Struct, frozen=True):
    """A message that passed the policy, with its sender and the sender's rights."""

    envelope: MessageEnvelope[Any]
    principal: Principal
    rights: Rights
    kind: Kind | None
    """The effective kind; a plain MCP response has none, nor what is judged by its service."""
    ruling: Any = None
    """What the interceptors said of it; None where there are none."""


class Interceptor(Protocol):
    """Sees every envelope before policy does, in the order the interceptors are listed."""

    @property
    def name(self) -> str:
        """The name of the interceptor in logs and tapes."""

    @property
    def guards(self) -> bool:
        """Whether it only checks: what a later interceptor changed is then shown to it again."""

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        """What is to become of the message."""


class Holding(Protocol):
    """Keeps messages until someone decides."""

    async def hold(self, envelope: MessageEnvelope[Any], by: str, hold: Hold) -> Any:
        """Return when the message is released; raise `MessageDropped` when it is dropped.

        What is returned goes on in its place, if whoever released it edited it; else None.
        """


class Service(Protocol):
    """Does what a message asks, and answers with data; it writes to no socket.

    What it tells others is published by itself, after the commit.
    """

    def perform(self, admitted: Admitted) -> Awaitable[Any]:
        """Do it; the answer comes once it is committed."""

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: e.PolicyError
    ) -> e.FolkmootError:
        """Note what policy refused, where it is to be noted; what its sender is told."""


class Carried(msgspec.Struct, frozen=True):
    """A message that passed or was stopped, for the tape: as its client saw it."""

    envelope: MessageEnvelope[Any]
    """As the client sent or got it."""
    at_server: ProtocolMessage | None = None
    """As the server got or sent it, where an interceptor made it another."""
    verdict: Verdict | None = None
    """What an interceptor said, if it was anything but `Continue`."""
    by: str = ""
    """Which interceptor that was."""


class Recorder(Protocol):
    """Writes what is carried. Nothing is to be passed on before it is on the tape."""

    def note(self, carried: Carried) -> None:
        """Take a message; it is on the tape after the next `commit`.

        Raises `TapeUnwritable` once the tape cannot be written.
        """

    def commit(self) -> None:
        """Write what was taken now. Raises `TapeUnwritable` if it cannot be written."""
