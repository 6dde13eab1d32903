"""Rooms on WebSockets, at `/ws`.

The *door* reads from a request for a WebSocket which room is wanted, by whom and since when, and
lets it in or tells why not. Behind it each connection is an *outlet*, through which the room hears
its client and tells it things; a *crowd* is the outlets that hear what is said in one room.
"""

from __future__ import annotations

from folkmoot.transports.rooms.door import RoomDoor
from folkmoot.transports.rooms.outlet import RoomCrowd, RoomOutlet
