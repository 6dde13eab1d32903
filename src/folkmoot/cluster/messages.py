"""What the node of a connection (the *edge*) and the node of its room (the *owner*) exchange.

The edge sends numbered *commands*, the owner numbered *batches* of *items*. Both say in every
packet how far they received, and send again what was not. A packet names the room's `epoch` (each
take-over raises it) and the edge's `session` (each attaching raises it), so what belongs to an
earlier one is never mistaken. Bodies are bytes that only rooms read.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec import Struct


class Place(Struct, frozen=True, gc=False):
    """The node that owns a room, since the take-over with this epoch."""

    node: str
    epoch: int


class Wire(Struct, frozen=True, gc=False, array_like=True, omit_defaults=True):
    """Something that travels between nodes."""


class JoinRoom(Wire, frozen=True, tag="j"):
    """A connection comes; with `again` it was in the room before its owner changed."""

    connection: int
    body: bytes
    after: int | None = None
    again: bool = False


class SendMessages(Wire, frozen=True, tag="s"):
    """Messages came on a connection."""

    connection: int
    messages: tuple[bytes, ...]


class LeaveRoom(Wire, frozen=True, tag="l"):
    """A connection ended."""

    connection: int


class AskOwner(Wire, frozen=True, tag="a"):
    """Something else is asked of the room."""

    call: int
    body: bytes


class Drained(Wire, frozen=True, tag="d"):
    """A connection has read most of what it was told."""

    connection: int


Command: TypeAlias = JoinRoom | SendMessages | LeaveRoom | AskOwner | Drained


class Spoken(Wire, frozen=True, tag="S"):
    """Messages of the room, for all who hear; without `messages` they are in the store."""

    first_seq: int
    count: int
    messages: tuple[bytes, ...] = ()


class TellOne(Wire, frozen=True, tag="T"):
    """Something for one connection."""

    connection: int
    data: bytes


class StartHearing(Wire, frozen=True, tag="H"):
    """A connection hears what is spoken after a `seq`."""

    connection: int
    seq: int


class CloseOne(Wire, frozen=True, tag="C"):
    """A connection is to be closed."""

    connection: int
    code: int


class HoldOne(Wire, frozen=True, tag="P"):
    """A connection is not to be read for now, or again."""

    connection: int
    held: bool


class DrainOne(Wire, frozen=True, tag="D"):
    """Say when a connection has read most of what it was told."""

    connection: int


class OwnerAnswer(Wire, frozen=True, tag="A"):
    """The answer to what was asked, or a part of it that more follows."""

    call: int
    body: bytes
    more: bool = False


class HandedOver(Wire, frozen=True, tag="X"):
    """The room goes elsewhere: what is not resolved was not taken, and may be sent there."""


Item: TypeAlias = (
    Spoken | TellOne | StartHearing | CloseOne | HoldOne | DrainOne | OwnerAnswer | HandedOver
)


class Batch(Wire, frozen=True):
    """Items in their order; all commands up to `resolved` are carried out with the last of them."""

    number: int
    items: tuple[Item, ...]
    resolved: int


class ToOwner(Wire, frozen=True, tag=1):
    """Commands, the first of which has a number; `received` is the last batch that was processed.

    `gap` asks for what follows it now.
    """

    room: int
    epoch: int
    session: int
    first: int
    commands: tuple[Command, ...]
    received: int
    gap: bool = False


class ToEdge(Wire, frozen=True, tag=2):
    """Batches; `received` is the last command that came, and `sent` the last batch there is."""

    room: int
    epoch: int
    session: int
    batches: tuple[Batch, ...]
    received: int
    sent: int


class NotOwner(Wire, frozen=True, tag=3):
    """There is no such session here, or no such room."""

    room: int
    epoch: int
    session: int


class EndSession(Wire, frozen=True, tag=4):
    """The edge has no such session any more."""

    room: int
    epoch: int
    session: int


class AskNode(Wire, frozen=True, tag=5):
    """A node is asked something, perhaps again."""

    call: int
    body: bytes


class NodeAnswer(Wire, frozen=True, tag=6):
    """What a node answers that was asked."""

    call: int
    body: bytes


Packet: TypeAlias = ToOwner | ToEdge | NotOwner | EndSession | AskNode | NodeAnswer


class SendPacket(Struct, frozen=True, gc=False):
    """Send a packet to a node."""

    node: str
    packet: Packet


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final[msgspec.msgpack.Decoder[Packet]] = msgspec.msgpack.Decoder(Packet)


def encode(packet: Packet) -> bytes:
    return _encoder.encode(packet)


def decode(data: bytes) -> Packet | None:
    """The packet in some bytes, or None for what is none."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError:
        return None


def size(command_or_item: Command | Item) -> int:
    """About how many bytes a command or an item takes."""
    one = command_or_item
    if type(one) is SendMessages or type(one) is Spoken:
        return 16 + sum(map(len, one.messages))
    if isinstance(one, JoinRoom | AskOwner | OwnerAnswer):
        return 16 + len(one.body)
    return 16 + len(one.data) if isinstance(one, TellOne) else 16
