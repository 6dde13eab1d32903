"""Sending: the queue of one connection, and the audience of shared frames."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from folkmoot.transports.websocket.frames import Frame
    from folkmoot.transports.websocket.limits import LinkLimits
    from folkmoot.transports.websocket.link import WebSocketConnection


class SendQueue:
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
        """The client reads more slowly than we send."""
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


class Tally:
    """How much went out, over all audiences that share it."""

    __slots__ = ("deliveries", "frames")

    def __init__(self) -> None:
        self.frames = 0
        """Frames that were sent to an audience, whether anyone was in it or not."""
        self.deliveries = 0
        """The same frames, each counted once for every link that was there."""


class Audience:
    """Links that get the same frames; the frames of one tick are joined once for all."""

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = tally or Tally()
        self._links: set[WebSocketConnection] = set()
        self._frames: list[Frame] = []
        self._ahead: dict[WebSocketConnection, int] = {}
        """How many of the tick's frames a link has already, or is not to have."""

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, link: object) -> bool:
        return link in self._links

    def add(self, link: WebSocketConnection) -> None:
        """From the next frame on, this link hears them too."""
        if link.audience is not None:
            link.audience.remove(link)
        if link.is_open:
            self._links.add(link)
            link.audience = self
            if self._frames:
                self._ahead[link] = len(self._frames)

    def remove(self, link: WebSocketConnection) -> None:
        """The link gets what was sent so far, and no more; one that closes leaves by itself."""
        if link in self._links:
            self.hand_over(link)
            self._links.discard(link)
            self._ahead.pop(link, None)
            link.audience = None

    def send(self, *frames: Frame) -> None:
        """Send frames to every link, together with their whole tick."""
        if not self._frames:
            asyncio.get_running_loop().call_soon(self.flush)
        self._frames += frames

    def hand_over(self, link: WebSocketConnection) -> None:
        """Give a link what it has not got of this tick, before something of its own follows."""
        frames = self._frames
        if frames and (have := self._ahead.get(link, 0)) < len(frames):
            link.wait_with(b"".join(frames[have:]), len(frames) - have)
            self._ahead[link] = len(frames)

    def flush(self) -> None:
        """Write the frames of this tick, one write for each link."""
        frames, ahead = self._frames, self._ahead
        if not frames:
            return
        self._frames, self._ahead = [], {}
        joined, count = b"".join(frames), len(frames)
        self._tally.frames += count
        self._tally.deliveries += count * len(self._links)
        # A link that proves too slow leaves while the others are served.
        for link in list(self._links):
            if link not in ahead:
                link.put(joined, count)
            elif (have := ahead[link]) < count:
                link.put(b"".join(frames[have:]), count - have)
