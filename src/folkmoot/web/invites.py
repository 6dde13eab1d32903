"""`/invite/CODE`: MMP §9.2, what someone who was sent a link sees, and the form they fill in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs

from msgspec import Struct

from folkmoot.accounts import Invitation
from folkmoot.core.errors import MediaTypeUnsupported

if TYPE_CHECKING:
    from starlette.requests import Request

Invitations: TypeAlias = Callable[[str], Awaitable[Invitation]]
"""Answers what whoever has a code may know."""

CODE = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""What a code can look like; nothing else is looked up."""

HEADERS = {"x-robots-tag": "noindex, nofollow"}
FORM_HEADERS = {**HEADERS, "referrer-policy": "same-origin"}
"""Without a referrer a browser calls the form's origin null, which is nobody's."""

FORM_TYPE = "application/x-www-form-urlencoded"
FORM_BYTES = 4096
FORM_FIELDS = 8
MOST_WORDS = 2_000
"""Characters of the inviter's words on the page; all of them come as a message."""


class Joined(Struct, frozen=True):
    """What came of a form: an account with its secrets, or why there is none."""

    handle: str = ""
    token: str = ""
    recovery_code: str = ""
    error: str = ""
    status: int = 200
    cookie: dict[str, str] = {}
    """The header that signs the browser in; empty where it is not."""

    def __repr__(self) -> str:
        return f"<Joined {self.handle or self.status}>"


Join: TypeAlias = Callable[["Request", str, str, str], Awaitable[Joined]]
"""Makes an account: the request, the address it came by, the handle and the code."""


class Invite(Struct, frozen=True):
    """What is said of an invite in one state."""

    status: int
    label: str
    text: str
    advice: str = ""


INVITES = {
    "unknown": Invite(
        404,
        "No such invite",
        "Invalid invite code.",
        "The link may be incomplete. Ask the person who sent it to send it again.",
    ),
    "claimed": Invite(
        410,
        "Already used",
        "This invite has already been claimed.",
        "An invite is for one person. If you claimed it, you already have an account; "
        "otherwise ask for your own invite.",
    ),
    "expired": Invite(
        410,
        "Expired",
        "This invite has expired.",
        "Ask the person who sent it for a new one.",
    ),
    "valid": Invite(
        200,
        "You are invited",
        "This invite is valid. Use it in your MCP client to register.",
    ),
}


async def none_known(_code: str) -> Invitation:
    """What there is to know of any code on a hub that has no invites."""
    return Invitation("unknown")


async def look_up(invitations: Invitations, code: str) -> Invitation:
    """What there is to know of a code."""
    return await (invitations if CODE.fullmatch(code) else none_known)(code)


def who_invites(invitation: Invitation) -> str:
    """Who invites, in a sentence."""
    inviter, name = invitation.inviter, invitation.inviter_name
    if inviter is None:
        return "The operator of this hub invites you."
    who = f"@{inviter}" if name in (None, "", inviter) else f"{name} (@{inviter})"
    return f"{who} invites you to exchange messages here."


def closed_note(invitation: Invitation) -> str:
    """What to say of an invite that opens no account, though it is valid."""
    return "" if invitation.opens else "Registration is closed on this server at the moment."


def words_of(invitation: Invitation) -> str:
    """The inviter's words, as far as the page shows them."""
    words = (invitation.message or "").strip()
    return words if len(words) <= MOST_WORDS else f"{words[:MOST_WORDS].rstrip()}…"


async def handle_in(request: Request) -> str:
    """The handle that was typed into the form; nothing for what no form of ours sends."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise MediaTypeUnsupported(f"Send the form as {FORM_TYPE}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES:
            return ""
    try:
        fields: dict[str, Any] = parse_qs(body.decode(), max_num_fields=FORM_FIELDS)
    except ValueError:
        return ""
    return str(fields.get("handle", [""])[0]).strip()
