"""Many nodes as one hub: leases, rooms with one owner, and the protocol between nodes.

A *node* is one process of the hub; it may act while it holds its *lease*. A room has one *owner* at
a time, a node, since a *take-over* that gave it its *epoch*. The node of a connection to a room
elsewhere is its *edge*. Edge and owner exchange *packets*: commands one way, *batches* the other. A
*fence* in the database refuses what a node does for a room that is no longer its own.

Nothing here does I/O or reads a clock: times and packets are given, and what is to be done is
returned.
"""

from __future__ import annotations

from folkmoot.cluster.edge import (
    CallAnswered,
    DrainConnection,
    Edge,
    EdgeEffect,
    FillGap,
    Hearing,
    HoldConnection,
    Overheard,
    SeekOwner,
    ShutConnection,
    ToConnection,
)
from folkmoot.cluster.lease import Lease
from folkmoot.cluster.messages import Packet, Place, SendPacket, decode, encode
from folkmoot.cluster.owner import (
    Arrived,
    Departed,
    Owner,
    OwnerEffect,
    RemoteKey,
    SessionKey,
    TurnGiven,
)
