"""`/invite/CODE`: MMP §9.2, what someone who was sent a link sees."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

InviteState: TypeAlias = Callable[[str], Awaitable[str]]
"""Answers `unknown`, `claimed`, `expired` or `valid` for a code."""

InvitedHandle: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Answers the handle that a code is for, if it is for one."""

CODE = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""What a code can look like; nothing else is looked up."""

HEADERS = {"x-robots-tag": "noindex, nofollow"}


class Invite(Struct, frozen=True):
    """What is said of an invite in one state."""

    status: int
    label: str
    text: str
    advice: str = ""


UNKNOWN = Invite(
    404,
    "No such invite",
    "Invalid invite code.",
    "Perhaps the link was cut short on its way. Ask whoever sent it to send it again.",
)
INVITES = {
    "unknown": UNKNOWN,
    "claimed": Invite(
        410,
        "Already used",
        "This invite has already been claimed.",
        "An invite is good for one person. If it was you, you are already in; "
        "otherwise ask for one of your own.",
    ),
    "expired": Invite(
        410,
        "Too late",
        "This invite has expired.",
        "It was good for a few days only. Ask whoever sent it for another.",
    ),
    "valid": Invite(
        200,
        "You are invited",
        "This invite is valid. Use it in your MCP client to register.",
    ),
}


async def none_known(_code: str) -> str:
    """The state of every code on a hub that has no invites."""
    return "unknown"


async def any_handle(_code: str) -> str | None:
    """The handle of every code on a hub whose invites are for none."""
    return None


async def look_up(state: InviteState, code: str) -> Invite:
    """What there is to say of a code."""
    if not CODE.fullmatch(code):
        return UNKNOWN
    return INVITES[await state(code)]
