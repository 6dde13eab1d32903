"""Rights at the hub: grant, revoke, look, and invite whom a handle awaits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.gateway.access import (
    AccessOf,
    Explained,
    GrantedView,
    Overview,
    PersonView,
    Revoked,
    ServerShare,
    access,
    access_to,
    explain,
)
from folkmoot.operations.limits import MAX_INVITE_DAYS, MAX_TOOLS_ACCEPTED
from folkmoot.operations.operator.people import find
from folkmoot.operations.operator.servers import check_known
from folkmoot.operations.row import (
    Absent,
    After,
    Arguments,
    AuditSpec,
    Handle,
    Route,
    describe,
    operated,
)

if TYPE_CHECKING:
    from folkmoot.accounts import Account
    from folkmoot.operations.call import Call, Services

DAY: Final = 86_400

IN_THE_CONSOLE: Final = Absent("The console has it; 'folkmoot grant' takes patterns.")
CAPABILITIES: Final = (
    "Capabilities, such as mcp.request.tools/call:files:read_*, or their short forms."
)


class GrantCapabilities(Arguments, frozen=True, kw_only=True):
    """The handle and the capabilities to grant."""

    handle: Handle
    patterns: Annotated[list[str], describe(CAPABILITIES, min_length=1)]


class Revoke(Arguments, frozen=True, kw_only=True):
    """The handle and the capabilities to revoke, or all of them."""

    handle: Handle
    patterns: Annotated[list[str], describe(CAPABILITIES)] | None = None
    everything: Annotated[bool, describe("Everything that was granted, instead of `patterns`.")] = (
        False
    )


class GrantsOf(Arguments, frozen=True, kw_only=True):
    """Whose."""

    handle: Handle


class ListGrants(Arguments, frozen=True, kw_only=True):
    """After which handle."""

    after: After = ""


ToolName = Annotated[str, describe("A tool by its canonical name.", max_length=1024)]
ToolNames = Annotated[
    list[Annotated[str, describe("A tool by its name, or a whole server.", max_length=1024)]],
    describe(
        "Tools by their canonical names, or whole servers by their namespaces.",
        min_length=1,
        max_length=MAX_TOOLS_ACCEPTED,
    ),
]


class AskAccessOf(Arguments, frozen=True, kw_only=True):
    """Whose, and about which tool."""

    handle: Handle
    tool: ToolName = ""


class SetAccess(Arguments, frozen=True, kw_only=True):
    """Who can call which tools, or not any more."""

    handle: Handle
    tools: ToolNames
    allowed: Annotated[bool, describe("Whether they can call them.")] = True


class InviteFor(Arguments, frozen=True, kw_only=True):
    """Under which handle, and for how many days."""

    handle: Handle
    days: Annotated[int, describe("How long it is valid.", ge=1, le=MAX_INVITE_DAYS)] = 7


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


async def access_of(call: Call[AskAccessOf]) -> AccessOf:
    """The servers someone can use, and why they can call a tool or not."""
    given, services = call.arguments, call.services
    account = await find(services, given.handle)
    answer = explained(services, account, given.tool) if given.tool else None
    return AccessOf(handle=account.handle, servers=shares(services, account), answer=answer)


async def set_access(call: Call[SetAccess]) -> AccessOf:
    """Allow someone tools, or take them away.

    A tool that they can call by more than what was granted, such as one of a server that is open
    to everyone, is denied. What is allowed is not denied any longer.
    """
    given, services, by = call.arguments, call.services, call.caller.account
    account = await find(services, given.handle)
    for name in given.tools:
        check_tool(services, name)
    granting, granted = services.granting, services.rights.granted.get(account.id, {})
    before = [f"!{name}" for name in given.tools] if given.allowed else given.tools
    gone = [each for each in granting.meant(before) if each in granted]
    whole = () if given.allowed else tuple(f"{name}:" for name in given.tools if ":" not in name)
    for each in granted:
        what = each.partition(":")[2]
        if each not in gone and each[0] != "!" and what.startswith(whole):
            gone.append(each)
    if gone:
        await granting.revoke(account.handle, gone, by=by)
    new = given.tools
    if not given.allowed:
        new = [f"!{name}" for name in given.tools if can_use(services, account, name)]
    if new:
        await granting.grant(account.handle, new, by=by)
    return AccessOf(handle=account.handle, servers=shares(services, account), answer=None)


def shares(services: Services, account: Account) -> list[ServerShare]:
    """What someone can use of each server."""
    held, parts = services.rights.held(account), services.gateway.catalogue.parts
    found = []
    for namespace in sorted(services.gateway.backends):
        rows = parts[namespace].rows["tools"] if namespace in parts else ()
        share = access(held, namespace, rows)
        found.append(ServerShare(namespace=namespace, tools=len(rows), access=share))
    return found


def can_use(services: Services, account: Account, name: str) -> bool:
    """Whether someone can call a tool, or use any of a server."""
    from folkmoot.gateway.part import kind_of

    held = services.rights.held(account)
    found = access_to(held, kind_of("tools", name)) if ":" in name else access(held, name, ())
    return found.may != "none"


def explained(services: Services, account: Account, tool: str) -> Explained:
    """Why someone can call a tool, or cannot."""
    from folkmoot.gateway.part import kind_of

    check_tool(services, tool)
    kind = kind_of("tools", tool)
    part = services.gateway.catalogue.parts.get(tool.partition(":")[0])
    return explain(
        account.handle,
        tool,
        access_to(services.rights.held(account), kind),
        exact=f"!{kind}",
        suspended=account.suspended_at is not None,
        held=part.tools[tool].quarantined if part else "",
    )


def check_tool(services: Services, name: str) -> None:
    """Refuse what is neither a server nor a tool that one lists."""
    namespace, colon, _ = name.partition(":")
    check_known(services.fleet, namespace or "-")
    part = services.gateway.catalogue.parts.get(namespace)
    if colon and (part is None or name not in part.tools or "*" in name):
        raise e.UnknownTool(f"{namespace} has no such tool.")


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
        commands=("rights",),
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
        commands=("rights",),
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
        name="folkmoot/access_of",
        description="Show which servers someone can use; with a tool, whether they can call it, "
        "and why or why not.",
        handler=access_of,
        errors=(e.BackendUnknown, e.CommandInvalid, e.UnknownTool, e.UserNotFound),
        needs=("fleet", "rights"),
        routes=(
            Route("GET", "/v1/people/{handle}/access", "getAccessOf", "Show what someone can use"),
        ),
        commands=IN_THE_CONSOLE,
    ),
    operated(
        name="folkmoot/set_access",
        description="Let someone call tools or use whole servers, or take that away. Takes effect "
        "at once.",
        handler=set_access,
        errors=(
            e.BackendUnknown,
            e.CommandInvalid,
            e.TooManyCapabilities,
            e.UnknownTool,
            e.UserNotFound,
        ),
        needs=("fleet", "granting"),
        audit=AuditSpec("hub.grant", "handle", by_service=True),
        routes=(
            Route(
                "PUT",
                "/v1/people/{handle}/access",
                "setAccessOf",
                "Allow someone tools",
                example={"tools": ["files:read"], "allowed": True},
            ),
        ),
        commands=IN_THE_CONSOLE,
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
