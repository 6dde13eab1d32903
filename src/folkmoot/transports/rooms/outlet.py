"""One WebSocket in a room: what its client says goes to the room, and the room's words to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.transports.websocket import text_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.rooms.ports import Outlet
    from folkmoot.transports.rooms.rates import Rate
    from folkmoot.transports.websocket import Link


class RoomOutlet:
    """A connection, as the room uses it, and the handler of its link."""

    __slots__ = ("_allowed", "_holds", "_left", "_rate", "_receive", "_since", "link", "on_text")

    def __init__(self, link: Link, left: Callable[[Outlet], None], rate: Rate | None) -> None:
        self.link = link
        self._left = left
        self._rate = rate
        self._holds = 0
        self._allowed, self._since = (0, 0.0) if rate is None else rate.begin()
        self._receive: Callable[..., None] = _nothing
        self.on_text: Callable[..., None] = _nothing

    def listen(self, receive: Callable[..., None]) -> None:
        """From now on, what the client says goes to `receive`."""
        self._receive = receive
        # Every message comes by here: without a rate it goes straight to the room.
        self.on_text = receive if self._rate is None else self._counted

    @property
    def is_open(self) -> bool:
        """Whether what it is told still goes somewhere."""
        return self.link.is_open

    def tell(self, data: bytes) -> None:
        """Send a message after everything it was told or heard before."""
        self.link.send(text_frame(data))

    def close(self, code: CloseCode) -> None:
        """End the connection, after everything it was told before."""
        self.link.close(code, CLOSE_REASONS[code])

    def hold(self) -> None:
        """Take nothing more from it for now; what is read already still comes."""
        self._holds += 1
        self.link.pause_reading()

    def release(self) -> None:
        """Go on taking what it sends, once everyone who held it has said so."""
        self._holds -= 1
        if not self._holds:
            self.link.resume_reading()

    async def drained(self) -> None:
        """Wait until it has read most of what it was told, or is gone."""
        await self.link.drained()

    def on_close(self, code: int, reason: str) -> None:  # noqa: ARG002 - the room need not know why
        """The connection is no longer open."""
        # They hold each other, which would keep all of them for long.
        self._receive = self.on_text = _nothing
        self._left(self)

    def _counted(self, *messages: bytes) -> None:
        while messages and self.link.is_open:
            if not self._allowed and not self._given():
                self.close(CloseCode.OVER_RATE)
                return
            some, messages = messages[: self._allowed], messages[self._allowed :]
            self._allowed -= len(some)
            self._receive(*some)

    def _given(self) -> bool:
        if self._rate is not None:
            self._allowed, self._since = self._rate.more(self._since)
        return self._allowed > 0


def _nothing(*messages: bytes) -> None:
    """Nobody listens any more."""
