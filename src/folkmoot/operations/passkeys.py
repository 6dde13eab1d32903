"""Passkeys: a browser signs in with one, and a person adds, names and removes their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Struct, field

from folkmoot.accounts.limits import MAX_LABEL, MAX_PASSKEY_ANSWER, MAX_PASSKEY_TICKET
from folkmoot.accounts.model import Decision
from folkmoot.core import errors as e
from folkmoot.operations.call import Bind
from folkmoot.operations.rate_limits import GUESSES, OWN_GUESSES
from folkmoot.operations.row import (
    CONFIRMED,
    Arguments,
    AuditSpec,
    NoContent,
    Nothing,
    Route,
    describe,
    on_pages,
    view_of,
)
from folkmoot.operations.sessions import SignedInView, check_page

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

PATH: Final = "/v1/me/passkeys"
SIGN_IN: Final = "/v1/session/passkey"


class PasskeyChallenge(Struct, frozen=True, kw_only=True):
    """What a browser is to have signed."""

    ticket: Annotated[str, describe("To be given back with the answer. It works once.")]
    options: Annotated[
        dict[str, Any],
        describe("For `PublicKeyCredential.parseCreationOptionsFromJSON`, or `parseRequest…`."),
    ]


class PasskeyAnswer(Arguments, frozen=True, kw_only=True):
    """What the browser answers."""

    ticket: Annotated[str, describe("The ticket.", min_length=1, max_length=MAX_PASSKEY_TICKET)]
    credential: Annotated[
        str,
        describe(
            "What `PublicKeyCredential.toJSON()` gives, as JSON text.",
            min_length=1,
            max_length=MAX_PASSKEY_ANSWER,
        ),
    ]


class PasskeyView(Struct, frozen=True, kw_only=True):
    """A passkey as its owner sees it."""

    id: Annotated[str, describe("What it is renamed and removed by.")]
    name: Annotated[str, describe("What its owner calls it.")]
    rp_id: Annotated[str, describe("The name of the hub that it works at.")]
    created_at: Annotated[int, describe("When it was added, in seconds since 1970.")]
    used_at: Annotated[int | None, describe("When it was used last; null for not yet.")]


class PasskeyList(Struct, frozen=True):
    """The passkeys of an account."""

    passkeys: Annotated[list[PasskeyView], describe("The oldest first.")]


async def passkeys(call: Call[Nothing]) -> PasskeyList:
    """The caller's passkeys."""
    found = await call.services.accounts.passkeys.list(call.account)
    return PasskeyList([view_of(PasskeyView, each) for each in found])


async def begin_adding(call: Call[Nothing]) -> PasskeyChallenge:
    """What a browser makes a passkey from."""
    made = await call.services.accounts.passkeys.begin_adding(
        call.account, call.caller.credential_id, call.caller.base_url
    )
    return PasskeyChallenge(ticket=made.ticket, options=made.options)


class NewPasskey(PasskeyAnswer, frozen=True, kw_only=True):
    """A passkey to be kept."""

    name: Annotated[
        str,
        describe(
            "What to call it. Without a name, it is called as the browser.", max_length=MAX_LABEL
        ),
    ] = ""


async def add(call: Call[NewPasskey]) -> PasskeyView:
    """One more passkey."""
    given, caller = call.arguments, call.caller
    made = await call.services.accounts.passkeys.add(
        call.account,
        caller.credential_id,
        caller.base_url,
        given.name,
        given.ticket,
        given.credential,
    )
    return view_of(PasskeyView, made)


class RenamePasskey(Arguments, frozen=True, kw_only=True):
    """Another name for a passkey."""

    passkey: Annotated[str, describe("The id of the passkey.", schema={"maxLength": 64})]
    name: Annotated[str, describe("What to call it.", min_length=1, max_length=MAX_LABEL)]


async def rename(call: Call[RenamePasskey]) -> PasskeyView:
    """Call a passkey something else."""
    given = call.arguments
    found = await call.services.accounts.passkeys.rename(call.account, given.passkey, given.name)
    return view_of(PasskeyView, found)


class RemovePasskey(Arguments, frozen=True, kw_only=True):
    """A passkey to be removed."""

    passkey: Annotated[str, describe("The id of the passkey.", schema={"maxLength": 64})]
    token: Annotated[
        str,
        describe(
            "For the last passkey: a token of your account, or its recovery code.", max_length=200
        ),
    ] = ""


async def remove(call: Call[RemovePasskey]) -> NoContent:
    """One passkey less."""
    given = call.arguments
    await call.services.accounts.passkeys.remove(call.account, given.passkey, given.token)
    return NoContent()


async def begin_sign_in(call: Call[Nothing]) -> PasskeyChallenge:
    """What a browser signs in with."""
    check_page(call)
    made = call.services.accounts.passkeys.begin_sign_in(call.caller.base_url)
    return PasskeyChallenge(ticket=made.ticket, options=made.options)


async def sign_in(call: Call[PasskeyAnswer]) -> SignedInView:
    """Sign the browser in with a passkey."""
    check_page(call)
    given = call.arguments
    account = await call.services.accounts.passkeys.sign_in(
        call.caller.base_url, given.ticket, given.credential
    )
    call.bind = Bind(account.id, "", otherwise=None)
    return SignedInView(handle=account.handle, display_name=account.display_name)


class Presence(Arguments, frozen=True, kw_only=True):
    """What a person is to sign with their passkey: a call of an operation, as they will make it."""

    operation: Annotated[str, describe("The name of the operation.", min_length=1, max_length=64)]
    arguments: Annotated[dict[str, Any], describe("Its arguments.")] = field(default_factory=dict)


async def begin_presence(call: Call[Presence]) -> PasskeyChallenge:
    """What a browser has signed for one call of an operation."""
    given = call.arguments
    made = await call.services.accounts.passkeys.begin_presence(
        call.account, call.caller.base_url, Decision(given.operation, given.arguments)
    )
    return PasskeyChallenge(ticket=made.ticket, options=made.options)


SignedTicket = Annotated[
    str,
    describe(
        "The ticket of `folkmoot/begin_presence` for this call.", max_length=MAX_PASSKEY_TICKET
    ),
]
SignedAnswer = Annotated[
    str, describe("What the browser's passkey signed for it.", max_length=MAX_PASSKEY_ANSWER)
]


async def is_present(call: Call[Any], operation: str, *unsigned: str) -> bool:
    """Whether the caller's passkey signed this very call; one that it did not sign is refused.

    Its arguments are all but `ticket` and `passkey`, which sign it, and those that are `unsigned`.
    """
    given = call.arguments
    if not given.ticket:
        return False
    signed = msgspec.to_builtins(given)
    for name in ("ticket", "passkey", *unsigned):
        signed.pop(name, None)
    await call.services.accounts.passkeys.check_presence(
        call.account, call.caller.base_url, Decision(operation, signed), given.ticket, given.passkey
    )
    return True


PASSKEYS: Final = (
    on_pages(
        name="folkmoot/passkeys",
        description="The passkeys that open your account.",
        handler=passkeys,
        scope="account.read",
        routes=(
            Route(
                "GET",
                PATH,
                id="listPasskeys",
                summary="List your passkeys",
                answer="The passkeys, the oldest first.",
            ),
        ),
    ),
    on_pages(
        name="folkmoot/begin_passkey",
        description="What a browser makes a passkey from. It is for the hub's own page, in the "
        "first ten minutes after signing in.",
        handler=begin_adding,
        scope="account",
        errors=(e.PasskeyUnusable, e.AccessDenied, e.ConfirmationInvalid, e.QuotaExceeded),
        routes=(
            Route(
                "POST",
                f"{PATH}/challenge",
                id="beginPasskey",
                summary="Begin to add a passkey",
                answer="What the browser needs.",
            ),
        ),
    ),
    on_pages(
        name="folkmoot/add_passkey",
        description="Adds the passkey that a browser made. It opens your account with all that "
        "you may do.",
        handler=add,
        secret=("ticket", "credential"),
        scope="account",
        effect="adds",
        limits=OWN_GUESSES,
        errors=(
            e.PasskeyInvalid,
            e.PasskeyUnusable,
            e.AccessDenied,
            e.ConfirmationInvalid,
            e.QuotaExceeded,
        ),
        audit=AuditSpec("passkey.added", by_service=True),
        routes=(
            Route(
                "POST",
                PATH,
                id="addPasskey",
                summary="Add a passkey",
                status=201,
                answer="The passkey.",
                location=PATH + "/{id}",
                example={"name": "My phone", "ticket": "…", "credential": "{…}"},
            ),
        ),
    ),
    on_pages(
        name="folkmoot/rename_passkey",
        description="Gives one of your passkeys another name.",
        handler=rename,
        scope="account",
        effect="changes",
        errors=(e.PasskeyNotFound,),
        routes=(
            Route(
                "PATCH",
                PATH + "/{passkey}",
                id="renamePasskey",
                summary="Rename a passkey",
                answer="The passkey.",
                example={"name": "My old phone"},
            ),
        ),
    ),
    on_pages(
        name="folkmoot/remove_passkey",
        description="It opens your account no longer; browsers that are signed in stay so. The "
        "last one is removed only for a token or the recovery code.",
        handler=remove,
        secret=("token",),
        scope="account",
        limits=OWN_GUESSES,
        errors=(e.PasskeyNotFound, e.ConfirmationInvalid),
        audit=AuditSpec("passkey.removed", "passkey", by_service=True),
        routes=(
            Route(
                "DELETE",
                PATH + "/{passkey}",
                id="removePasskey",
                summary="Remove a passkey",
                headers=CONFIRMED,
                status=204,
                answer="It is removed.",
            ),
        ),
    ),
    on_pages(
        name="folkmoot/begin_presence",
        description="What your passkey signs to show that you are there, for one call of an "
        "operation that asks for it.",
        handler=begin_presence,
        scope="account",
        errors=(e.PasskeyUnusable, e.PasskeyNotFound),
        routes=(
            Route(
                "POST",
                f"{PATH}/presence",
                id="beginPresence",
                summary="Begin to show that you are there",
                answer="What the browser needs.",
                example={"operation": "folkmoot/create_token", "arguments": {"label": "laptop"}},
            ),
        ),
    ),
    on_pages(
        name="folkmoot/begin_sign_in",
        description="What a browser signs in with. It is the same for everyone.",
        handler=begin_sign_in,
        scope="",
        who="anyone",
        errors=(e.PasskeyUnusable, e.OriginNotAllowed),
        routes=(
            Route(
                "POST",
                f"{SIGN_IN}/challenge",
                id="beginSignIn",
                summary="Begin to sign in with a passkey",
                answer="What the browser needs.",
            ),
        ),
    ),
    on_pages(
        name="folkmoot/sign_in_with_passkey",
        description="The answer sets the cookie of a browser session, which can do all that the "
        "account may.",
        handler=sign_in,
        secret=("ticket", "credential"),
        scope="",
        who="anyone",
        effect="adds",
        limits=(GUESSES,),
        errors=(e.PasskeyInvalid, e.PasskeyUnusable, e.OriginNotAllowed),
        routes=(
            Route(
                "POST",
                SIGN_IN,
                id="signInWithPasskey",
                summary="Sign a browser in with a passkey",
                answer="The account; the cookie is in the head.",
                example={"ticket": "…", "credential": "{…}"},
            ),
        ),
    ),
)
