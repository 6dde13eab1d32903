"""Groups of people: who is in them and what they can use. They are kept in the settings file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.capability import capability
from folkmoot.gateway.access import ServerShare, access, access_to
from folkmoot.gateway.configured_rights import GROUP, HeldRight
from folkmoot.names.safe_names import spelled_out
from folkmoot.operations.operator.grants import IN_THE_CONSOLE, ToolNames, check_tool
from folkmoot.operations.operator.server_edits import check_switch, edited, settings
from folkmoot.operations.row import (
    Arguments,
    AuditSpec,
    NoContent,
    Nothing,
    Route,
    describe,
    operated,
)
from folkmoot.settings.editing import parsed, with_value
from folkmoot.settings.limits import MAX_MEMBERS

if TYPE_CHECKING:
    from folkmoot.operations.call import Call, Services

GroupName = Annotated[str, describe("The name of the group.", min_length=1, max_length=32)]


class GroupView(Struct, frozen=True, kw_only=True):
    """A group: who is in it, and what it can use of each server."""

    name: str
    members: list[str]
    """By their handles."""
    from_company: list[str]
    """Those who are in it by what their company says when they sign in."""
    servers: list[ServerShare]
    """Those that it is allowed or denied something of."""


class Groups(Struct, frozen=True):
    """The groups, by name."""

    groups: list[GroupView]


class SetGroup(Arguments, frozen=True, kw_only=True):
    """Who is in a group."""

    group: GroupName
    members: Annotated[
        list[Annotated[str, describe("A handle.", max_length=64)]],
        describe("Handles of everyone who is in it.", max_length=MAX_MEMBERS),
    ]


class OneGroup(Arguments, frozen=True, kw_only=True):
    """Which group."""

    group: GroupName


class SetGroupAccess(Arguments, frozen=True, kw_only=True):
    """What a group can call, or not any more."""

    group: GroupName
    tools: ToolNames
    allowed: Annotated[bool, describe("Whether it can call them.")] = True


async def groups(call: Call[Nothing]) -> Groups:
    """All groups."""
    return await listed(call.services)


async def listed(services: Services) -> Groups:
    """The groups as the settings have them now."""
    from folkmoot.gateway import queries

    settled, parts = services.rights.settled, services.gateway.catalogue.parts
    company = services.rights.company_members()
    handles = await services.store.read(lambda tx: queries.handles_of(tx, company))
    found = []
    for name, members in sorted(settled.groups.items()):
        shares = []
        for namespace in sorted(services.gateway.backends):
            rows = parts[namespace].rows["tools"] if namespace in parts else ()
            share = access(settled.of_group(name), namespace, rows)
            if share.reasons:
                shares.append(ServerShare(namespace=namespace, tools=len(rows), access=share))
        told = sorted(handle for key, handle in handles.items() if name in company[key])
        found.append(GroupView(name=name, members=list(members), from_company=told, servers=shares))
    return Groups(found)


async def set_group(call: Call[SetGroup]) -> Groups:
    """Make a group, or change who is in it."""
    given = call.arguments
    await changed(call, lambda text: with_value(text, ("groups", given.group), given.members))
    return await listed(call.services)


async def remove_group(call: Call[OneGroup]) -> NoContent:
    """Remove a group with all that it can use."""
    name = call.arguments.group
    check_group(call, name)
    await changed(
        call,
        lambda text: with_value(
            with_value(text, ("grants", GROUP + name), None), ("groups", name), None
        ),
    )
    return NoContent()


async def set_group_access(call: Call[SetGroupAccess]) -> Groups:
    """Allow a group tools, or take them away."""
    given = call.arguments
    check_group(call, given.group)
    for name in given.tools:
        check_tool(call.services, name)
    namespaces = call.services.rights.settled.namespaces
    key = ("grants", GROUP + given.group)

    def change(text: str) -> str:
        before = parsed(text).get(key[0], {}).get(key[1], [])
        after = regranted(before, given.tools, namespaces, allowed=given.allowed)
        return with_value(text, key, after or None)

    await changed(call, change)
    return await listed(call.services)


def regranted(
    before: Sequence[Any], tools: Sequence[str], namespaces: Iterable[str], *, allowed: bool
) -> list[Any]:
    """The capabilities of a group with these tools allowed, or not."""
    from folkmoot.gateway.part import kind_of

    known = frozenset(namespaces)
    leaving = set(spelled_out([f"!{it}" if allowed else it for it in tools], known))
    whole = () if allowed else tuple(f"{it}:" for it in tools if ":" not in it)
    left = [
        each
        for each in before
        if not isinstance(each, str)
        or not (set(spelled_out([each], known)) <= leaving or each.startswith(whole))
    ]
    if allowed:
        return [*left, *(it for it in tools if it not in left)]
    texts = [text for each in left if isinstance(each, str) for text in spelled_out([each], known)]
    held = [HeldRight(capability(text), "group") for text in texts]
    for name in tools:
        found = access_to(held, kind_of("tools", name)) if ":" in name else access(held, name, ())
        if found.may != "none":
            left.append(f"!{name}")
    return left


async def changed(call: Call[Any], change: Callable[[str], str]) -> None:
    """Change the settings file."""
    check_switch(call)
    await edited(settings(call), change)


def check_group(call: Call[Any], name: str) -> None:
    """Refuse a group that there is not."""
    if name not in call.services.rights.settled.groups:
        raise e.CommandInvalid(f"There is no group {name}.")


ERRORS: Final = (e.BackendUnknown, e.CapabilityDenied, e.CommandInvalid, e.UnknownTool)
NEEDS: Final = ("fleet", "reloading", "rights")

GROUPS = (
    operated(
        name="folkmoot/groups",
        description="List the groups: who is in them, and which servers they can use.",
        handler=groups,
        needs=("fleet", "rights"),
        routes=(Route("GET", "/v1/groups", "listGroups", "List the groups"),),
        commands=IN_THE_CONSOLE,
    ),
    operated(
        name="folkmoot/set_group",
        description="Create a group in the settings file, or change who is in it.",
        handler=set_group,
        errors=ERRORS,
        needs=NEEDS,
        audit=AuditSpec("group.changed", "group"),
        routes=(
            Route(
                "PUT",
                "/v1/groups/{group}",
                "setGroup",
                "Create or change a group",
                example={"members": ["ada", "bob"]},
            ),
        ),
        commands=IN_THE_CONSOLE,
    ),
    operated(
        name="folkmoot/remove_group",
        description="Remove a group from the settings file, and what it was allowed.",
        handler=remove_group,
        errors=ERRORS,
        needs=NEEDS,
        audit=AuditSpec("group.removed", "group"),
        routes=(
            Route("DELETE", "/v1/groups/{group}", "removeGroup", "Remove a group", status=204),
        ),
        commands=IN_THE_CONSOLE,
    ),
    operated(
        name="folkmoot/set_group_access",
        description="Let a group call tools or use whole servers, or take that away.",
        handler=set_group_access,
        errors=ERRORS,
        needs=NEEDS,
        audit=AuditSpec("group.access", "group"),
        routes=(
            Route(
                "PUT",
                "/v1/groups/{group}/access",
                "setGroupAccess",
                "Allow a group tools",
                example={"tools": ["files:read"], "allowed": True},
            ),
        ),
        commands=IN_THE_CONSOLE,
    ),
)
