"""Passkeys: a browser signs in with one, and a person adds, names and removes their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from folkmoot.accounts.limits import MAX_LABEL, MAX_PASSKEY_ANSWER, MAX_PASSKEY_TICKET
from folkmoot.core import errors as e
from folkmoot.operations.call import Bind
from folkmoot.operations.declare import FOR_PAGES, IN_BROWSERS, Topic, delete, get, patch, post
from folkmoot.operations.presence import call_to_sign
from folkmoot.operations.rate_limits import GUESSES, OWN_GUESSES
from folkmoot.operations.row import CONFIRMED, AuditSpec, NoContent, describe, view_of
from folkmoot.operations.sessions import SignedInView, check_page

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

PATH: Final = "/v1/me/passkeys"
SIGN_IN: Final = "/v1/session/passkey"
PasskeyId = Annotated[str, describe("The id of the passkey.", schema={"maxLength": 64})]
Ticket = Annotated[str, describe("The ticket.", min_length=1, max_length=MAX_PASSKEY_TICKET)]
Credential = Annotated[
    str,
    describe(
        "What `PublicKeyCredential.toJSON()` gives, as JSON text.",
        min_length=1,
        max_length=MAX_PASSKEY_ANSWER,
    ),
]
own = Topic(scope="account", tool=IN_BROWSERS, commands=FOR_PAGES)
signing_in = own.with_(scope="", who="anyone")


class PasskeyView(Struct, frozen=True, kw_only=True):
    """A passkey as its owner sees it."""

    id: Annotated[str, "What it is renamed and removed by."]
    name: Annotated[str, "What its owner calls it."]
    rp_id: Annotated[str, "The name of the hub that it works at."]
    created_at: Annotated[int, "When it was added, in seconds since 1970."]
    used_at: Annotated[int | None, "When it was used last; null for not yet."]


class PasskeyList(Struct, frozen=True):
    """The passkeys of an account."""

    passkeys: Annotated[list[PasskeyView], "The oldest first."]


@own.reads(
    "folkmoot/passkeys",
    get(PATH, "listPasskeys", "List your passkeys", answer="The passkeys, the oldest first."),
    scope="account.read",
)
async def passkeys(call: Call) -> PasskeyList:
    """The passkeys that open your account."""
    found = await call.services.accounts.passkeys.list(call.account)
    return PasskeyList([view_of(PasskeyView, each) for each in found])


class PasskeyChallenge(Struct, frozen=True, kw_only=True):
    """What a browser is to have signed."""

    ticket: Annotated[str, "To be given back with the answer. It works once."]
    options: Annotated[
        dict[str, Any],
        "For `PublicKeyCredential.parseCreationOptionsFromJSON`, or `parseRequest…`.",
    ]


@own.changes(
    "folkmoot/begin_passkey",
    post(
        f"{PATH}/challenge",
        "beginPasskey",
        "Begin to add a passkey",
        answer="What the browser needs.",
    ),
    errors=(e.PasskeyUnusable, e.AccessDenied, e.ConfirmationInvalid, e.QuotaExceeded),
)
async def begin_adding(call: Call) -> PasskeyChallenge:
    """What a browser makes a passkey from. It is for the hub's own page, in the first ten minutes
    after signing in.
    """
    made = await call.services.accounts.passkeys.begin_adding(
        call.account, call.caller.credential_id, call.caller.base_url
    )
    return view_of(PasskeyChallenge, made)


@own.adds(
    "folkmoot/add_passkey",
    post(
        PATH,
        "addPasskey",
        "Add a passkey",
        status=201,
        answer="The passkey.",
        location=PATH + "/{id}",
        example={"name": "My phone", "ticket": "…", "credential": "{…}"},
    ),
    secret=("ticket", "credential"),
    limits=OWN_GUESSES,
    errors=(
        e.PasskeyInvalid,
        e.PasskeyUnusable,
        e.AccessDenied,
        e.ConfirmationInvalid,
        e.QuotaExceeded,
    ),
    audit=AuditSpec("passkey.added", by_service=True),
)
async def add(
    call: Call,
    ticket: Ticket,
    credential: Credential,
    *,
    name: Annotated[
        str,
        describe(
            "What to call it. Without a name, it is called as the browser.", max_length=MAX_LABEL
        ),
    ] = "",
) -> PasskeyView:
    """Adds the passkey that a browser made. It opens your account with all that you may do."""
    caller = call.caller
    made = await call.services.accounts.passkeys.add(
        call.account, caller.credential_id, caller.base_url, name, ticket, credential
    )
    return view_of(PasskeyView, made)


@own.changes(
    "folkmoot/rename_passkey",
    patch(
        PATH + "/{passkey}",
        "renamePasskey",
        "Rename a passkey",
        answer="The passkey.",
        example={"name": "My old phone"},
    ),
    errors=(e.PasskeyNotFound,),
)
async def rename(
    call: Call,
    passkey: PasskeyId,
    name: Annotated[str, describe("What to call it.", min_length=1, max_length=MAX_LABEL)],
) -> PasskeyView:
    """Gives one of your passkeys another name."""
    found = await call.services.accounts.passkeys.rename(call.account, passkey, name)
    return view_of(PasskeyView, found)


@own.destroys(
    "folkmoot/remove_passkey",
    delete(
        PATH + "/{passkey}",
        "removePasskey",
        "Remove a passkey",
        headers=CONFIRMED,
        status=204,
        answer="It is removed.",
    ),
    secret=("token",),
    limits=OWN_GUESSES,
    errors=(e.PasskeyNotFound, e.ConfirmationInvalid),
    audit=AuditSpec("passkey.removed", "passkey", by_service=True),
)
async def remove(
    call: Call,
    passkey: PasskeyId,
    *,
    token: Annotated[
        str,
        describe(
            "For the last passkey: a token of your account, or its recovery code.", max_length=200
        ),
    ] = "",
) -> NoContent:
    """It opens your account no longer; browsers that are signed in stay so. The last one is removed
    only for a token or the recovery code.
    """
    await call.services.accounts.passkeys.remove(call.account, passkey, token)
    return NoContent()


@own.changes(
    "folkmoot/begin_presence",
    post(
        f"{PATH}/presence",
        "beginPresence",
        "Begin to show that you are there",
        answer="What the browser needs.",
        example={"operation": "folkmoot/create_token", "arguments": {"label": "laptop"}},
    ),
    errors=(e.PasskeyUnusable, e.PasskeyNotFound),
)
async def begin_presence(
    call: Call,
    operation: Annotated[str, describe("The name of the operation.", min_length=1, max_length=64)],
    *,
    arguments: Annotated[dict[str, Any], "Its arguments."] = {},  # noqa: B006 - it is copied
) -> PasskeyChallenge:
    """What your passkey signs to show that you are there, for one call of an operation that asks
    for it.
    """
    made = await call.services.accounts.passkeys.begin_presence(
        call.account, call.caller.base_url, call_to_sign(operation, arguments)
    )
    return view_of(PasskeyChallenge, made)


@signing_in.changes(
    "folkmoot/begin_sign_in",
    post(
        f"{SIGN_IN}/challenge",
        "beginSignIn",
        "Begin to sign in with a passkey",
        answer="What the browser needs.",
    ),
    errors=(e.PasskeyUnusable, e.OriginNotAllowed),
)
async def begin_sign_in(call: Call) -> PasskeyChallenge:
    """What a browser signs in with. It is the same for everyone."""
    check_page(call)
    made = call.services.accounts.passkeys.begin_sign_in(call.caller.base_url)
    return view_of(PasskeyChallenge, made)


@signing_in.adds(
    "folkmoot/sign_in_with_passkey",
    post(
        SIGN_IN,
        "signInWithPasskey",
        "Sign a browser in with a passkey",
        answer="The account; the cookie is in the head.",
        example={"ticket": "…", "credential": "{…}"},
    ),
    secret=("ticket", "credential"),
    limits=(GUESSES,),
    errors=(e.PasskeyInvalid, e.PasskeyUnusable, e.OriginNotAllowed),
)
async def sign_in(call: Call, ticket: Ticket, credential: Credential) -> SignedInView:
    """The answer sets the cookie of a browser session, which can do all that the account may."""
    check_page(call)
    account = await call.services.accounts.passkeys.sign_in(
        call.caller.base_url, ticket, credential
    )
    call.bind = Bind(account.id, "", otherwise=None)
    return view_of(SignedInView, account)
