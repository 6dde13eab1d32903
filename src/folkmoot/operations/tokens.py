"""Tokens, one's own and those of others. They are made and revoked with REST or the command line: a
model that made one would have read its secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict

from folkmoot.accounts.limits import MAX_LABEL, MAX_TOKEN_SECONDS
from folkmoot.core import errors as e
from folkmoot.core.scopes import ALL
from folkmoot.operations.declare import ForOthers, Topic, delete, get, post
from folkmoot.operations.limits import MAX_SCOPE
from folkmoot.operations.presence import SignedAnswer, SignedTicket, is_present
from folkmoot.operations.rate_limits import OWN_GUESSES
from folkmoot.operations.row import CONFIRMED, Absent, AuditSpec, NoContent, describe, view_of
from folkmoot.operations.scopes import check_scope
from folkmoot.operations.subjects import recording

if TYPE_CHECKING:
    from folkmoot.accounts import Credential as Stored
    from folkmoot.operations.call import Call

PATH: Final = "/v1/me/credentials"
OTHERS: Final = "/v1/people/{handle}/credentials"
SCOPE_SAYS: Final = "What it may do: `*`, or scopes such as `mail.read rooms:square`"
SECRET: Final = Absent("Whoever calls a tool reads its answer: a token is for its owner alone.")
WHOSE: Final = Annotated[str, "Whose account they open."]
CredentialId = Annotated[str, describe("The id of the token.", schema={"maxLength": 64})]
account = Topic(scope="account")


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


class Tokens(Struct, frozen=True):
    """What opens an account: its tokens, browsers and apps."""

    tokens: Annotated[list[CredentialView], describe("The oldest first.")]


def credential_view(stored: Stored, current: str) -> CredentialView:
    """A token as its owner sees it."""
    return view_of(CredentialView, stored, current=stored.id == current)


@account.reads(
    "folkmoot/tokens",
    get(
        PATH,
        "listCredentials",
        "List your tokens",
        "Without their secrets.",
        answer="The tokens, the oldest first.",
    ),
    scope="account.read",
    commands=("tokens list",),
    for_others=ForOthers(
        name="folkmoot/tokens_of",
        route=get(
            OTHERS,
            "listCredentialsOf",
            "List someone's tokens",
            answer="The tokens, the oldest first.",
        ),
        says="List the tokens and browsers that open someone's account, without their secrets.",
        whose=WHOSE,
    ),
)
async def tokens(call: Call) -> Tokens:
    """List the tokens that open your account: what each is for, when it was created and last used,
    and when it expires. The secrets are not shown. The user creates and revokes tokens with
    'folkmoot tokens'.
    """
    found = await call.services.accounts.authentication.list(call.subject)
    return Tokens([credential_view(each, call.caller.credential_id) for each in found])


@account.adds(
    "folkmoot/create_token",
    post(
        PATH,
        "createCredential",
        "Create a token",
        headers=CONFIRMED,
        status=201,
        answer="The token.",
        location=PATH + "/{id}",
        example={"label": "laptop", "expires_in": 2_592_000},
    ),
    secret=("token", "ticket", "passkey"),
    limits=OWN_GUESSES,
    errors=(e.QuotaExceeded, e.ConfirmationInvalid, e.PasskeyInvalid, e.PasskeyUnusable),
    tool=SECRET,
    audit=AuditSpec("token.created", by_service=True),
    commands=("tokens create",),
    for_others=ForOthers(
        name="folkmoot/create_token_for",
        route=post(
            OTHERS,
            "createCredentialFor",
            "Create a token for someone",
            status=201,
            answer="The token.",
            example={"scope": "rooms:square"},
        ),
        says="For the operator, on the hub's own machine: a token of any account, such as an "
        "agent's, and the only one that can have the scope `operate`.",
        whose=Annotated[str, "Whose account it opens, such as an agent's."],
        without=("token", "ticket", "passkey"),
        more={
            "errors": (e.QuotaExceeded,),
            "local": True,
            "tool": SECRET,
            "audit": AuditSpec("token.created", "handle", by_service=True),
        },
    ),
)
async def create_token(
    call: Call,
    *,
    label: Annotated[str, describe("What it is for.", min_length=1, max_length=MAX_LABEL)]
    | UnsetType = UNSET,
    expires_in: Annotated[
        int,
        describe(
            "Seconds until it expires; without it, it never does.", ge=1, le=MAX_TOKEN_SECONDS
        ),
    ]
    | UnsetType = UNSET,
    scope: Annotated[
        str,
        describe(
            f"{SCOPE_SAYS}. Without it, the same as the token that the request was made with.",
            min_length=1,
            max_length=MAX_SCOPE,
        ),
    ]
    | UnsetType = UNSET,
    token: Annotated[
        str,
        describe(
            "In a browser session: a token of your account once more, one that is older than the "
            "session. The new one can do no more than that.",
            max_length=200,
        ),
    ] = "",
    ticket: SignedTicket = "",
    passkey: SignedAnswer = "",
) -> CreatedCredential:
    """It opens your account until it is revoked or expires. The answer is the only place where it
    is shown. In a browser it takes a passkey, or a token once more.
    """
    accounts, caller, whose = call.services.accounts, call.caller, call.subject
    wanted = check_scope(scope) if scope else ""
    if call.for_others:
        if whose.suspended_at is not None:
            raise e.CommandInvalid(f"@{whose.handle} is suspended. Restore the account first.")
        made = await accounts.authentication.create(
            whose, label or "", expires_in=expires_in or None, scope=wanted or ALL, operated=True
        )
        await log_offline(call, "token.created", made.credential.id)
        return CreatedCredential(**asdict(credential_view(made.credential, "")), token=made.token)
    made = await accounts.authentication.create(
        whose,
        label or "",
        expires_in=expires_in or None,
        scope=wanted,
        by=caller.credential_id,
        confirmed=await accounts.confirm(caller.credential_id, token) if token else None,
        present=await is_present(call, "folkmoot/create_token", ticket, passkey),
    )
    told = credential_view(made.credential, caller.credential_id)
    return CreatedCredential(**asdict(told), token=made.token)


@account.destroys(
    "folkmoot/revoke_token",
    delete(
        PATH + "/{credential}",
        "revokeCredential",
        "Revoke a token",
        status=204,
        answer="It is revoked.",
    ),
    errors=(e.CredentialNotFound,),
    tool=Absent("Which token is not needed any more is for its owner to say."),
    audit=AuditSpec("token.revoked", "credential", by_service=True),
    commands=("tokens revoke",),
    for_others=ForOthers(
        name="folkmoot/revoke_token_of",
        route=delete(
            OTHERS + "/{credential}",
            "revokeCredentialOf",
            "Revoke someone's token",
            status=204,
            answer="It is revoked.",
        ),
        says="Revoke a token of someone, or sign one of their browsers out. Whatever is open with "
        "it ends at once.",
        whose=WHOSE,
    ),
)
async def revoke_token(call: Call, credential: CredentialId) -> NoContent:
    """Whatever is open with it ends at once."""
    by = call.caller.account if call.for_others else None
    await call.services.accounts.authentication.revoke(
        call.subject, credential, operated=call.for_others, by=by
    )
    await log_offline(call, "token.revoked", credential)
    return NoContent()


async def log_offline(call: Call, action: str, credential: str) -> None:
    """Leave the line of an operator's change where no hub runs; one that runs has logged it."""
    services, record = call.services, recording(call, action, [], credential)
    if call.for_others and services.offline:
        await services.store.write(lambda tx: record(tx, call.subject))
