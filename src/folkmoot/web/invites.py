"""`/invite/CODE`: MMP §9.2, what someone who was sent a link sees."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from folkmoot.accounts import HubInvitation
from folkmoot.web.limits import MAX_INVITE_MESSAGE

Invitations: TypeAlias = Callable[[str], Awaitable[HubInvitation]]
"""Answers what whoever has a code may know."""

CODE = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""What a code can look like; nothing else is looked up."""

HEADERS = {"x-robots-tag": "noindex, nofollow"}


class InviteNotice(Struct, frozen=True):
    """What is said of an invite in one state."""

    status: int
    label: str
    text: str
    advice: str = ""


INVITES = {
    "unknown": InviteNotice(
        404,
        "No such invite",
        "Invalid invite code.",
        "The link may be incomplete. Ask the person who sent it to send it again.",
    ),
    "claimed": InviteNotice(
        410,
        "Already used",
        "This invite has already been claimed.",
        "An invite is for one person. If you claimed it, you already have an account; "
        "otherwise ask for your own invite.",
    ),
    "expired": InviteNotice(
        410,
        "Expired",
        "This invite has expired.",
        "Ask the person who sent it for a new one.",
    ),
    "valid": InviteNotice(
        200,
        "You are invited",
        "This invite is valid. Use it in your MCP client to register.",
    ),
}


async def none_known(_code: str) -> HubInvitation:
    """What there is to know of any code on a hub that has no invites."""
    return HubInvitation("unknown")


async def look_up(invitations: Invitations, code: str) -> HubInvitation:
    """What an invite's code shows."""
    return await (invitations if CODE.fullmatch(code) else none_known)(code)


def who_invites(invitation: HubInvitation) -> str:
    """Who invites, in a sentence."""
    inviter, name = invitation.inviter, invitation.inviter_name
    if inviter is None:
        return "You are invited to Folkmoot."
    who = f"@{inviter}" if name in (None, "", inviter) else f"{name} (@{inviter})"
    return f"{who} invited you to Folkmoot."


def closed_note(invitation: HubInvitation) -> str:
    """What to say of an invite that opens no account, though it is valid."""
    return "" if invitation.opens else "Registration is closed on this server at the moment."


def words_of(invitation: HubInvitation) -> str:
    """The inviter's message, as far as the page shows it."""
    words = (invitation.message or "").strip()
    return words if len(words) <= MAX_INVITE_MESSAGE else f"{words[:MAX_INVITE_MESSAGE].rstrip()}…"
