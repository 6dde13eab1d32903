"""Who may use a server and by which grant, group or setting; answers about rights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.capability import Capability, Rights, capability
from folkmoot.gateway.configured_rights import distinct, may_use
from folkmoot.names.safe_names import OF_A_BACKEND

if TYPE_CHECKING:
    from folkmoot.core.kinds import Kind
    from folkmoot.gateway.configured_rights import HeldRight
    from folkmoot.gateway.part import Row


May: TypeAlias = Literal["all", "some", "none"]

BECAUSE: Final = {
    "default": "by default",
    "everyone": "because everyone may use it",
    "group": "by the grant of group {}",
    "settings": "by a grant in the settings",
    "granted": "by an operator's grant",
}
DENIED: Final = {
    "group": "denied by the grant of group {}",
    "settings": "denied in the settings",
    "granted": "denied by an operator",
}
"""Why someone may, or may not, by where a capability is from."""


class AccessReason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One capability about a server, and its origin."""

    capability: Any
    why: str
    """Such as "by the grant of group team"."""
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


def access(held: Sequence[HeldRight], namespace: str, rows: Sequence[Row]) -> Access:
    """What these capabilities allow of a server that lists these tools."""
    wholes = [capability(pattern.format(namespace)) for pattern in OF_A_BACKEND]
    about = [each for each in held if any(each.capability.intersects(it) for it in wholes)]
    rights = rights_of(about)
    tools = sum(rights.allows(row.kind) for row in rows)
    if not may_use(rights, namespace):
        return Access(may="none", tools=0, reasons=reasons(about))
    whole = tools == len(rows) and not any(each.capability.denies for each in about)
    return Access(may="all" if whole else "some", tools=tools, reasons=reasons(about))


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
    """Capabilities with where they are from, as a sentence goes on: "bob may call this …"."""
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


class ServerAccess(Struct, frozen=True, kw_only=True):
    """Who may use a server, and why: everyone, and a page of those whose rights are their own."""

    namespace: str
    tools: int
    """How many tools it lists."""
    everyone: Access
    people: list[PersonAccess]
    next: str | None
    """The handle after which the next page begins, if there is one."""
