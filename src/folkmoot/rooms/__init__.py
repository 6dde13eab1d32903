"""Rooms: live streams of messages that everyone present sees, with rights for what each may do.

The *machine* is a room as pure state: messages in, effects out. A *live room* drives it: its
*journal* stores messages, many with one commit, before any effect is carried out; its *history*
returns past messages; an *outlet* is a connection, and a *crowd* the connections that get the same
messages. *Rooms* is what transports and tools use: it knows who may join (`access`), loads rooms
(`loading`) and maintains them (`upkeep`). A *visitor* is whoever makes a request: an account, or a
*guest* who was invited into one room. A *requester* sends requests in a room for a visitor who has
no connection. All bounds are in `limits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.lazy_packages import loading
from folkmoot.rooms.model import (
    Invitation,
    MessagePage,
    ProposalView,
    RoomPage,
    RoomPolicy,
    RoomView,
    Visitor,
)

if TYPE_CHECKING:
    from folkmoot.rooms.access import visitor_of
    from folkmoot.rooms.options import RoomOptions
    from folkmoot.rooms.requests import Requester
    from folkmoot.rooms.rooms import Rooms
    from folkmoot.rooms.spec import RoomPatch, RoomSpec, read_patch, read_spec
else:
    __getattr__ = loading(
        __name__,
        {
            "access": "visitor_of",
            "options": "RoomOptions",
            "requests": "Requester",
            "rooms": "Rooms",
            "spec": "RoomPatch RoomSpec read_patch read_spec",
        },
    )
