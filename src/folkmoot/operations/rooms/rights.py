"""Rights in a room: granting and revoking them, and removing someone.

Each is a message that everyone in the room sees; whoever sends it needs that capability there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import UNSET, Raw, UnsetType

from folkmoot.operations.rooms.history import SAID, PostedMessage
from folkmoot.operations.rooms.messages import envelope
from folkmoot.operations.rooms.settings import PATTERNS, OneRoom, given_settings
from folkmoot.operations.row import (
    Absent,
    Operation,
    Route,
    describe,
)
from folkmoot.rooms.model import RoomRights

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


FOR_PEOPLE: Final = Absent("Who may do what in a room is for people to decide, not for a model.")
ANSWER: Final = "The message as everyone gets it."

Name = Annotated[str, describe("The name of someone in the room.", min_length=1, max_length=128)]
Held = Annotated[
    list[Any], describe("Patterns over kinds, alone or with a constraint.", schema=PATTERNS)
]
Reason = Annotated[str, describe("Why; everyone in the room reads it.", max_length=4096)]


class GrantInRoom(OneRoom, frozen=True, kw_only=True):
    """The participant and the capabilities to grant."""

    recipient: Name
    capabilities: Held
    reason: Reason | UnsetType = UNSET


class RevokeInRoom(OneRoom, frozen=True, kw_only=True):
    """The participant and the capabilities to revoke."""

    recipient: Name | UnsetType = UNSET
    grant_id: (
        Annotated[
            str,
            describe("The id of a grant: that of its message.", min_length=1, max_length=128),
        ]
        | UnsetType
    ) = UNSET
    capabilities: Held | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET


class Kick(OneRoom, frozen=True, kw_only=True):
    """Who shall be in the room no longer."""

    participant: Name
    reason: Reason | UnsetType = UNSET


async def rights(call: Call[OneRoom]) -> RoomRights:
    """The rights of everyone in a room."""
    return await call.services.rooms.rights(call.visitor, call.arguments.room)


async def grant(call: Call[GrantInRoom]) -> Any:
    """Let someone do more in a room."""
    return await post_change(call, "capability.grant")


async def revoke(call: Call[RevokeInRoom]) -> Any:
    """Let someone do less in a room."""
    return await post_change(call, "capability.revoke")


async def kick(call: Call[Kick]) -> Any:
    """Remove someone from a room."""
    return await post_change(call, "room.kick")


async def post_change(call: Call[Any], kind: str) -> Any:
    """Post a change of rights, and return the stored message."""
    raw = envelope(kind, given_settings(call.arguments))
    return Raw(await call.services.rooms.post(call.visitor, call.arguments.room, raw))


RIGHTS: Final = (
    Operation(
        name="room/rights",
        description="What each role holds, and what was granted by messages and not taken back. "
        "What the settings grant single people is shown to owners, with the room.",
        handler=rights,
        scope="rooms",
        who="guest",
        tool=FOR_PEOPLE,
        routes=(
            Route(
                "GET",
                "/v1/rooms/{room}/grants",
                id="listRights",
                summary="List who may do what in a room",
                answer="The rights.",
            ),
        ),
        commands=Absent("The page of a room in the browser shows it."),
    ),
    Operation(
        name="room/grant",
        description="Takes effect with their next message. Nobody can grant what they do not hold.",
        gives=PostedMessage,
        handler=grant,
        scope="rooms.manage",
        who="guest",
        reaches_others=True,
        errors=SAID,
        tool=FOR_PEOPLE,
        routes=(
            Route(
                "POST",
                "/v1/rooms/{room}/grants",
                id="grantInRoom",
                summary="Give someone in a room more rights",
                status=201,
                answer=ANSWER,
                example={"recipient": "grace", "capabilities": ["mcp.proposal.*"]},
            ),
        ),
        commands=("room grant",),
    ),
    Operation(
        name="room/revoke",
        description="By the grant's id or by the one who holds it, whole or in part; and "
        "everything that was granted from it.",
        gives=PostedMessage,
        handler=revoke,
        scope="rooms.manage",
        who="guest",
        effect="destroys",
        reaches_others=True,
        errors=SAID,
        tool=FOR_PEOPLE,
        routes=(
            Route(
                "POST",
                "/v1/rooms/{room}/revocations",
                id="revokeInRoom",
                summary="Take rights in a room back",
                status=201,
                answer=ANSWER,
                example={"recipient": "grace"},
            ),
        ),
        commands=("room revoke",),
    ),
    Operation(
        name="room/kick",
        description="They are disconnected, and need a new invitation to come back.",
        gives=PostedMessage,
        handler=kick,
        scope="rooms.manage",
        who="guest",
        reaches_others=True,
        errors=SAID,
        tool=FOR_PEOPLE,
        routes=(
            Route(
                "DELETE",
                "/v1/rooms/{room}/participants/{participant}",
                id="kick",
                summary="Remove someone from a room",
                answer=ANSWER,
            ),
        ),
        commands=("room kick",),
    ),
)
