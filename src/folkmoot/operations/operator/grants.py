"""Rights at the hub: grant, revoke, look, and invite whom a handle awaits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.gateway.access import (
    GrantedView,
    Overview,
    PersonView,
    Revoked,
)
from folkmoot.operations.limits import MAX_INVITE_DAYS
from folkmoot.operations.row import (
    After,
    Arguments,
    AuditSpec,
    Handle,
    Route,
    operated,
    says,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

DAY: Final = 86_400

CAPABILITIES: Final = (
    "Capabilities, such as mcp.request.tools/call:files:read_*, or their short forms."
)


class GrantCapabilities(Arguments, frozen=True, kw_only=True):
    """The handle and the capabilities to grant."""

    handle: Handle
    patterns: Annotated[list[str], says(CAPABILITIES, min_length=1)]


class Revoke(Arguments, frozen=True, kw_only=True):
    """The handle and the capabilities to revoke, or all of them."""

    handle: Handle
    patterns: Annotated[list[str], says(CAPABILITIES)] | None = None
    everything: Annotated[bool, says("Everything that was granted, instead of `patterns`.")] = False


class GrantsOf(Arguments, frozen=True, kw_only=True):
    """Whose."""

    handle: Handle


class ListGrants(Arguments, frozen=True, kw_only=True):
    """After which handle."""

    after: After = ""


class InviteFor(Arguments, frozen=True, kw_only=True):
    """Under which handle, and for how many days."""

    handle: Handle
    days: Annotated[int, says("How long it is valid.", ge=1, le=MAX_INVITE_DAYS)] = 7


class InvitedHandle(Struct, frozen=True):
    """An invite for one handle; it is not shown again."""

    handle: str
    invite_code: str
    invite_url: str
    until: int


async def grant(call: Call[GrantCapabilities]) -> GrantedView:
    """Grant or deny someone capabilities."""
    given = call.arguments
    return await call.services.granting.grant(given.handle, given.patterns, by=call.caller.account)


async def revoke(call: Call[Revoke]) -> Revoked:
    given = call.arguments
    if bool(given.patterns) == given.everything:
        raise e.CommandInvalid("Give the patterns to revoke, or everything.")
    granting, patterns = call.services.granting, given.patterns or []
    return await granting.revoke(
        given.handle, patterns, everything=given.everything, by=call.caller.account
    )


async def grants_of(call: Call[GrantsOf]) -> PersonView:
    """The grants of one handle."""
    return await call.services.grant_views.person(call.arguments.handle)


async def grants(call: Call[ListGrants]) -> Overview:
    """Everyone who holds more than everyone does."""
    return await call.services.grant_views.overview(call.arguments.after)


async def invite_for(call: Call[InviteFor]) -> InvitedHandle:
    """Make an invite for a handle that nobody has."""
    given = call.arguments
    made = await call.services.granting.invite(
        given.handle, given.days * DAY, by=call.caller.account
    )
    url = f"{call.services.url.rstrip('/')}/invite/{made.code}"
    return InvitedHandle(made.handle, made.code, url, made.until)


GRANTS = (
    operated(
        name="folkmoot/grants",
        description="List everyone who has rights beyond the defaults.",
        handler=grants,
        needs=("grant_views",),
        routes=(Route("GET", "/v1/grants", "listGrants", "List who has more rights"),),
        commands=("grants",),
    ),
    operated(
        name="folkmoot/grants_of",
        description="Show all capabilities of one account, and where each comes from.",
        handler=grants_of,
        errors=(e.UserNotFound,),
        needs=("grant_views",),
        routes=(
            Route("GET", "/v1/people/{handle}/grants", "getGrants", "Show someone's capabilities"),
        ),
        commands=("grants",),
    ),
    operated(
        name="folkmoot/grant",
        description="Grant or deny someone capabilities at the hub. Takes effect at once.",
        handler=grant,
        errors=(e.CommandInvalid, e.PatternSyntax, e.TooManyCapabilities, e.UserNotFound),
        needs=("granting",),
        audit=AuditSpec("hub.grant", "handle", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/people/{handle}/grants",
                "grant",
                "Grant someone capabilities",
                example={"patterns": ["files:read_*"]},
            ),
        ),
        commands=("grant",),
    ),
    operated(
        name="folkmoot/revoke",
        description="Revoke what was granted. Rights from the settings file are changed there.",
        handler=revoke,
        errors=(e.CommandInvalid, e.PatternSyntax, e.UserNotFound),
        needs=("granting",),
        audit=AuditSpec("hub.revoke", "handle", by_service=True),
        routes=(
            Route("DELETE", "/v1/people/{handle}/grants", "revoke", "Revoke what was granted"),
        ),
        commands=("revoke",),
    ),
    operated(
        name="folkmoot/invite_for",
        description="Create an invite for a handle that nobody has, even if registration is "
        "closed. It replaces an earlier one.",
        handler=invite_for,
        effect="adds",
        needs=("granting",),
        audit=AuditSpec("account.invited", "handle", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/people/{handle}/invite",
                "inviteFor",
                "Create an invite for a handle",
                example={"days": 7},
            ),
        ),
        commands=("invite",),
    ),
)
