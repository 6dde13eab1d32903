"""Invitations to the hub or a room that nobody has used yet: listed, and withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from folkmoot.accounts.model import OpenInvite
from folkmoot.core import errors as e
from folkmoot.operations.call import make_cursor, read_cursor, wrong_cursor
from folkmoot.operations.rooms.settings import OneRoom
from folkmoot.operations.row import (
    Absent,
    Arguments,
    AuditSpec,
    Cursor,
    NoContent,
    Operation,
    PageLimit,
    Route,
    describe,
    operated,
)
from folkmoot.rooms.model import OpenInvitation

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


FOR_PEOPLE: Final = Absent("Whom one has invited is for people to look after.")
InviteId = Annotated[
    str, describe("Which invitation, by its id in the list.", schema={"maxLength": 64})
]


class ListInvites(Arguments, frozen=True, kw_only=True):
    """Which page."""

    limit: PageLimit = 100
    cursor: Cursor | None = None


class OneInvite(Arguments, frozen=True, kw_only=True):
    """Which invitation."""

    invite: InviteId


class OpenInvites(Struct, frozen=True):
    """Invitations that nobody has used yet, the newest first."""

    invites: list[OpenInvite]
    next_cursor: str | None


async def my_invites(call: Call[ListInvites]) -> OpenInvites:
    """The open invitations that the caller made."""
    return await page(call, call.account.id)


async def invites(call: Call[ListInvites]) -> OpenInvites:
    """All open invitations."""
    return await page(call, None)


async def page(call: Call[ListInvites], by: str | None) -> OpenInvites:
    """Open invitations, of one account or all."""
    given = call.arguments
    before = None
    if given.cursor is not None:
        at, _, last = read_cursor(given.cursor).partition(" ")
        if not at.isdigit():
            raise wrong_cursor()
        before = int(at), last
    found = await call.services.accounts.open_invites(by, before, given.limit + 1)
    shown = found[: given.limit]
    more = len(found) > len(shown)
    last_one = f"{shown[-1].created_at} {shown[-1].id}" if more else ""
    return OpenInvites(shown, make_cursor(last_one) if more else None)


async def withdraw_my_invite(call: Call[OneInvite]) -> NoContent:
    """Withdraw an unused invitation of the caller's."""
    await call.services.accounts.withdraw_invite(call.arguments.invite, call.account.id)
    return NoContent()


async def withdraw_invite(call: Call[OneInvite]) -> NoContent:
    """Withdraw any unused invitation."""
    await call.services.accounts.withdraw_invite(call.arguments.invite)
    return NoContent()


WITHDRAW: Final[dict[str, Any]] = {
    "takes": OneInvite,
    "gives": NoContent,
    "effect": "destroys",
    "errors": (e.ArgumentInvalid, e.InviteNotOpen),
    "commands": ("invite withdraw",),
}
INVITES: Final = (
    Operation(
        name="folkmoot/my_invites",
        description="List the invitations to this hub that you made and nobody has used yet.",
        handler=my_invites,
        scope="contacts",
        tool=FOR_PEOPLE,
        routes=(Route("GET", "/v1/me/invites", "listMyInvites", "List your open invitations"),),
        commands=("invite list",),
    ),
    Operation(
        name="folkmoot/withdraw_my_invite",
        description="Withdraw an invitation that you made: its link stops working at once.",
        handler=withdraw_my_invite,
        scope="contacts",
        audit=AuditSpec("invite.withdrawn", "invite"),
        tool=FOR_PEOPLE,
        routes=(
            Route(
                "DELETE",
                "/v1/me/invites/{invite}",
                "withdrawMyInvite",
                "Withdraw an invitation of yours",
                status=204,
            ),
        ),
        **WITHDRAW,
    ),
    operated(
        name="folkmoot/invites",
        description="List all invitations to this hub that nobody has used yet, and who made them.",
        handler=invites,
        needs=("accounts",),
        routes=(Route("GET", "/v1/invites", "listInvites", "List all open invitations"),),
        commands=("invite list",),
    ),
    operated(
        name="folkmoot/withdraw_invite",
        description="Withdraw anyone's invitation: its link stops working at once.",
        handler=withdraw_invite,
        needs=("accounts",),
        audit=AuditSpec("invite.withdrawn", "invite"),
        routes=(
            Route(
                "DELETE",
                "/v1/invites/{invite}",
                "withdrawInvite",
                "Withdraw anyone's invitation",
                status=204,
            ),
        ),
        **WITHDRAW,
    ),
)


NOT_FOR_MODELS: Final = Absent("Invitations to a room are for people to look after.")


class OneInvited(OneRoom, frozen=True, kw_only=True):
    """Who is not to come any more."""

    invited: Annotated[
        str,
        describe(
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


async def withdraw_room_invite(call: Call[OneInvited]) -> NoContent:
    """Withdraw an unused invitation."""
    given = call.arguments
    await call.services.rooms.withdraw_invitation(call.visitor, given.room, given.invited)
    return NoContent()


ROOM_INVITES: Final = (
    Operation(
        name="room/invitations",
        description="List a room's open invitations. Owners see all of them; others see the guests "
        "that they invited.",
        handler=invitations,
        scope="rooms.manage",
        tool=NOT_FOR_MODELS,
        routes=(
            Route(
                "GET",
                "/v1/rooms/{room}/invites",
                id="listInvitations",
                summary="List a room's open invitations",
                answer="The invitations.",
            ),
        ),
        commands=("room invites",),
    ),
    Operation(
        name="room/withdraw_invitation",
        description="A guest's token stops working, and an account needs a new invitation. Owners "
        "withdraw any; others those of the guests that they invited.",
        handler=withdraw_room_invite,
        scope="rooms.manage",
        errors=(e.InviteNotOpen,),
        audit=AuditSpec("room.invitation_withdrawn", "invited", within="room"),
        tool=NOT_FOR_MODELS,
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
