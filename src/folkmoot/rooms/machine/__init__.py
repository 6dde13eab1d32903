"""Rooms: live streams in which everyone sees everything, and nobody does what they may not.

A *room* is a pure machine. *Participants* come to it on *connections*, several each if they like,
and send *messages*. What it accepts it stamps with a *seq* and *appends* to its history, which
everyone gets in the same bytes; what it refuses is told to the sender alone. It keeps track of open
*requests* and *proposals*, of *rights* and *grants*, and returns what is to be done as *effects*.
Its state follows from its history, so it can be thrown away and *rebuilt*.

`room.py` is what others use. A message passes the checks there; then the table in `acts.py` says
what else is done with its kind: chat, requests and proposals there; grants, kicks, invitations in
`moderation.py`, pauses in `pausing.py`. `presence.py` has people and backends come and go,
`expiry.py` does what is due. What a message changes is in `changes.py`, for live messages and
replayed ones alike; `state.py` is all that a room knows, and `wire.py` writes the bytes.

The machine reads nothing. What it must know of the store beside what it remembers, it asks for with
`lookup`, and gets as `Facts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.lazy_packages import loading
from folkmoot.rooms.limits import RoomBounds
from folkmoot.rooms.machine.model import (
    BACKEND,
    DEFAULT_CHAT,
    DEFAULT_RIGHTS,
    GATEWAY,
    GUEST,
    AccountStanding,
    Admit,
    Append,
    AskBackend,
    Attach,
    Audit,
    CancelBackendCall,
    Close,
    ConnectionId,
    Effect,
    Expel,
    Facts,
    HubCheck,
    HubDenies,
    Invite,
    Known,
    Lookup,
    LookupNeeded,
    Role,
    RoomSettings,
    Tell,
    Used,
)

if TYPE_CHECKING:
    from folkmoot.rooms.machine.chat import Rates
    from folkmoot.rooms.machine.proposals import TRANSITIONS, Proposal, ProposalStatus
    from folkmoot.rooms.machine.rebuild import REPLAYED
    from folkmoot.rooms.machine.rights import Grant
    from folkmoot.rooms.machine.room import Room
else:
    __getattr__ = loading(
        __name__,
        {
            "chat": "Rates",
            "proposals": "TRANSITIONS Proposal ProposalStatus",
            "rebuild": "REPLAYED",
            "rights": "Grant",
            "room": "Room",
        },
    )
