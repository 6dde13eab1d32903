"""Browser sessions: signing in and out on the hub's own pages.

An account that is registered or recovered on a page is signed in there too. What sets the cookie is
the transport's: a handler says which account the browser becomes, as those of MCP sessions do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from folkmoot.accounts.model import Policy
from folkmoot.core import errors as e
from folkmoot.core.scopes import OPERATE, OPERATING
from folkmoot.operations.call import Bind
from folkmoot.operations.operator.people import find
from folkmoot.operations.rate_limits import GUESSES
from folkmoot.operations.row import (
    Absent,
    Arguments,
    AuditSpec,
    NoContent,
    Nothing,
    Operation,
    Route,
    describe,
    on_pages,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

PATH: Final = "/v1/session"
SECRET: Final = Absent("Whoever calls a tool reads its answer: the code is for its owner alone.")
OF_GUESTS: Final = ("rooms", "rooms.manage", "decide")
"""The scopes of what guests may do in their room, as far as the room's own rights let them."""


class BrowserSession(Struct, frozen=True, kw_only=True):
    """Who is signed in in a browser; nobody where `handle` is null."""

    handle: Annotated[str | None, describe("The account that is signed in; null for none.")]
    display_name: Annotated[str | None, describe("Its name.")]
    expires_at: Annotated[
        int | None, describe("When the session ends unless it is used, in seconds since 1970.")
    ]
    scope: Annotated[
        str | None, describe("What the session may do: `*`, or scopes such as `mail.read operate`.")
    ]
    guest: Annotated[
        str | None, describe("The name of a guest, who has no account; null for none.")
    ]
    room: Annotated[str | None, describe("The one room that the guest is in.")]
    registration: Annotated[
        Policy, describe("Who may register: everyone, those who were invited, or nobody.")
    ]
    company: Annotated[
        str | None,
        describe("What a company's people sign in with at `/sign-in/oidc`; null for none."),
    ]


async def session(call: Call[Nothing]) -> BrowserSession:
    """The account signed in with this browser session."""
    accounts, here = call.services.accounts, call.caller.session
    policy = accounts.policy
    company = None if accounts.oidc is None else accounts.oidc.options.name
    if here is None or here.account is None:
        guest = call.caller.visitor
        rooms = {} if guest is None else await call.services.rooms.rooms_of(guest)
        room = next(iter(rooms.values()), None)
        return BrowserSession(
            handle=None,
            display_name=None,
            expires_at=None,
            scope=None if room is None else " ".join(f"{each}:{room}" for each in OF_GUESTS),
            guest=None if room is None or guest is None else guest.principal.name,
            room=room,
            registration=policy,
            company=company,
        )
    return BrowserSession(
        handle=here.account.handle,
        display_name=here.account.display_name,
        expires_at=here.credential.expires_at,
        scope=here.credential.scope,
        guest=None,
        room=None,
        registration=policy,
        company=company,
    )


class SignIn(Arguments, frozen=True, kw_only=True):
    """A token, for a session."""

    token: Annotated[str, describe("The account's token.", min_length=1, max_length=200)]


class SignedInView(Struct, frozen=True, kw_only=True):
    """A browser that is signed in."""

    handle: Annotated[str, describe("The account.")]
    display_name: Annotated[str, describe("Its name.")]


async def sign_in(call: Call[SignIn]) -> SignedInView:
    """Sign the browser in with a token."""
    check_page(call)
    identity = await call.services.accounts.identify(call.arguments.token)
    account = identity.account
    if account is None:
        raise e.TokenInvalid
    call.bind = Bind(account.id, identity.credential.id, otherwise=None)
    return SignedInView(handle=account.handle, display_name=account.display_name)


class UseCode(Arguments, frozen=True, kw_only=True):
    """A one-time code, for a session."""

    code: Annotated[str, describe("The code of the link.", min_length=1, max_length=200)]


async def use_code(call: Call[UseCode]) -> SignedInView:
    """Sign the browser in with a one-time code, which is used up."""
    check_page(call)
    account, made_with, scope = await call.services.accounts.browsers.use_code(call.arguments.code)
    call.bind = Bind(account.id, made_with, otherwise=None, scope=scope)
    return SignedInView(handle=account.handle, display_name=account.display_name)


async def sign_out(call: Call[Nothing]) -> NoContent:
    """End the session; a browser that has none is told to forget its cookie as well."""
    here = call.caller.session
    if here is not None and here.account is not None:
        await call.services.accounts.browsers.close(here.account, here.credential.id)
    call.signs_out = True
    return NoContent()


class CreatedCode(Struct, frozen=True, kw_only=True):
    """A code that opens one session."""

    code: Annotated[str, describe("The code. It is not shown again.")]
    expires_at: Annotated[int, describe("When it can no longer be used, in seconds since 1970.")]
    url: Annotated[str, describe("The page that uses it. Open it in the browser to be signed in.")]


async def create_code(call: Call[Nothing]) -> CreatedCode:
    """A code for one's own account."""
    made = await call.services.accounts.browsers.create_code(
        call.account, call.caller.credential_id
    )
    url = sign_in_url(call.caller.base_url, made.code)
    return CreatedCode(code=made.code, expires_at=made.expires_at, url=url)


class CodeFor(Arguments, frozen=True, kw_only=True):
    """The handle whose browser is to be signed in."""

    handle: Annotated[str, describe("Whose account it opens.")]
    operate: Annotated[bool, describe("Whether the session may run the hub too.")] = False


async def create_code_for(call: Call[CodeFor]) -> CreatedCode:
    """A code for any account, as the operator."""
    services = call.services
    account = await find(services, call.arguments.handle)
    if account.suspended_at is not None:
        raise e.CommandInvalid(f"@{account.handle} is suspended. Restore the account first.")
    operate = call.arguments.operate
    scope = OPERATING if operate else ""
    made = await services.accounts.browsers.create_code(account, scope=scope)
    url = sign_in_url(services.url, made.code, "/" if operate else "")
    return CreatedCode(code=made.code, expires_at=made.expires_at, url=url)


def sign_in_url(hub: str, code: str, then: str = "") -> str:
    """The page that uses a code, which no server sees on the way: it is in the fragment.

    `then` is the page to go to afterwards. Passkeys and other things that need a name do not work
    at the address 127.0.0.1.
    """
    base = hub.replace("//127.0.0.1", "//localhost", 1).rstrip("/")
    return f"{base}/sign-in{f'?next={then}' if then else ''}#{code}"


def check_page(call: Call[Any]) -> None:
    """Refuse whoever is not a page of the hub, in a browser that takes its cookie."""
    if not call.caller.binds:
        raise e.OriginNotAllowed("Only the hub's own page can sign a browser in.")


SESSIONS: Final = (
    on_pages(
        name="folkmoot/session",
        description="Who is signed in in the browser that asks. Everyone is answered.",
        handler=session,
        scope="",
        who="anyone",
        routes=(
            Route(
                "GET",
                PATH,
                id="getSession",
                summary="Ask who is signed in",
                answer="Who is signed in.",
            ),
        ),
    ),
    on_pages(
        name="folkmoot/sign_in",
        description="The answer sets the cookie of a browser session. It ends with the token, can "
        "do no more than the token, and is listed and revoked among the tokens.",
        handler=sign_in,
        secret=("token",),
        scope="",
        who="anyone",
        effect="adds",
        limits=(GUESSES,),
        errors=(e.TokenInvalid, e.OriginNotAllowed),
        routes=(
            Route(
                "POST",
                PATH,
                id="signIn",
                summary="Sign a browser in",
                answer="The account; the cookie is in the head.",
                example={"token": "sk_…"},
            ),
        ),
    ),
    on_pages(
        name="folkmoot/use_code",
        description="The answer sets the cookie of a browser session. A code works once, and for "
        "two minutes.",
        handler=use_code,
        secret=("code",),
        scope="",
        who="anyone",
        effect="adds",
        limits=(GUESSES,),
        errors=(e.OneTimeCodeInvalid, e.OriginNotAllowed),
        routes=(
            Route(
                "POST",
                f"{PATH}/code",
                id="signInWithCode",
                summary="Sign a browser in with a one-time code",
                answer="The account; the cookie is in the head.",
                example={"code": "oc_…"},
            ),
        ),
    ),
    on_pages(
        name="folkmoot/sign_out",
        description="The session ends at once, and with it everything that the browser has open.",
        handler=sign_out,
        scope="",
        who="anyone",
        effect="changes",
        errors=(e.OriginNotAllowed,),
        routes=(
            Route(
                "DELETE",
                PATH,
                id="signOut",
                summary="Sign the browser out",
                status=204,
                answer="The browser is signed out.",
            ),
        ),
    ),
    Operation(
        name="folkmoot/create_code",
        description="A link that signs a browser in to your account. It works once, and for two "
        "minutes; the session can do no more than the token that the request was made with.",
        handler=create_code,
        scope="account",
        errors=(e.QuotaExceeded,),
        audit=AuditSpec("browser.code_created", by_service=True),
        tool=SECRET,
        routes=(
            Route(
                "POST",
                "/v1/me/codes",
                id="createCode",
                summary="Create a link that signs a browser in",
                status=201,
                answer="The code, and the link.",
            ),
        ),
        commands=("open",),
    ),
    Operation(
        name="folkmoot/create_code_for",
        description="For the operator, on the hub's own machine: a link that signs a browser in to "
        "any account, with `operate` as one that may run the hub. It works once, and for two "
        "minutes.",
        handler=create_code_for,
        scope=OPERATE,
        who="operator",
        errors=(e.CommandInvalid, e.UserNotFound, e.QuotaExceeded),
        needs=("accounts",),
        local=True,
        audit=AuditSpec("browser.code_created", "handle", by_service=True),
        tool=SECRET,
        routes=(
            Route(
                "POST",
                "/v1/people/{handle}/codes",
                id="createCodeFor",
                summary="Create a link that signs a browser in for someone",
                status=201,
                answer="The code, and the link.",
            ),
        ),
        commands=("open",),
    ),
)
