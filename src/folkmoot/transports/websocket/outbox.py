"""What a client is sent: written while it reads, kept within bounds while it does not."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from folkmoot.transports.websocket.limits import LinkLimits


class Outbox:
    """The way out of one link."""

    __slots__ = ("_bytes", "_frames", "_held", "_limits", "_paused", "_transport")

    def __init__(
        self, transport: asyncio.Transport, limits: LinkLimits, *, paused: bool = False
    ) -> None:
        self._transport = transport
        self._limits = limits
        self._paused = paused
        self._held: deque[tuple[bytes, int]] | None = None
        self._bytes = 0
        self._frames = 0

    @property
    def clear(self) -> bool:
        """Whether the client keeps up with what it is sent."""
        return not self._paused and not self._held

    @property
    def unsent(self) -> int:
        """How many bytes wait for the client, the system's own buffers aside."""
        return self._bytes + self._transport.get_write_buffer_size()

    def put(self, data: bytes, frames: int = 1) -> bool:
        """Send whole frames; False when too much waits already, and then nothing is kept."""
        if self._held is None:
            if not self._paused:
                self._transport.write(data)
                return True
            self._held = deque()
        self._bytes += len(data)
        self._frames += frames
        if self._bytes > self._limits.max_unsent_bytes or (
            self._frames > self._limits.max_unsent_frames
        ):
            self.drop()
            return False
        self._held.append((data, frames))
        return True

    def put_last(self, data: bytes) -> None:
        """Send a frame, whatever waits."""
        if self._held:
            self._held.append((data, 1))
        else:
            self._transport.write(data)

    def pause(self) -> None:
        """The client does not read as fast as it is sent."""
        self._paused = True

    def resume(self) -> None:
        """The client has read most of it."""
        self._paused = False
        # Writing pauses the transport again as soon as that holds enough.
        while self._held and not self._paused:
            data, frames = self._held.popleft()
            self._bytes -= len(data)
            self._frames -= frames
            self._transport.write(data)
        if not self._held:
            self._held = None

    def drop(self) -> None:
        """Forget what was not yet given to the transport."""
        self._held = None
        self._bytes = self._frames = 0
