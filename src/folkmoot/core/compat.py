"""The migration layer of the MessageEnvelope design: the older names and the way from them."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

import msgspec

from folkmoot.core.envelope import MessageDirection, MessageEnvelope
from folkmoot.core.message import ProtocolMessage
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.timing import TimingContext

TransportMessage: TypeAlias = ProtocolMessage
"""The older name of a message, from when it carried no context."""


class Direction(Enum):
    """The older direction, which always knew."""

    CLIENT_TO_SERVER = "client_to_server"
    SERVER_TO_CLIENT = "server_to_client"


class Frame(msgspec.Struct, frozen=True, gc=False):
    """The older wrapping of a message with its session and direction."""

    session_id: SessionId
    direction: Direction
    message: TransportMessage


_DIRECTIONS: Final = {
    Direction.CLIENT_TO_SERVER: MessageDirection.CLIENT_TO_SERVER,
    Direction.SERVER_TO_CLIENT: MessageDirection.SERVER_TO_CLIENT,
}


def direction_from_old(old: Direction) -> MessageDirection:
    """The direction an older one means."""
    return _DIRECTIONS[old]


def into_envelope(
    message: TransportMessage, timing: TimingContext | None = None
) -> MessageEnvelope[ProtocolMessage]:
    """Put an older message into an envelope of which only the time is known.

    Without `timing`, it was created just now.
    """
    return MessageEnvelope.new(message, timing)


def into_envelope_with_direction(
    message: TransportMessage, direction: MessageDirection, timing: TimingContext | None = None
) -> MessageEnvelope[ProtocolMessage]:
    """Put an older message into an envelope with the direction its caller knows."""
    return into_envelope(message, timing).with_direction(direction)


def envelope_from_frame(
    frame: Frame, timing: TimingContext | None = None
) -> MessageEnvelope[ProtocolMessage]:
    """The envelope that says what an older frame said."""
    return into_envelope_with_direction(
        frame.message, direction_from_old(frame.direction), timing
    ).with_session(SessionContext.with_id(frame.session_id))
