"""Invitations to the hub that nobody has used yet: listed, and withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from folkmoot.accounts.model import OpenInvite
from folkmoot.core import errors as e
from folkmoot.operations.call import make_cursor, read_cursor, wrong_cursor
from folkmoot.operations.declare import ForOthers, Topic, delete, get
from folkmoot.operations.row import (
    Absent,
    AuditSpec,
    Cursor,
    NoContent,
    PageLimit,
    describe,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

mine = Topic(scope="contacts", tool=Absent("Whom one has invited is for people to look after."))


class OpenInvites(Struct, frozen=True):
    """Invitations that nobody has used yet, the newest first."""

    invites: list[OpenInvite]
    next_cursor: str | None


@mine.reads(
    "folkmoot/my_invites",
    get("/v1/me/invites", "listMyInvites", "List your open invitations"),
    commands=("invite list",),
    for_others=ForOthers(
        name="folkmoot/invites",
        route=get("/v1/invites", "listInvites", "List all open invitations"),
        says="List all invitations to this hub that nobody has used yet, and who made them.",
        whose=None,
    ),
)
async def my_invites(
    call: Call, *, limit: PageLimit = 100, cursor: Cursor | None = None
) -> OpenInvites:
    """List the invitations to this hub that you made and nobody has used yet."""
    by = None if call.for_others else call.subject.id
    before = None
    if cursor is not None:
        at, _, last = read_cursor(cursor).partition(" ")
        if not at.isdigit():
            raise wrong_cursor()
        before = int(at), last
    found = await call.services.accounts.open_invites(by, before, limit + 1)
    shown = found[:limit]
    more = len(found) > len(shown)
    last_one = f"{shown[-1].created_at} {shown[-1].id}" if more else ""
    return OpenInvites(shown, make_cursor(last_one) if more else None)


@mine.destroys(
    "folkmoot/withdraw_my_invite",
    delete(
        "/v1/me/invites/{invite}",
        "withdrawMyInvite",
        "Withdraw an invitation of yours",
        status=204,
    ),
    errors=(e.ArgumentInvalid, e.InviteNotOpen),
    audit=AuditSpec("invite.withdrawn", "invite"),
    commands=("invite withdraw",),
    for_others=ForOthers(
        name="folkmoot/withdraw_invite",
        route=delete(
            "/v1/invites/{invite}", "withdrawInvite", "Withdraw anyone's invitation", status=204
        ),
        says="Withdraw anyone's invitation: its link stops working at once.",
        whose=None,
    ),
)
async def withdraw_my_invite(
    call: Call,
    invite: Annotated[
        str, describe("Which invitation, by its id in the list.", schema={"maxLength": 64})
    ],
) -> NoContent:
    """Withdraw an invitation that you made: its link stops working at once."""
    by = None if call.for_others else call.subject.id
    await call.services.accounts.withdraw_invite(invite, by)
    return NoContent()
