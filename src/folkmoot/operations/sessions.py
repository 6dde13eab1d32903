"""Browser sessions: signing in and out on the hub's own pages.

An account that is registered or recovered on a page is signed in there too. What sets the cookie is
the transport's: a handler says which account the browser becomes, as those of MCP sessions do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Struct

from folkmoot.accounts.model import Policy
from folkmoot.core import errors as e
from folkmoot.core.scopes import OPERATING
from folkmoot.operations.call import Bind
from folkmoot.operations.declare import FOR_PAGES, IN_BROWSERS, ForOthers, Topic, delete, get, post
from folkmoot.operations.rate_limits import GUESSES
from folkmoot.operations.row import Absent, AuditSpec, NoContent, describe

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

PATH: Final = "/v1/session"
SECRET: Final = Absent("Whoever calls a tool reads its answer: the code is for its owner alone.")
OF_GUESTS: Final = ("rooms", "rooms.manage", "decide")
"""The scopes of what guests may do in their room, as far as the room's own rights let them."""
page = Topic(
    scope="",
    who="anyone",
    tool=IN_BROWSERS,
    commands=FOR_PAGES,
)
signing_in = page.with_(limits=(GUESSES,))


class BrowserSession(Struct, frozen=True, kw_only=True):
    """Who is signed in in a browser; nobody where `handle` is null."""

    handle: Annotated[str | None, "The account that is signed in; null for none."]
    display_name: Annotated[str | None, "Its name."]
    expires_at: Annotated[
        int | None, "When the session ends unless it is used, in seconds since 1970."
    ]
    scope: Annotated[
        str | None, "What the session may do: `*`, or scopes such as `mail.read operate`."
    ]
    guest: Annotated[str | None, "The name of a guest, who has no account; null for none."]
    room: Annotated[str | None, "The one room that the guest is in."]
    registration: Annotated[
        Policy, "Who may register: everyone, those who were invited, or nobody."
    ]
    company: Annotated[
        str | None, "What a company's people sign in with at `/sign-in/oidc`; null for none."
    ]


@page.reads(
    "folkmoot/session",
    get(PATH, "getSession", "Ask who is signed in", answer="Who is signed in."),
)
async def session(call: Call) -> BrowserSession:
    """Who is signed in in the browser that asks. Everyone is answered."""
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


class SignedInView(Struct, frozen=True, kw_only=True):
    """A browser that is signed in."""

    handle: Annotated[str, "The account."]
    display_name: Annotated[str, "Its name."]


@signing_in.adds(
    "folkmoot/sign_in",
    post(
        PATH,
        "signIn",
        "Sign a browser in",
        answer="The account; the cookie is in the head.",
        example={"token": "sk_…"},
    ),
    secret=("token",),
    errors=(e.TokenInvalid, e.OriginNotAllowed),
)
async def sign_in(
    call: Call,
    token: Annotated[str, describe("The account's token.", min_length=1, max_length=200)],
) -> SignedInView:
    """The answer sets the cookie of a browser session. It ends with the token, can do no more than
    the token, and is listed and revoked among the tokens.
    """
    check_page(call)
    identity = await call.services.accounts.identify(token)
    account = identity.account
    if account is None:
        raise e.TokenInvalid
    call.bind = Bind(account.id, identity.credential.id, otherwise=None)
    return SignedInView(handle=account.handle, display_name=account.display_name)


@signing_in.adds(
    "folkmoot/use_code",
    post(
        f"{PATH}/code",
        "signInWithCode",
        "Sign a browser in with a one-time code",
        answer="The account; the cookie is in the head.",
        example={"code": "oc_…"},
    ),
    secret=("code",),
    errors=(e.OneTimeCodeInvalid, e.OriginNotAllowed),
)
async def use_code(
    call: Call,
    code: Annotated[str, describe("The code of the link.", min_length=1, max_length=200)],
) -> SignedInView:
    """The answer sets the cookie of a browser session. A code works once, and for two minutes."""
    check_page(call)
    account, made_with, scope = await call.services.accounts.browsers.use_code(code)
    call.bind = Bind(account.id, made_with, otherwise=None, scope=scope)
    return SignedInView(handle=account.handle, display_name=account.display_name)


@page.changes(
    "folkmoot/sign_out",
    delete(
        PATH, "signOut", "Sign the browser out", status=204, answer="The browser is signed out."
    ),
    errors=(e.OriginNotAllowed,),
)
async def sign_out(call: Call) -> NoContent:
    """The session ends at once, and with it everything that the browser has open."""
    # A browser that has no session is told to forget its cookie as well.
    here = call.caller.session
    if here is not None and here.account is not None:
        await call.services.accounts.browsers.close(here.account, here.credential.id)
    call.signs_out = True
    return NoContent()


class CreatedCode(Struct, frozen=True, kw_only=True):
    """A code that opens one session."""

    code: Annotated[str, "The code. It is not shown again."]
    expires_at: Annotated[int, "When it can no longer be used, in seconds since 1970."]
    url: Annotated[str, "The page that uses it. Open it in the browser to be signed in."]


@Topic().adds(
    "folkmoot/create_code",
    post(
        "/v1/me/codes",
        "createCode",
        "Create a link that signs a browser in",
        status=201,
        answer="The code, and the link.",
    ),
    scope="account",
    errors=(e.QuotaExceeded,),
    audit=AuditSpec("browser.code_created", by_service=True),
    tool=SECRET,
    commands=("open",),
    for_others=ForOthers(
        name="folkmoot/create_code_for",
        route=post(
            "/v1/people/{handle}/codes",
            "createCodeFor",
            "Create a link that signs a browser in for someone",
            status=201,
            answer="The code, and the link.",
        ),
        says="For the operator, on the hub's own machine: a link that signs a browser in to any "
        "account, with `operate` as one that may run the hub. It works once, and for two minutes.",
        whose=Annotated[str, "Whose account it opens."],
        only=("operate",),
        more={
            "local": True,
            "tool": SECRET,
            "audit": AuditSpec("browser.code_created", "handle", by_service=True),
        },
    ),
)
async def create_code(
    call: Call,
    *,
    operate: Annotated[bool, "Whether the session may run the hub too."] = False,
) -> CreatedCode:
    """A link that signs a browser in to your account. It works once, and for two minutes; the
    session can do no more than the token that the request was made with.
    """
    whose, hub, by = call.subject, call.caller.base_url, call.caller.credential_id
    if call.for_others:
        if whose.suspended_at is not None:
            raise e.CommandInvalid(f"@{whose.handle} is suspended. Restore the account first.")
        hub, by = call.services.url, ""
    scope = OPERATING if operate else ""
    made = await call.services.accounts.browsers.create_code(whose, by, scope)
    url = sign_in_url(hub, made.code, "/" if operate else "")
    return CreatedCode(code=made.code, expires_at=made.expires_at, url=url)


def sign_in_url(hub: str, code: str, then: str = "") -> str:
    """The page that uses a code, which no server sees on the way: it is in the fragment.

    `then` is the page to go to afterwards. Passkeys and other things that need a name do not work
    at the address 127.0.0.1.
    """
    base = hub.replace("//127.0.0.1", "//localhost", 1).rstrip("/")
    return f"{base}/sign-in{f'?next={then}' if then else ''}#{code}"


def check_page(call: Call) -> None:
    """Refuse whoever is not a page of the hub, in a browser that takes its cookie."""
    if not call.caller.binds:
        raise e.OriginNotAllowed("Only the hub's own page can sign a browser in.")
