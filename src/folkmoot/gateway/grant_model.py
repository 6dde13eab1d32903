"""What is told of rights: changes, one person's, everyone's."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from folkmoot.gateway.access import Access


class Granted(Struct, frozen=True):
    """What someone was granted, what they had been granted before, and what looks like a slip."""

    handle: str
    granted: list[str]
    already: list[str]
    warnings: list[str]


class Revoked(Struct, frozen=True):
    """What someone was granted until now."""

    handle: str
    revoked: list[str]


class HeldCapability(Struct, frozen=True, omit_defaults=True):
    """A capability and where it is from."""

    capability: Any
    origin: str
    name: str = ""
    at: int | None = None


class PersonView(Struct, frozen=True):
    """Everything one handle holds; without an account it is what awaits whoever is invited."""

    handle: str
    account: str | None
    account_type: str | None
    held: list[HeldCapability]


class GrantRow(Struct, frozen=True):
    """How much someone holds beyond what everyone does."""

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
    """What one handle may use of a server."""

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
