"""The links that hear the same: a frame costs one call, however many there are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from folkmoot.transports.websocket.frames import Frame
    from folkmoot.transports.websocket.link import Link


class Tally:
    """How much went out, over all audiences that share it."""

    __slots__ = ("deliveries", "frames")

    def __init__(self) -> None:
        self.frames = 0
        """Frames that were sent to an audience, whether anyone was in it or not."""
        self.deliveries = 0
        """The same frames, each counted once for every link that was there."""


class Audience:
    """Links that are sent the same frames; what came in one tick is joined once for all of them."""

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = tally or Tally()
        self._links: set[Link] = set()
        self._frames: list[Frame] = []
        self._ahead: dict[Link, int] = {}
        """How many of the tick's frames a link has already, or is not to have."""

    def __len__(self) -> int:
        return len(self._links)

    def __contains__(self, link: object) -> bool:
        return link in self._links

    def add(self, link: Link) -> None:
        """From the next frame on, this link hears them too."""
        if link.audience is not None:
            link.audience.remove(link)
        if link.is_open:
            self._links.add(link)
            link.audience = self
            if self._frames:
                self._ahead[link] = len(self._frames)

    def remove(self, link: Link) -> None:
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

    def hand_over(self, link: Link) -> None:
        """Give a link what it has not got of this tick, before something of its own follows."""
        frames = self._frames
        if frames and (have := self._ahead.get(link, 0)) < len(frames):
            link.wait_with(b"".join(frames[have:]), len(frames) - have)
            self._ahead[link] = len(frames)

    def flush(self) -> None:
        """Write the frames of this tick: one write for each link."""
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
