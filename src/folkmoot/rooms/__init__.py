"""Rooms: live streams in which everyone sees everything, and nobody does what they may not.

The *machine* is a room as pure state: messages in, effects out. A *live room* drives it: its
*journal* stores what must be stored, many messages with one commit, and only then is anything
carried out; its *history* is what can be read again; an *outlet* is a connection, and a *crowd*
those that hear the same. *Rooms* is what transports and tools use: it knows who may come in
(`access`), loads what is needed (`loading`), and looks after all of it (`upkeep`). A *visitor* is
whoever asks: an account, or a *guest* who was invited into one room. A *requester* asks others in a
room for a visitor who has no connection.
"""

from __future__ import annotations

from folkmoot.rooms.model import (
    Invitation,
    MessagePage,
    ProposalView,
    RoomPage,
    RoomPolicy,
    RoomView,
    Visitor,
)
from folkmoot.rooms.options import RoomOptions
from folkmoot.rooms.requests import Requester
from folkmoot.rooms.rooms import MOST_READ, MOST_WAIT, Rooms
from folkmoot.rooms.spec import RoomPatch, RoomSpec, read_patch, read_spec
from folkmoot.rooms.visitors import visitor_of

__all__ = [
    "MOST_READ",
    "MOST_WAIT",
    "Invitation",
    "MessagePage",
    "ProposalView",
    "Requester",
    "RoomOptions",
    "RoomPage",
    "RoomPatch",
    "RoomPolicy",
    "RoomSpec",
    "RoomView",
    "Rooms",
    "Visitor",
    "read_patch",
    "read_spec",
    "visitor_of",
]
