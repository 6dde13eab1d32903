"""What is published of the messages of a room: never their content, only that they are there.

The event is for those who follow many rooms without being in them; whoever wants the messages reads
them. It is made only where somebody listens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core.errors import BusError
from folkmoot.core.events import SAID, subject
from folkmoot.rooms.machine import Append

if TYPE_CHECKING:
    from folkmoot.core.ports import Bus
    from folkmoot.rooms.model import RoomId

PRESENCE: Final = "system.presence."
PROPOSED: Final = "mcp.proposal"
CLOSING: Final = ("mcpx.withdraw.", "mcpx.reject.", "system.proposal.")
RIGHTS: Final = ("capability.grant-ack", "capability.revoke")
FULFILLING: Final = "mcp.request"
"""A request that names what it correlates with fulfils a proposal."""
CORRELATED: Final = b'"correlation_id"'


class Envelope(Struct):
    """The members of a message that its news is made of."""

    correlation_id: list[str] | str = ""
    payload: Any = None


_envelope = msgspec.json.Decoder(Envelope).decode


def subject_of_room(room_id: RoomId) -> str:
    """Where the news of a room is published."""
    return subject(SAID, str(room_id))


def publish_news(bus: Bus, where: str, messages: Sequence[Append]) -> None:
    """Publish that messages became part of a room; they are stored, so a bus may fail."""
    if not bus.has_audience(where):
        return
    presence: list[dict[str, str]] = []
    proposals: list[dict[str, str]] = []
    rights = False
    for message in messages:
        kind = message.kind
        if kind.startswith(PRESENCE):
            who = _envelope(message.data).payload["participant"]["id"]
            presence.append({"participant": who, "change": kind.removeprefix(PRESENCE)})
        elif kind.startswith(PROPOSED):
            proposals.append({"proposal": message.id, "change": "made"})
        elif kind.startswith(CLOSING) or (
            kind.startswith(FULFILLING) and CORRELATED in message.data
        ):
            about = _envelope(message.data).correlation_id
            proposal = about if isinstance(about, str) else about[0] if about else ""
            if proposal:
                proposals.append({"proposal": proposal, "change": "decided"})
        elif kind.startswith(RIGHTS):
            rights = True
    told = {"presence": presence, "proposals": proposals, "rights": rights}
    try:
        bus.emit(where, {"seq": messages[-1].seq, **told})
    except BusError:
        # Whoever missed it reads the room.
        return
