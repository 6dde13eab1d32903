"""What the proxy needs of others: something to write tapes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from folkmoot.core.envelope import MessageEnvelope

if TYPE_CHECKING:
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.verdict import Verdict


class Carried(msgspec.Struct, frozen=True, gc=False):
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
        ...

    def commit(self) -> None:
        """Write what was taken now. Raises `TapeUnwritable` if it cannot be written."""
        ...
