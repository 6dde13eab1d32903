"""Rights in a room: granting and revoking them, and removing someone.

Each is a message that everyone in the room sees; whoever sends it needs that capability there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import UNSET, UnsetType

from folkmoot.operations.declare import Topic, delete, get, post
from folkmoot.operations.rooms.messages import (
    SAID,
    PostedMessage,
    RoomInPath,
    envelope,
    given,
    posted,
)
from folkmoot.operations.rooms.settings import PATTERNS
from folkmoot.operations.row import Absent, describe
from folkmoot.rooms.model import RoomRights

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


PATH: Final = "/v1/rooms/{room}"
ANSWER: Final = "The message as everyone gets it."

Name = Annotated[str, describe("The name of someone in the room.", min_length=1, max_length=128)]
Held = Annotated[
    list[Any], describe("Patterns over kinds, alone or with a constraint.", schema=PATTERNS)
]
Reason = Annotated[str, describe("Why; everyone in the room reads it.", max_length=4096)]
rights = Topic(
    scope="rooms.manage",
    who="guest",
    tool=Absent("Who may do what in a room is for people to decide, not for a model."),
)
changed = rights.with_(gives=PostedMessage, reaches_others=True, errors=SAID)


@rights.reads(
    "room/rights",
    get(PATH + "/grants", "listRights", "List who may do what in a room", answer="The rights."),
    scope="rooms",
    commands=Absent("The page of a room in the browser shows it."),
)
async def show(call: Call, room: RoomInPath) -> RoomRights:
    """What each role holds, and what was granted by messages and not taken back. What the settings
    grant single people is shown to owners, with the room.
    """
    return await call.services.rooms.rights(call.visitor, room)


@changed.adds(
    "room/grant",
    post(
        PATH + "/grants",
        "grantInRoom",
        "Give someone in a room more rights",
        status=201,
        answer=ANSWER,
        example={"recipient": "grace", "capabilities": ["mcp.proposal.*"]},
    ),
    commands=("room grant",),
)
async def grant(
    call: Call,
    room: RoomInPath,
    recipient: Name,
    capabilities: Held,
    *,
    reason: Reason | UnsetType = UNSET,
) -> dict[str, Any]:
    """Takes effect with their next message. Nobody can grant what they do not hold."""
    said = given(UNSET, recipient=recipient, capabilities=capabilities, reason=reason)
    return await post_change(call, room, "capability.grant", said)


@changed.destroys(
    "room/revoke",
    post(
        PATH + "/revocations",
        "revokeInRoom",
        "Take rights in a room back",
        status=201,
        answer=ANSWER,
        example={"recipient": "grace"},
    ),
    commands=("room revoke",),
)
async def revoke(
    call: Call,
    room: RoomInPath,
    *,
    recipient: Name | UnsetType = UNSET,
    grant_id: Annotated[
        str, describe("The id of a grant: that of its message.", min_length=1, max_length=128)
    ]
    | UnsetType = UNSET,
    capabilities: Held | UnsetType = UNSET,
    reason: Reason | UnsetType = UNSET,
) -> dict[str, Any]:
    """By the grant's id or by the one who holds it, whole or in part; and everything that was
    granted from it.
    """
    said = given(
        UNSET, recipient=recipient, grant_id=grant_id, capabilities=capabilities, reason=reason
    )
    return await post_change(call, room, "capability.revoke", said)


@changed.destroys(
    "room/kick",
    delete(
        PATH + "/participants/{participant}", "kick", "Remove someone from a room", answer=ANSWER
    ),
    commands=("room kick",),
)
async def kick(
    call: Call, room: RoomInPath, participant: Name, *, reason: Reason | UnsetType = UNSET
) -> dict[str, Any]:
    """They are disconnected, and need a new invitation to come back."""
    said = given(UNSET, participant=participant, reason=reason)
    return await post_change(call, room, "room.kick", said)


async def post_change(call: Call, room: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Post a change of rights, and return the stored message."""
    return posted(await call.services.rooms.post(call.visitor, room, envelope(kind, payload)))
