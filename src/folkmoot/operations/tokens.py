"""One's own tokens. They are made and revoked with REST or the command line: a model that made one
would have read its secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from folkmoot.accounts.limits import MAX_LABEL, MAX_TOKEN_SECONDS
from folkmoot.core import errors as e
from folkmoot.core.scopes import ALL, OPERATE
from folkmoot.operations.limits import MAX_SCOPE
from folkmoot.operations.operator.people import find, recording
from folkmoot.operations.passkeys import SignedAnswer, SignedTicket, is_present
from folkmoot.operations.rate_limits import OWN_GUESSES
from folkmoot.operations.row import (
    CONFIRMED,
    Absent,
    Arguments,
    AuditSpec,
    NoContent,
    Nothing,
    Operation,
    Route,
    describe,
    operated,
    view_of,
)
from folkmoot.operations.scopes import check_scope

if TYPE_CHECKING:
    from folkmoot.accounts import Credential as Stored
    from folkmoot.operations.call import Call

PATH: Final = "/v1/me/credentials"
SCOPE_SAYS: Final = "What it may do: `*`, or scopes such as `mail.read rooms:square`"
SECRET: Final = Absent("Whoever calls a tool reads its answer: a token is for its owner alone.")


class CredentialView(Struct, frozen=True, kw_only=True):
    """A token as its owner sees it."""

    id: Annotated[str, describe("What it is revoked by.")]
    kind: Annotated[
        Literal["token", "browser", "app", "device"],
        describe(
            "`token`, `browser` for a browser that is signed in, or `app` for a connected app."
        ),
    ]
    label: Annotated[str, describe("What it is for.")]
    scope: Annotated[str, describe(f"{SCOPE_SAYS}.")]
    created_at: Annotated[int, describe("When it was created, in seconds since 1970.")]
    used_at: Annotated[int | None, describe("When it was last used; at most minutes behind.")]
    expires_at: Annotated[int | None, describe("When it expires; null is never.")]
    current: Annotated[bool, describe("Whether this request was made with it.")]


class CreatedCredential(CredentialView, frozen=True, kw_only=True):
    """A token that was made."""

    token: Annotated[str, describe("The token itself. It is not shown again.")]


class Credentials(Struct, frozen=True):
    """The tokens of an account."""

    credentials: Annotated[list[CredentialView], describe("The oldest first.")]


class Tokens(Struct, frozen=True):
    """The tokens of an account, as models are told them."""

    tokens: list[CredentialView]


async def tokens(call: Call[Nothing]) -> Tokens:
    """The caller's tokens, without their secrets."""
    return Tokens((await credentials(call)).credentials)


async def credentials(call: Call[Nothing]) -> Credentials:
    """The caller's tokens, for programs."""
    found = await call.services.accounts.authentication.list(call.account)
    return Credentials([credential_view(each, call.caller.credential_id) for each in found])


def credential_view(stored: Stored, current: str) -> CredentialView:
    """A token as its owner sees it."""
    return view_of(CredentialView, stored, current=stored.id == current)


class CredentialTerms(Arguments, frozen=True, kw_only=True):
    """A token to be made."""

    label: (
        Annotated[str, describe("What it is for.", min_length=1, max_length=MAX_LABEL)] | UnsetType
    ) = UNSET
    expires_in: (
        Annotated[
            int,
            describe(
                "Seconds until it expires; without it, it never does.", ge=1, le=MAX_TOKEN_SECONDS
            ),
        ]
        | UnsetType
    ) = UNSET
    scope: (
        Annotated[
            str,
            describe(
                f"{SCOPE_SAYS}. Without it, the same as the token that the request was made with.",
                min_length=1,
                max_length=MAX_SCOPE,
            ),
        ]
        | UnsetType
    ) = UNSET


class NewCredential(CredentialTerms, frozen=True, kw_only=True):
    """A token to be made for one's own account."""

    token: Annotated[
        str,
        describe(
            "In a browser session: a token of your account once more, one that is older than the "
            "session. The new one can do no more than that.",
            max_length=200,
        ),
    ] = ""
    ticket: SignedTicket = ""
    passkey: SignedAnswer = ""


async def create_token(call: Call[NewCredential]) -> CreatedCredential:
    """One more token."""
    given, caller = call.arguments, call.caller
    confirmed = None
    if given.token:
        confirmed = await call.services.accounts.confirm(caller.credential_id, given.token)
    made = await call.services.accounts.authentication.create(
        call.account,
        given.label or "",
        expires_in=given.expires_in or None,
        scope=check_scope(given.scope) if given.scope else "",
        by=caller.credential_id,
        confirmed=confirmed,
        present=await is_present(call, "folkmoot/create_token", "token"),
    )
    told = credential_view(made.credential, caller.credential_id)
    return CreatedCredential(**asdict(told), token=made.token)


class CredentialFor(CredentialTerms, frozen=True, kw_only=True):
    """A token the operator creates for an account."""

    handle: Annotated[str, describe("Whose account it opens, such as an agent's.")]


async def create_token_for(call: Call[CredentialFor]) -> CreatedCredential:
    """A token of any account, of any scope; asked for on the hub's own machine alone."""
    given, services = call.arguments, call.services
    account = await find(services, given.handle)
    if account.suspended_at is not None:
        raise e.CommandInvalid(f"@{account.handle} is suspended. Restore the account first.")
    made = await services.accounts.authentication.create(
        account,
        given.label or "",
        expires_in=given.expires_in or None,
        scope=check_scope(given.scope) if given.scope else ALL,
        operated=True,
    )
    if services.offline:
        # A hub that runs has logged it.
        record = recording(call, "token.created", [], made.credential.id)
        await services.store.write(lambda tx: record(tx, account))
    return CreatedCredential(**asdict(credential_view(made.credential, "")), token=made.token)


class CredentialsOf(Arguments, frozen=True, kw_only=True):
    """Whose tokens."""

    handle: Annotated[str, describe("Whose account they open.")]


async def tokens_of(call: Call[CredentialsOf]) -> Credentials:
    """The tokens and browsers of any account, as the operator; never their secrets."""
    account = await find(call.services, call.arguments.handle)
    found = await call.services.accounts.authentication.list(account)
    return Credentials([credential_view(each, call.caller.credential_id) for each in found])


class OneCredentialOf(CredentialsOf, frozen=True, kw_only=True):
    """One token of an account."""

    credential: Annotated[str, describe("The id of the token.", schema={"maxLength": 64})]


async def revoke_token_of(call: Call[OneCredentialOf]) -> NoContent:
    """Revoke a token of any account, as the operator."""
    services, given = call.services, call.arguments
    account = await find(services, given.handle)
    await services.accounts.authentication.revoke(
        account, given.credential, operated=True, by=call.caller.account
    )
    if services.offline:
        # A hub that runs has logged it.
        record = recording(call, "token.revoked", [], given.credential)
        await services.store.write(lambda tx: record(tx, account))
    return NoContent()


class OneCredential(Arguments, frozen=True, kw_only=True):
    """One token."""

    credential: Annotated[str, describe("The id of the token.", schema={"maxLength": 64})]


async def revoke_token(call: Call[OneCredential]) -> NoContent:
    """Revoke a token."""
    await call.services.accounts.authentication.revoke(call.account, call.arguments.credential)
    return NoContent()


TOKENS = (
    Operation(
        name="folkmoot/tokens",
        description="List the tokens that open your account: what each is for, when it was created "
        "and last used, and when it expires. The secrets are not shown. The user creates and "
        "revokes tokens with 'folkmoot tokens'.",
        handler=tokens,
        scope="account.read",
        routes=(
            Route(
                "GET",
                PATH,
                id="listCredentials",
                summary="List your tokens",
                description="Without their secrets.",
                answer="The tokens, the oldest first.",
                handler=credentials,
            ),
        ),
        commands=("tokens list",),
    ),
    Operation(
        name="folkmoot/create_token",
        description="It opens your account until it is revoked or expires. The answer is the only "
        "place where it is shown. In a browser it takes a passkey, or a token once more.",
        handler=create_token,
        secret=("token", "ticket", "passkey"),
        scope="account",
        limits=OWN_GUESSES,
        errors=(e.QuotaExceeded, e.ConfirmationInvalid, e.PasskeyInvalid, e.PasskeyUnusable),
        tool=SECRET,
        audit=AuditSpec("token.created", by_service=True),
        routes=(
            Route(
                "POST",
                PATH,
                id="createCredential",
                summary="Create a token",
                headers=CONFIRMED,
                status=201,
                answer="The token.",
                location=PATH + "/{id}",
                example={"label": "laptop", "expires_in": 2_592_000},
            ),
        ),
        commands=("tokens create",),
    ),
    Operation(
        name="folkmoot/create_token_for",
        description="For the operator, on the hub's own machine: a token of any account, such as "
        "an agent's, and the only one that can have the scope `operate`.",
        handler=create_token_for,
        scope=OPERATE,
        who="operator",
        errors=(e.CommandInvalid, e.UserNotFound, e.QuotaExceeded),
        needs=("accounts",),
        local=True,
        tool=SECRET,
        audit=AuditSpec("token.created", "handle", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/people/{handle}/credentials",
                id="createCredentialFor",
                summary="Create a token for someone",
                status=201,
                answer="The token.",
                example={"scope": "rooms:square"},
            ),
        ),
        commands=("tokens create",),
    ),
    operated(
        name="folkmoot/tokens_of",
        description="List the tokens and browsers that open someone's account, without their "
        "secrets.",
        handler=tokens_of,
        errors=(e.CommandInvalid, e.UserNotFound),
        needs=("accounts",),
        routes=(
            Route(
                "GET",
                "/v1/people/{handle}/credentials",
                id="listCredentialsOf",
                summary="List someone's tokens",
                answer="The tokens, the oldest first.",
            ),
        ),
        commands=("tokens list",),
    ),
    operated(
        name="folkmoot/revoke_token_of",
        description="Revoke a token of someone, or sign one of their browsers out. Whatever is "
        "open with it ends at once.",
        handler=revoke_token_of,
        errors=(e.CommandInvalid, e.UserNotFound, e.CredentialNotFound),
        needs=("accounts",),
        audit=AuditSpec("token.revoked", "credential", by_service=True),
        routes=(
            Route(
                "DELETE",
                "/v1/people/{handle}/credentials/{credential}",
                id="revokeCredentialOf",
                summary="Revoke someone's token",
                status=204,
                answer="It is revoked.",
            ),
        ),
        commands=("tokens revoke",),
    ),
    Operation(
        name="folkmoot/revoke_token",
        description="Whatever is open with it ends at once.",
        handler=revoke_token,
        scope="account",
        errors=(e.CredentialNotFound,),
        tool=Absent("Which token is not needed any more is for its owner to say."),
        audit=AuditSpec("token.revoked", "credential", by_service=True),
        routes=(
            Route(
                "DELETE",
                PATH + "/{credential}",
                id="revokeCredential",
                summary="Revoke a token",
                status=204,
                answer="It is revoked.",
            ),
        ),
        commands=("tokens revoke",),
    ),
)
