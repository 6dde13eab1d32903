"""Invitations to the hub that nobody has used yet: whose they are, and how they are withdrawn.

Their codes are not among it: a code is shown once, to whoever made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from folkmoot.accounts.model import OpenInvite
from folkmoot.core.errors import ArgumentInvalid, InviteNotOpen
from folkmoot.operations.operator.row import operated
from folkmoot.operations.paging import make_cursor, read_cursor, wrong_cursor
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Audit,
    Cursor,
    Done,
    Operation,
    PageLimit,
    Route,
    says,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

FOR_PEOPLE: Final = Absent("Whom one has invited is for people to look after.")
InviteId = Annotated[str, says("Which invitation, by its id in the list.", shown={"maxLength": 64})]


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


async def withdraw_my_invite(call: Call[OneInvite]) -> Done:
    """Have an invitation of the caller's open nothing any more."""
    await call.services.accounts.withdraw_invite(call.arguments.invite, call.account.id)
    return Done()


async def withdraw_invite(call: Call[OneInvite]) -> Done:
    """Have any invitation open nothing any more."""
    await call.services.accounts.withdraw_invite(call.arguments.invite)
    return Done()


WITHDRAW: Final[dict[str, Any]] = {
    "takes": OneInvite,
    "gives": Done,
    "effect": "destroys",
    "errors": (ArgumentInvalid, InviteNotOpen),
    "commands": ("invites withdraw",),
}
INVITES: Final = (
    Operation(
        name="folkmoot/my_invites",
        description="List the invitations to this hub that you made and nobody has used yet.",
        takes=ListInvites,
        gives=OpenInvites,
        handler=my_invites,
        scope="contacts",
        effect="reads",
        tool=FOR_PEOPLE,
        routes=(Route("GET", "/v1/me/invites", "listMyInvites", "List your open invitations"),),
        commands=("invites",),
    ),
    Operation(
        name="folkmoot/withdraw_my_invite",
        description="Withdraw an invitation that you made: its link stops working at once.",
        handler=withdraw_my_invite,
        scope="contacts",
        audit=Audit("invite.withdrawn", "invite"),
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
        takes=ListInvites,
        gives=OpenInvites,
        handler=invites,
        effect="reads",
        needs=("accounts",),
        routes=(Route("GET", "/v1/invites", "listInvites", "List all open invitations"),),
        commands=("invites",),
    ),
    operated(
        name="folkmoot/withdraw_invite",
        description="Withdraw anyone's invitation: its link stops working at once.",
        handler=withdraw_invite,
        needs=("accounts",),
        audit=Audit("invite.withdrawn", "invite"),
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
