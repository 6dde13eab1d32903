"""WebSockets in rooms: the outlet of one connection, its rate, and the crowd that hears a room."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.rooms.limits import BURST_SECONDS
from folkmoot.transports.websocket import Audience, text_frame, text_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from folkmoot.rooms.ports import Outlet
    from folkmoot.transports.websocket import Tally, WebSocketConnection


class ConnectionRate:
    """A rate that each of many connections is held to.

    A connection counts down from what it was last given, and asks for more when nothing is left:
    so the clock is read once for many messages. One that was silent for long may therefore send
    up to twice the burst at once, and none sends more than the rate for long.
    """

    __slots__ = ("_now", "burst", "per_second")

    def __init__(self, per_second: int, now: Callable[[], float]) -> None:
        self.per_second = per_second
        self.burst = per_second * BURST_SECONDS
        self._now = now

    def begin(self) -> tuple[int, float]:
        """What a new connection is given, and when."""
        return self.burst, self._now()

    def more(self, since: float) -> tuple[int, float]:
        """What a connection gets that was given something at `since`, and when it is given."""
        now = self._now()
        earned = (now - since) * self.per_second
        if earned >= self.burst:
            return self.burst, now
        whole = int(earned)
        # What is earned of the next one is not lost.
        return whole, now - (earned - whole) / self.per_second


class RoomOutlet:
    """A connection, as the room uses it, and the handler of its link."""

    __slots__ = ("_allowed", "_holds", "_left", "_rate", "_receive", "_since", "link", "on_text")

    def __init__(
        self, link: WebSocketConnection, left: Callable[[Outlet], None], rate: ConnectionRate | None
    ) -> None:
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
        """Whether messages still reach the connection."""
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
        """Read from the connection again, once all who held it released it."""
        self._holds = max(self._holds - 1, 0)
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
    """The callback of a closed outlet."""


class RoomCrowd:
    """Outlets that get the same messages; each message is framed once for all.

    Only WebSockets are told by themselves. Others who are in the room read when they like.
    """

    __slots__ = ("_audience", "_send")

    def __init__(self, tally: Tally | None = None) -> None:
        self._audience = Audience(tally)
        self._send = self._audience.send

    def __len__(self) -> int:
        return len(self._audience)

    def add(self, outlet: Outlet) -> None:
        """Let a connection hear what is said from now on."""
        if isinstance(outlet, RoomOutlet):
            self._audience.add(outlet.link)

    def remove(self, outlet: Outlet) -> None:
        """Let it hear no more; one that does not hear is no error."""
        if isinstance(outlet, RoomOutlet):
            self._audience.remove(outlet.link)

    def broadcast(self, messages: Iterable[bytes]) -> None:
        """Send messages to all outlets."""
        if self._audience:
            self._send(*text_frames(messages))
