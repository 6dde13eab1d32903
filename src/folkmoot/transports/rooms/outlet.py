"""WebSockets in rooms: the outlet of one connection, and the crowd that hears a room."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.core.entity import Entity
from folkmoot.transports.websocket import Audience, text_frame, text_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from folkmoot.rooms.ports import Outlet
    from folkmoot.transports.websocket import Tally, WebSocketConnection


def _nothing(*messages: bytes) -> None:
    """The callback of a closed outlet."""


class RoomOutlet(Entity):
    """A connection, as the room uses it, and the handler of its link."""

    link: WebSocketConnection
    left: Callable[[Outlet], None]
    _holds: int = 0
    on_text: Callable[..., None] = _nothing

    def listen(self, receive: Callable[..., None]) -> None:
        """From now on, what the client says goes to `receive`."""
        self.on_text = receive

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
        """Take nothing more from it for now; what was parsed already still comes."""
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
        self.on_text = _nothing
        self.left(self)


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
