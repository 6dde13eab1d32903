"""Invitations into a room that nobody has used yet, and how they are withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from folkmoot.core.errors import InviteNotOpen
from folkmoot.operations.room_settings import OneRoom
from folkmoot.operations.row import Absent, Audit, Done, Operation, Route, says
from folkmoot.rooms.model import OpenInvitation

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

FOR_PEOPLE: Final = Absent("Whom a room waits for is for people to look after.")


class OneInvited(OneRoom, frozen=True, kw_only=True):
    """Who is not to come any more."""

    invited: Annotated[
        str,
        says(
            "The handle, or the name of the guest, that was invited.", min_length=1, max_length=64
        ),
    ]


class OpenInvitations(Struct, frozen=True):
    """Whom a room waits for, by name; at most 1,000 guests and 1,000 handles."""

    invitations: list[OpenInvitation]


async def invitations(call: Call[OneRoom]) -> OpenInvitations:
    """Whom a room waits for."""
    return OpenInvitations(
        await call.services.rooms.open_invitations(call.visitor, call.arguments.room)
    )


async def withdraw(call: Call[OneInvited]) -> Done:
    """Have an invitation open nothing any more."""
    given = call.arguments
    await call.services.rooms.withdraw_invitation(call.visitor, given.room, given.invited)
    return Done()


ROOM_INVITES: Final = (
    Operation(
        name="room/invitations",
        description="List whom a room waits for. Owners see all of them; others see the guests "
        "that they invited.",
        takes=OneRoom,
        gives=OpenInvitations,
        handler=invitations,
        scope="rooms.manage",
        about="room",
        effect="reads",
        tool=FOR_PEOPLE,
        routes=(
            Route(
                "GET",
                "/v1/rooms/{room}/invites",
                id="listInvitations",
                summary="List whom a room waits for",
                answer="The invitations.",
            ),
        ),
        commands=("room invites",),
    ),
    Operation(
        name="room/withdraw_invitation",
        description="A guest's token stops working, and an account needs a new invitation. Owners "
        "withdraw any; others those of the guests that they invited.",
        takes=OneInvited,
        gives=Done,
        handler=withdraw,
        scope="rooms.manage",
        about="room",
        effect="destroys",
        errors=(InviteNotOpen,),
        audit=Audit("room.invitation_withdrawn", "invited", within="room"),
        tool=FOR_PEOPLE,
        routes=(
            Route(
                "DELETE",
                "/v1/rooms/{room}/invites/{invited}",
                id="withdrawInvitation",
                summary="Withdraw an invitation into a room",
                status=204,
            ),
        ),
        commands=("room uninvite",),
    ),
)
