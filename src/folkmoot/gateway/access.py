"""Who may use a server and by which grant, group or setting; answers about rights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.capability import Capability, Rights, capability
from folkmoot.gateway.configured_rights import distinct, may_use
from folkmoot.gateway.limits import MAX_TOOLS_NAMED
from folkmoot.names.safe_names import OF_A_BACKEND

if TYPE_CHECKING:
    from folkmoot.core.kinds import Kind
    from folkmoot.gateway.configured_rights import HeldRight
    from folkmoot.gateway.part import Row


May: TypeAlias = Literal["all", "some", "none"]

BECAUSE: Final = {
    "default": "every account can",
    "everyone": "the server is open to everyone",
    "group": "allowed for the group {}",
    "settings": "allowed in the settings file",
    "granted": "allowed by an operator",
}
DENIED: Final = {
    "group": "denied for the group {}",
    "settings": "denied in the settings file",
    "granted": "denied by an operator",
}
"""Why someone can, or cannot, by where a capability is from."""


class AccessReason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One capability about a server, and its origin."""

    capability: Any
    why: str
    """Such as "allowed for the group team"."""
    origin: str
    name: str = ""
    """The group, if it is one's."""
    at: int | None = None
    """When it was granted, if that was while the hub ran."""
    denies: bool = False


class Access(Struct, frozen=True, kw_only=True):
    """What someone may use of a server, and why."""

    may: May
    tools: int
    """How many of the tools that are listed."""
    reasons: list[AccessReason]
    names: list[str] = []
    """The first of those tools, where it is some of them."""


def access(held: Sequence[HeldRight], namespace: str, rows: Sequence[Row]) -> Access:
    """What these capabilities allow of a server that lists these tools."""
    wholes = [capability(pattern.format(namespace)) for pattern in OF_A_BACKEND]
    about = [each for each in held if any(each.capability.intersects(it) for it in wholes)]
    rights = rights_of(about)
    names = [row.key for row in rows if rights.allows(row.kind)]
    if not may_use(rights, namespace):
        return Access(may="none", tools=0, reasons=reasons(about))
    if len(names) == len(rows) and not any(each.capability.denies for each in about):
        return Access(may="all", tools=len(names), reasons=reasons(about))
    some = names[:MAX_TOOLS_NAMED]
    return Access(may="some", tools=len(names), reasons=reasons(about), names=some)


def access_to(held: Sequence[HeldRight], kind: Kind) -> Access:
    """Whether these capabilities allow one tool: with all arguments, with some, or not at all."""
    about = [each for each in held if each.capability.matches_kind(kind)]
    allowing = [each for each in about if not each.capability.denies]
    denying = [each for each in about if each.capability.denies]
    if rights_of(about).allows(kind):
        return Access(may="all", tools=1, reasons=reasons(allowing))
    if allowing and all(is_narrow(each.capability) for each in denying):
        # With some arguments they may: those that the grant names, or a deny does not.
        return Access(may="some", tools=1, reasons=reasons(about))
    return Access(may="none", tools=0, reasons=reasons(denying))


def is_narrow(one: Capability) -> bool:
    """Whether it speaks of some arguments alone."""
    return one.constraint is not None or one.target is not None


def rights_of(held: Iterable[HeldRight]) -> Rights:
    """The rights of these capabilities; none where they are too many."""
    try:
        return Rights(distinct(held).values())
    except e.CapabilityError:
        return Rights(["!*"])


def reasons(held: Iterable[HeldRight]) -> list[AccessReason]:
    """Capabilities with where they are from, as a sentence goes on: "@bob can call this: …"."""
    return [
        AccessReason(
            capability=each.capability.source,
            why=why(each),
            origin=each.origin,
            name=each.name if each.origin == "group" else "",
            at=each.at,
            denies=each.capability.denies,
        )
        for each in held
    ]


def why(held: HeldRight) -> str:
    """Where a capability is from, in words."""
    words = DENIED if held.capability.denies else BECAUSE
    return words.get(held.origin, BECAUSE["default"]).format(held.name)


class GrantedView(Struct, frozen=True):
    """The new grants, those that existed already, and warnings about likely mistakes."""

    handle: str
    granted: list[str]
    already: list[str]
    warnings: list[str]


class Revoked(Struct, frozen=True):
    """The revoked grants."""

    handle: str
    revoked: list[str]


class HeldCapability(Struct, frozen=True, omit_defaults=True):
    """A capability and where it is from."""

    capability: Any
    origin: str
    name: str = ""
    at: int | None = None


class PersonView(Struct, frozen=True):
    """All rights of one handle; without an account, those that wait for it."""

    handle: str
    account: str | None
    account_type: str | None
    held: list[HeldCapability]


class GrantRow(Struct, frozen=True):
    """The number of someone's grants."""

    handle: str
    state: Literal["account", "redirect", "nobody"]
    leads_to: str | None
    groups: list[str]
    settings: int
    granted: int


class Overview(Struct, frozen=True):
    """What everyone holds, and a page of those who hold more, by handle."""

    everyone: list[HeldCapability]
    people: list[GrantRow]
    next: str | None
    """The handle after which the next page begins, if there is one."""


class PersonAccess(Struct, frozen=True, kw_only=True):
    """One handle's access to a server."""

    handle: str
    account: bool
    """Whether someone has it; else it is what awaits whoever is invited."""
    access: Access


class GroupAccess(Struct, frozen=True, kw_only=True):
    """One group's access to a server."""

    name: str
    members: int
    access: Access


class ServerAccess(Struct, frozen=True, kw_only=True):
    """Who can use a server, and why: everyone, groups, and a page of people with their own."""

    namespace: str
    tools: int
    """How many tools it lists."""
    everyone: Access
    groups: list[GroupAccess]
    """Those that are allowed or denied something of it; on the first page."""
    people: list[PersonAccess]
    next: str | None
    """The handle after which the next page begins, if there is one."""


class ServerShare(Struct, frozen=True, kw_only=True):
    """What someone can use of one server."""

    namespace: str
    tools: int
    """How many tools it lists."""
    access: Access


class Explained(Struct, frozen=True, kw_only=True):
    """Whether someone can call a tool, in one sentence, and what changes it."""

    tool: str
    may: May
    sentence: str
    change: Literal["", "allow", "deny", "restore", "accept"]
    """`allow` and `deny` are for `folkmoot/set_access`; empty where the settings file decides."""


class AccessOf(Struct, frozen=True, kw_only=True):
    """What someone can use of each server."""

    handle: str
    servers: list[ServerShare]
    answer: Explained | None
    """About one tool, if it was asked about."""


def explain(
    handle: str, tool: str, found: Access, *, exact: str, suspended: bool, held: str
) -> Explained:
    """Why someone can call a tool, or cannot; `exact` denies this tool and nothing else."""

    def told(sentence: str, change: Literal["", "allow", "deny", "restore", "accept"]) -> Explained:
        may = "none" if suspended or held else found.may
        return Explained(tool=tool, may=may, sentence=sentence, change=change)

    why = " and ".join(dict.fromkeys(reason.why for reason in found.reasons))
    if suspended:
        return told(f"@{handle} can't call {tool}: the account is suspended.", "restore")
    if held:
        return told(f"Nobody can call {tool} yet: it is {held} and waits for review.", "accept")
    if found.may == "all":
        return told(f"@{handle} can call {tool}: {why}.", "deny")
    if found.may == "some":
        return told(f"@{handle} can call {tool} with some arguments only: {why}.", "deny")
    if not found.reasons:
        return told(f"@{handle} can't call {tool}: nobody has allowed it.", "allow")
    others = [
        reason
        for reason in found.reasons
        if (reason.origin, reason.capability) != ("granted", exact)
    ]
    if not others:
        return told(f"@{handle} can't call {tool}: {why}.", "allow")
    if all(reason.origin == "granted" for reason in others):
        return told(f"@{handle} can't call {tool}: denied by an operator, with more than it.", "")
    return told(f"@{handle} can't call {tool}: {why}. Change it there.", "")
