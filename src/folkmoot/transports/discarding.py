"""Reads the rest of a body whose request was answered before it was whole."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from folkmoot.transports.protocol import HubProtocol


class Discarding(asyncio.BufferedProtocol):
    """Reads the rest of a body whose request was answered, and looks at none of it.

    A client that reads its answer only after it has sent all gets it in this way, for a fraction
    of what it costs to keep and parse the bytes.
    """

    buffer: Final = memoryview(bytearray(262_144))
    """What the bytes of all connections are read into; nobody looks at it."""

    def __init__(self, connection: HubProtocol, left: int) -> None:
        self._connection = connection
        self._left = left

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Where the next bytes of the body go, and none of the next request."""
        return self.buffer[: self._left]

    def buffer_updated(self, nbytes: int) -> None:
        """Give the connection back once the body is whole."""
        self._left -= nbytes
        if not self._left:
            self._connection.read_on()

    def pause_writing(self) -> None:
        """The client does not read its answer."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """The client has read most of it."""
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._connection.connection_lost(exc)
