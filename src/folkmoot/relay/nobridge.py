"""NoBridge: stands where client and server are left to their eras."""

from __future__ import annotations

from folkmoot.core.message import MessageId, ProtocolMessage
from folkmoot.mcp.eras import Step, ToClient, ToServer


class NoBridge:
    """Everything passes as it is."""

    transparent = True

    def from_client(self, message: ProtocolMessage) -> list[Step]:
        """The message itself."""
        return [ToServer(message)]

    def from_server(
        self,
        message: ProtocolMessage,
        about: MessageId | None = None,  # noqa: ARG002
    ) -> list[Step]:
        """The message itself."""
        return [ToClient(message)]

    def listen(self) -> list[Step]:
        """Nothing: the server tells the client itself."""
        return []

    def expire(self, now: float) -> list[Step]:  # noqa: ARG002
        """Nothing: no call is kept."""
        return []
