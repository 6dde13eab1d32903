"""`/invite/CODE`: MMP §9.2, what someone who was sent a link sees, and the form they fill in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct

from folkmoot.accounts import HubInvitation
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Request as McpRequest
from folkmoot.core.ports import Clock
from folkmoot.gateway.rights import HubRights
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.call import Caller, OperationResult
from folkmoot.operations.dispatch import CALLER, failure
from folkmoot.pipeline import Pipeline, enveloped
from folkmoot.web.limits import MAX_FORM_BYTES, MAX_FORM_FIELDS, MAX_INVITE_MESSAGE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from folkmoot.operations.call import Bind


Invitations: TypeAlias = Callable[[str], Awaitable[HubInvitation]]
"""Answers what whoever has a code may know."""

CODE = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""What a code can look like; nothing else is looked up."""

HEADERS = {"x-robots-tag": "noindex, nofollow"}
FORM_HEADERS = {**HEADERS, "referrer-policy": "same-origin"}
"""Without a referrer a browser calls the form's origin null, which is nobody's."""

FORM_TYPE = "application/x-www-form-urlencoded"


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
        return "The operator of this hub invites you."
    who = f"@{inviter}" if name in (None, "", inviter) else f"{name} (@{inviter})"
    return f"{who} invites you to exchange messages here."


def closed_note(invitation: HubInvitation) -> str:
    """What to say of an invite that opens no account, though it is valid."""
    return "" if invitation.opens else "Registration is closed on this server at the moment."


def words_of(invitation: HubInvitation) -> str:
    """The inviter's message, as far as the page shows it."""
    words = (invitation.message or "").strip()
    return words if len(words) <= MAX_INVITE_MESSAGE else f"{words[:MAX_INVITE_MESSAGE].rstrip()}…"


async def handle_in(request: Request) -> str:
    """The handle that was typed into the form; nothing for what no form of ours sends."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise e.MediaTypeUnsupported(f"Send the form as {FORM_TYPE}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            return ""
    try:
        fields: dict[str, Any] = parse_qs(body.decode(), max_num_fields=MAX_FORM_FIELDS)
    except ValueError:
        return ""
    return str(fields.get("handle", [""])[0]).strip()


Locate: TypeAlias = Callable[["Scope"], str]
"""Where a request came from, as a key to count by."""

TOO_OFTEN = 429
NOT_DONE = 400


class BrowserSignIn(Protocol):
    def comes_from_here(self, scope: Scope) -> bool:
        """Whether a form was sent by a page of the hub, in a browser that takes its cookie."""

    async def sign_in(self, scope: Scope, bind: Bind, caller: Caller) -> dict[str, str]:
        """The header that signs a browser in; empty where that cannot be."""


class JoinForm(Entity):
    """Takes a form the one way through, so that policy, limits and interceptors hold for it too."""

    pipeline: Pipeline
    rights: HubRights
    clock: Clock
    locate: Locate
    browsers: BrowserSignIn

    async def __call__(self, request: Request, base: str, handle: str, code: str) -> Joined:
        """Register with an invite, for someone who has no account yet, and sign them in."""
        arguments = {"handle": handle, "invite_code": code}
        message = McpRequest(
            id=1, method=TOOLS_CALL, params={"name": "msg/register", "arguments": arguments}
        )
        caller = Caller(
            address=self.locate(request.scope),
            base_url=base,
            binds=self.browsers.comes_from_here(request.scope),
        )
        principal, rights = self.rights.of(None)
        envelope = enveloped(self.clock, message, principal, extensions={CALLER: caller})
        try:
            result = await self.pipeline.run(envelope, principal, rights)
        except e.FolkmootError as error:
            return joined(failure(error))
        cookie: dict[str, str] = {}
        if result.bind is not None:
            cookie = await self.browsers.sign_in(request.scope, result.bind, caller)
        return joined(result, cookie)


def joined(result: OperationResult, cookie: dict[str, str] | None = None) -> Joined:
    """What the page says of a registration."""
    told = msgspec.to_builtins(result.payload)
    if result.is_error:
        status = TOO_OFTEN if "retry_after" in told else NOT_DONE
        return Joined(error=told["error"], status=status)
    secrets = told["token"], told["recovery_code"]
    return Joined(told["handle"], *secrets, cookie=cookie or {})
