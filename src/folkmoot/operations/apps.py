"""Consent: a person lets an app use their account.

The page at `/authorize` has what the app asks for in its address, and gives it back whole with each
question. So nothing is kept between the two, and what is decided on is what was read just then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from folkmoot.accounts.limits import MAX_USER_CODE
from folkmoot.accounts.model import AppClient
from folkmoot.core import errors as e
from folkmoot.core.oauth import authorize
from folkmoot.core.oauth.redirects import LOOPBACK, host_of
from folkmoot.core.oauth.scopes import chosen, offers
from folkmoot.core.scopes import scope as scope_of
from folkmoot.operations.declare import FOR_PAGES, IN_BROWSERS, Topic, get, post
from folkmoot.operations.rate_limits import FETCHES, OWN_GUESSES
from folkmoot.operations.row import AuditSpec, describe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from folkmoot.accounts import Credential
    from folkmoot.core.oauth.authorize import AuthorizationRequest
    from folkmoot.core.oauth.clients import Client
    from folkmoot.operations.call import Call

PATH: Final = "/v1/authorization"
DEVICE_PATH: Final = "/v1/device-authorization"
MAX_QUERY: Final = 12_000
MAX_PAIRS: Final = 50
ONLY_PAGE: Final = "Only a person can connect an app, in a browser where they are signed in."
Query = Annotated[
    str,
    describe("The query of the address that the app opened.", min_length=1, max_length=MAX_QUERY),
]
UserCode = Annotated[
    str, describe("The code that the device shows.", min_length=1, max_length=MAX_USER_CODE)
]
Chosen = Annotated[list[str], describe("Which of the scopes it gets.", max_length=50)]
consent = Topic(scope="account", tool=IN_BROWSERS, commands=FOR_PAGES)


class ScopeOffered(Struct, frozen=True, kw_only=True):
    """One thing that an app can be allowed."""

    scope: Annotated[str, "The scope."]
    description: Annotated[str, "What it allows."]
    chosen: Annotated[bool, "Whether it is given unless the person says otherwise."]


class Authorization(Struct, frozen=True, kw_only=True):
    """What a person is asked when an app wants to use their account."""

    name: Annotated[str, "What the app calls itself."]
    host: Annotated[str, "The host that vouches for that name; empty for none."]
    sent_to: Annotated[str, "Where the browser is sent afterwards."]
    handle: Annotated[str, "The account that is signed in."]
    scopes: Annotated[list[ScopeOffered], "What the app asks for."]
    redirect: Annotated[
        str | None,
        "Where to send the browser at once, as what the app asks for cannot be; else null.",
    ]


@consent.reads(
    "folkmoot/authorization",
    get(PATH, "getAuthorization", "Ask what an app wants", answer="What it wants."),
    scope="account.read",
    limits=(FETCHES,),
    errors=(e.OAuthError, e.AccessDenied),
)
async def authorization(call: Call, query: Query) -> Authorization:
    """What an app asks for that wants to use your account. It is for the hub's own page, at
    `/authorize`.
    """
    here = await session_of(call)
    client, _, redirect, request = await read(call, query)
    return Authorization(
        name=client.name,
        host=client.host,
        sent_to="" if request is None else host_of(request.redirect_uri),
        handle=call.account.handle,
        scopes=[] if request is None else offered(here, request.scope),
        redirect=redirect,
    )


class Decided(Struct, frozen=True, kw_only=True):
    """The result."""

    redirect: Annotated[str, "Where to send the browser: back to the app."]


@consent.adds(
    "folkmoot/decide_authorization",
    post(
        PATH,
        "decideAuthorization",
        "Let an app use your account",
        answer="Where to send the browser.",
        example={"query": "client_id=…", "allow": True, "scopes": ["mail.read"]},
    ),
    limits=(FETCHES,),
    errors=(e.OAuthError, e.AccessDenied, e.QuotaExceeded),
    audit=AuditSpec("app.decided", by_service=True),
)
async def decide(
    call: Call,
    query: Query,
    *,
    allow: Annotated[bool, "Whether the app can use the account."] = False,
    scopes: Chosen = [],  # noqa: B006 - it is copied
) -> Decided:
    """Lets an app use your account, or not. It is for the hub's own page, at `/authorize`. Apps
    that are connected are listed and revoked among the tokens.
    """
    here = await session_of(call)
    client, issuer, redirect, request = await read(call, query)
    if request is None:
        return Decided(redirect=redirect or "")
    if not allow:
        told = issuer, "access_denied", "The person did not allow it."
        return Decided(redirect=authorize.denied(request.redirect_uri, request.state, *told))
    code = await call.services.accounts.apps.code(
        call.account,
        here,
        AppClient(
            client.id,
            client.name,
            client.host or host_of(request.redirect_uri),
            request.resource,
        ),
        redirect_uri=request.redirect_uri,
        code_challenge=request.code_challenge,
        scope=chosen(request.scope, scopes),
    )
    return Decided(redirect=authorize.granted(request, issuer, code))


@consent.reads(
    "folkmoot/device_authorization",
    get(
        DEVICE_PATH,
        "getDeviceAuthorization",
        "Ask what a program on a device wants",
        answer="What it wants.",
    ),
    secret=("user_code",),
    scope="account.read",
    limits=OWN_GUESSES,
    errors=(e.DeviceCodeInvalid, e.AccessDenied),
)
async def device(call: Call, user_code: UserCode) -> Authorization:
    """What a program asks for that shows you a code on another device. It is for the hub's own
    page, at `/device`.
    """
    here = await session_of(call)
    found = await call.services.accounts.devices.find(user_code)
    return Authorization(
        name=found.client_name,
        host=found.redirect_host,
        sent_to="",
        handle=call.account.handle,
        scopes=offered(here, found.scope.split()),
        redirect=None,
    )


class DeviceDecided(Struct, frozen=True, kw_only=True):
    """The result."""

    allowed: Annotated[bool, "Whether the device may use the account."]


@consent.adds(
    "folkmoot/decide_device_authorization",
    post(
        DEVICE_PATH,
        "decideDeviceAuthorization",
        "Let a program on a device use your account",
        answer="What was decided.",
        example={"user_code": "BCDF-GHJK", "allow": True, "scopes": ["mail.read"]},
    ),
    secret=("user_code",),
    limits=OWN_GUESSES,
    errors=(e.OAuthError, e.DeviceCodeInvalid, e.AccessDenied),
    audit=AuditSpec("app.decided", by_service=True),
)
async def decide_device(
    call: Call,
    user_code: UserCode,
    *,
    allow: Annotated[bool, "Whether the device may use the account."],
    scopes: Chosen = [],  # noqa: B006 - it is copied
) -> DeviceDecided:
    """Lets a program that shows you a code on another device use your account, or not. It is for
    the hub's own page, at `/device`.
    """
    here = await session_of(call)
    devices = call.services.accounts.devices
    found = await devices.find(user_code)
    scope = chosen(found.scope.split(), scopes) if allow else None
    await devices.answer(call.account, here, user_code, scope)
    return DeviceDecided(allowed=allow)


def offered(here: Credential, words: Iterable[str]) -> list[ScopeOffered]:
    """What of the scopes that are asked for a session can give."""
    held = scope_of(here.scope)
    return [
        ScopeOffered(scope=word, description=row.description, chosen=row.app == "default")
        for word, row in offers(words)
        if held.covers(scope_of(word))
    ]


async def session_of(call: Call) -> Credential:
    """The browser session that the request was made with; nothing else can consent."""
    found = await call.services.accounts.authentication.by_id(call.caller.credential_id)
    if found is None or found.credential.kind != "browser":
        raise e.AccessDenied(ONLY_PAGE)
    return found.credential


async def read(
    call: Call, query: str
) -> tuple[Client, str, str | None, AuthorizationRequest | None]:
    """The app, the issuer's name, and what is asked for, or where the browser is sent instead."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PAIRS)
    except ValueError:
        raise e.OAuthError("invalid_request", "The link has too many parameters.") from None
    client = await call.services.clients.find(authorize.client_id_of(pairs))
    issuer = issuer_of(call.caller.base_url, dict(pairs).get("resource", ""))
    try:
        request = authorize.read(pairs, client, issuer=issuer, resource=f"{issuer}/mcp")
    except authorize.Redirected as refused:
        return client, issuer, refused.location, None
    return client, issuer, None, request


def issuer_of(base: str, resource: str) -> str:
    """The hub's name as the app knows it.

    Passkeys need the name `localhost`, so the page is there; the app may have come to 127.0.0.1,
    and compares the name it is told with that.
    """
    here = urlsplit(base)
    try:
        there = urlsplit(resource)
        same = there.scheme == here.scheme and there.port == here.port
    except ValueError:
        return base
    names = {"[::1]" if each == "::1" else each for each in (here.hostname, there.hostname)}
    return f"{there.scheme}://{there.netloc}" if same and names <= LOOPBACK else base
