"""Invitations into a room: made, listed and withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import UNSET, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.operations.declare import Topic, delete, get, post
from folkmoot.operations.limits import MAX_PATTERNS
from folkmoot.operations.rooms.messages import RoomInPath, RoomName, given
from folkmoot.operations.rooms.settings import PATTERNS
from folkmoot.operations.row import Absent, AuditSpec, NoContent, describe
from folkmoot.rooms.model import Invitation, OpenInvitation

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


PATH: Final = "/v1/rooms/{room}/invites"
FOR_PEOPLE: Final = Absent("Invitations to a room are for people to look after.")
managed = Topic(scope="rooms.manage")


class InvitedToRoom(Struct, frozen=True, kw_only=True):
    """Someone who may come in; a guest's token is in this answer and nowhere else."""

    room: str
    handle: str | UnsetType | None = UNSET
    guest: str | UnsetType | None = UNSET
    token: str | UnsetType = UNSET
    expires_at: str | UnsetType | None = UNSET
    message: str


@managed.adds(
    "room/invite",
    secret=("token",),
    who="guest",
    reaches_others=True,
    commands=("room invite",),
    exactly_one=("handle", "guest"),
    document={
        "description": "A handle, or a guest and perhaps its capabilities.",
        "dependentRequired": {"capabilities": ["guest"]},
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
        list[str],
        describe(
            "What the guest may do beside chatting, as kind patterns such as mcp.proposal.*; you "
            "must hold them yourself. For a guest only.",
            max_length=MAX_PATTERNS,
        ),
    ]
    | None = None,
) -> InvitedToRoom:
    """Invite someone into a room: a user by handle, or someone without an account as a guest, for
    whom you get a token that works once. Give the token to that person only.
    """
    if (handle is None) is (guest is None):
        raise e.ArgumentInvalid("Give either handle or guest.", field="handle")
    if handle is not None and capabilities:
        raise e.ArgumentInvalid("capabilities are for a guest.", field="capabilities")
    made = await call.services.rooms.invite(
        call.visitor, room, handle=handle, guest=guest, capabilities=capabilities or ()
    )
    if made.token is None:
        message = f"@{made.handle} has been invited."
        return InvitedToRoom(room=made.room, handle=made.handle, message=message)
    return InvitedToRoom(
        room=made.room,
        guest=made.guest,
        token=made.token,
        expires_at=made.expires_at,
        message="Give this token only to the guest: the first person to use it becomes the "
        "guest. It cannot be shown again.",
    )


@invite.at(
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
    )
)
async def invite_whole(
    call: Call,
    room: RoomInPath,
    *,
    handle: Annotated[str, describe("Whom to invite, by handle.", min_length=1, max_length=64)]
    | UnsetType = UNSET,
    guest: Annotated[
        str,
        describe(
            "The name in the room of someone without an account.", min_length=1, max_length=64
        ),
    ]
    | UnsetType = UNSET,
    capabilities: Annotated[
        list[Any],
        describe(
            "What a guest holds from the start, beside what all guests do; you must hold it "
            "yourself.",
            schema=PATTERNS,
        ),
    ]
    | UnsetType = UNSET,
) -> Invitation:
    """The same with capabilities that may have a constraint."""
    from folkmoot.rooms.spec import read_capabilities

    if (handle is UNSET) is (guest is UNSET):
        raise e.ArgumentInvalid("Give either a handle or a guest.", field="handle")
    wish = given(UNSET, handle=handle, guest=guest)
    if capabilities is not UNSET:
        if guest is UNSET:
            raise e.ArgumentInvalid(
                "Only a guest's invitation has capabilities; use the room's grants for a handle.",
                field="capabilities",
            )
        wish["capabilities"] = read_capabilities("capabilities", capabilities)
    return await call.services.rooms.invite(call.visitor, room, **wish)


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
