"""The commands about rights: grant, revoke, look, and invite whom a handle awaits."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from folkmoot.control.commands import convert
from folkmoot.control.wire import Command, Progress
from folkmoot.core.errors import CommandInvalid
from folkmoot.gateway.grant_views import GrantViews
from folkmoot.gateway.granting import Granting

GRANT: Final = "grants.grant"
REVOKE: Final = "grants.revoke"
SHOW: Final = "grants.show"
LIST: Final = "grants.list"
INVITE: Final = "grants.invite"

DAY: Final = 86_400
MOST_DAYS: Final = 365


class GrantArguments(msgspec.Struct, forbid_unknown_fields=True):
    """To whom, and what."""

    handle: str
    patterns: Annotated[list[str], Meta(min_length=1)]


class RevokeArguments(msgspec.Struct, forbid_unknown_fields=True):
    """From whom, and what; or everything that was granted."""

    handle: str
    patterns: list[str] = []
    everything: bool = False


class ShowArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Whose."""

    handle: str


class ListArguments(msgspec.Struct, forbid_unknown_fields=True):
    """After which handle."""

    after: str = ""


class InviteArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Under which handle, and for how many days."""

    handle: str
    days: Annotated[int, Meta(ge=1, le=MOST_DAYS)] = 7


def grant_commands(granting: Granting, views: GrantViews, url: str) -> dict[str, Command]:
    """What can be asked about rights; `url` is where the hub's pages are."""

    async def grant(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, GrantArguments)
        return await granting.grant(given.handle, given.patterns)

    async def revoke(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, RevokeArguments)
        if bool(given.patterns) == given.everything:
            raise CommandInvalid("Give the patterns to revoke, or everything.")
        return await granting.revoke(given.handle, given.patterns, everything=given.everything)

    async def show(arguments: dict[str, Any], _progress: Progress) -> Any:
        return await views.person(convert(arguments, ShowArguments).handle)

    async def list_all(arguments: dict[str, Any], _progress: Progress) -> Any:
        return await views.overview(convert(arguments, ListArguments).after)

    async def invite(arguments: dict[str, Any], _progress: Progress) -> Any:
        given = convert(arguments, InviteArguments)
        made = await granting.invite(given.handle, given.days * DAY)
        return {
            "handle": made.handle,
            "invite_code": made.code,
            "invite_url": f"{url.rstrip('/')}/invite/{made.code}",
            "until": made.until,
        }

    return {GRANT: grant, REVOKE: revoke, SHOW: show, LIST: list_all, INVITE: invite}
