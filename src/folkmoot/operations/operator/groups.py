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
from folkmoot.operations.declare import OPERATED, Topic, delete, get, put
from folkmoot.operations.operator.grants import IN_THE_CONSOLE, ToolNames, check_tool
from folkmoot.operations.operator.server_edits import check_switch, edited, settings
from folkmoot.operations.row import AuditSpec, NoContent, describe
from folkmoot.settings.editing import parsed, with_value
from folkmoot.settings.limits import MAX_MEMBERS

if TYPE_CHECKING:
    from folkmoot.operations.call import Call, Services

PATH: Final = "/v1/groups/{group}"
GroupName = Annotated[str, describe("The name of the group.", min_length=1, max_length=32)]
looking = Topic(
    scope="operate",
    who="operator",
    tool=OPERATED,
    needs=("fleet", "rights"),
    commands=IN_THE_CONSOLE,
)
editing = looking.with_(
    needs=("fleet", "reloading", "rights"),
    errors=(e.BackendUnknown, e.CapabilityDenied, e.CommandInvalid, e.UnknownTool),
)


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


@looking.reads("folkmoot/groups", get("/v1/groups", "listGroups", "List the groups"))
async def groups(call: Call) -> Groups:
    """List the groups: who is in them, and which servers they can use."""
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


@editing.changes(
    "folkmoot/set_group",
    put(PATH, "setGroup", "Create or change a group", example={"members": ["ada", "bob"]}),
    audit=AuditSpec("group.changed", "group"),
)
async def set_group(
    call: Call,
    group: GroupName,
    members: Annotated[
        list[Annotated[str, describe("A handle.", max_length=64)]],
        describe("Handles of everyone who is in it.", max_length=MAX_MEMBERS),
    ],
) -> Groups:
    """Create a group in the settings file, or change who is in it."""
    await changed(call, lambda text: with_value(text, ("groups", group), members))
    return await listed(call.services)


@editing.destroys(
    "folkmoot/remove_group",
    delete(PATH, "removeGroup", "Remove a group", status=204),
    audit=AuditSpec("group.removed", "group"),
)
async def remove_group(call: Call, group: GroupName) -> NoContent:
    """Remove a group from the settings file, and what it was allowed."""
    check_group(call, group)

    def change(text: str) -> str:
        without_grants = with_value(text, ("grants", GROUP + group), None)
        return with_value(without_grants, ("groups", group), None)

    await changed(call, change)
    return NoContent()


@editing.changes(
    "folkmoot/set_group_access",
    put(
        PATH + "/access",
        "setGroupAccess",
        "Allow a group tools",
        example={"tools": ["files:read"], "allowed": True},
    ),
    audit=AuditSpec("group.access", "group"),
)
async def set_group_access(
    call: Call,
    group: GroupName,
    tools: ToolNames,
    *,
    allowed: Annotated[bool, "Whether it can call them."] = True,
) -> Groups:
    """Let a group call tools or use whole servers, or take that away."""
    check_group(call, group)
    for name in tools:
        check_tool(call.services, name)
    namespaces = call.services.rights.settled.namespaces
    key = ("grants", GROUP + group)

    def change(text: str) -> str:
        before = parsed(text).get(key[0], {}).get(key[1], [])
        after = regranted(before, tools, namespaces, allowed=allowed)
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


async def changed(call: Call, change: Callable[[str], str]) -> None:
    """Change the settings file."""
    check_switch(call)
    await edited(settings(call), change)


def check_group(call: Call, name: str) -> None:
    """Refuse a group that there is not."""
    if name not in call.services.rights.settled.groups:
        raise e.CommandInvalid(f"There is no group {name}.")
