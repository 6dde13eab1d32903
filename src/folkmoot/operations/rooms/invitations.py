"""Invitations into a room: made, listed and withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.operations.declare import Topic, delete, get, post
from folkmoot.operations.limits import MAX_PATTERNS
from folkmoot.operations.rooms.messages import RoomInPath, RoomName
from folkmoot.operations.rooms.settings import PATTERNS
from folkmoot.operations.row import Absent, AuditSpec, NoContent, describe, view_of
from folkmoot.rooms.model import Invitation, OpenInvitation

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


PATH: Final = "/v1/rooms/{room}/invites"
FOR_PEOPLE: Final = Absent("Invitations to a room are for people to look after.")
managed = Topic(scope="rooms.manage")


NAMED: Final = {"type": "string", "minLength": 1, "maxLength": 64}
NONE: Final = {"type": "null"}


class InvitedToRoom(Invitation, frozen=True, kw_only=True, omit_defaults=True):
    """Someone who may come in."""

    message: str


@managed.adds(
    "room/invite",
    post(
        PATH,
        "invite",
        "Invite someone",
        "By handle, or someone without an account as a guest. It appears in the room as "
        "`room.invite`, and needs that capability; the guest's token is shown to you alone.",
        status=201,
        answer="The invitation.",
        example={"guest": "grace"},
        errors=(
            e.PayloadInvalid,
            e.CapabilityDenied,
            e.CapabilityError,
            e.ParticipantPaused,
            e.BlockedByInterceptor,
            e.NameRefused,
            e.TooManyOpen,
            e.UserNotFound,
        ),
    ),
    exactly_one=("handle", "guest"),
    secret=("token",),
    who="guest",
    reaches_others=True,
    commands=("room invite",),
    document={
        "description": "A handle, or a guest and perhaps its capabilities.",
        "properties": {
            "capabilities": {
                "type": "array",
                **PATTERNS,
                "description": "What a guest holds from the start, beside what all guests do; you "
                "must hold it yourself.",
            }
        },
        "oneOf": [
            {
                "required": ["handle"],
                "properties": {"handle": NAMED, "guest": NONE, "capabilities": NONE},
            },
            {"required": ["guest"], "properties": {"guest": NAMED, "handle": NONE}},
        ],
    },
)
async def invite(
    call: Call,
    room: RoomName,
    *,
    handle: Annotated[str, "Handle of the user to invite. Mutually exclusive with guest."]
    | None = None,
    guest: Annotated[
        str,
        "The name that a guest without an account will have in the room. Mutually exclusive with "
        "handle.",
    ]
    | None = None,
    capabilities: Annotated[
        list[Any],
        describe(
            "What the guest may do beside chatting, as kind patterns such as mcp.proposal.*; you "
            "must hold them yourself. For a guest only.",
            max_length=MAX_PATTERNS,
            schema={"items": {"type": "string"}},
        ),
    ]
    | None = None,
) -> InvitedToRoom:
    """Invite someone into a room: a user by handle, or someone without an account as a guest, for
    whom you get a token that works once. Give the token to that person only.
    """
    from folkmoot.rooms.spec import read_capabilities

    if (handle is None) is (guest is None):
        raise e.ArgumentInvalid("Give either handle or guest.", field="handle")
    if handle is not None and capabilities:
        raise e.ArgumentInvalid("capabilities are for a guest.", field="capabilities")
    held = read_capabilities("capabilities", capabilities or [])
    made = await call.services.rooms.invite(
        call.visitor, room, handle=handle, guest=guest, capabilities=held
    )
    message = f"@{made.handle} has been invited."
    if made.token is not None:
        message = (
            "Give this token only to the guest: the first person to use it becomes the guest. It "
            "cannot be shown again."
        )
    return view_of(InvitedToRoom, made, message=message)


class OpenInvitations(Struct, frozen=True):
    """Whom a room waits for, by name; at most 1,000 guests and 1,000 handles."""

    invitations: list[OpenInvitation]


@managed.reads(
    "room/invitations",
    get(PATH, "listInvitations", "List a room's open invitations", answer="The invitations."),
    tool=FOR_PEOPLE,
    commands=("room invites",),
)
async def invitations(call: Call, room: RoomInPath) -> OpenInvitations:
    """List a room's open invitations. Owners see all of them; others see the guests that they
    invited.
    """
    return OpenInvitations(await call.services.rooms.open_invitations(call.visitor, room))


@managed.destroys(
    "room/withdraw_invitation",
    delete(
        PATH + "/{invited}", "withdrawInvitation", "Withdraw an invitation into a room", status=204
    ),
    errors=(e.InviteNotOpen,),
    audit=AuditSpec("room.invitation_withdrawn", "invited", within="room"),
    tool=FOR_PEOPLE,
    commands=("room uninvite",),
)
async def withdraw_invitation(
    call: Call,
    room: RoomInPath,
    invited: Annotated[
        str,
        describe(
            "The handle, or the name of the guest, that was invited.", min_length=1, max_length=64
        ),
    ],
) -> NoContent:
    """A guest's token stops working, and an account needs a new invitation. Owners withdraw any;
    others those of the guests that they invited.
    """
    await call.services.rooms.withdraw_invitation(call.visitor, room, invited)
    return NoContent()
