"""The WebSockets that hear what is said in one room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.transports.rooms.outlet import RoomOutlet
from folkmoot.transports.websocket import Audience, text_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    from folkmoot.rooms.ports import Outlet
    from folkmoot.transports.websocket import Tally


class RoomCrowd:
    """Outlets that hear the same; each message is framed once for all of them.

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
        """Tell all of them."""
        if self._audience:
            self._send(*map(text_frame, messages))
