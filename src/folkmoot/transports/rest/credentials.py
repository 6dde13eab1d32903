"""`/v1/me/credentials`: the tokens of the caller's account."""

from __future__ import annotations

from typing import Final

from folkmoot.accounts import Account
from folkmoot.accounts.authentication import LONGEST_LABEL, LONGEST_LIFE
from folkmoot.core.errors import (
    ArgumentInvalid,
    CapabilityDenied,
    CredentialNotFound,
    QuotaExceeded,
)
from folkmoot.operations.scopes import MOST_CHARACTERS, check_scope
from folkmoot.operations.tokens import shown
from folkmoot.transports.rest.model import Answered, Body, Call, Operation, Reply, Schema
from folkmoot.transports.rest.reading import check_members
from folkmoot.transports.rest.shapes import listed, nullable, ref, shape, text, told

PATH: Final = "/v1/me/credentials"

_MEMBERS: Final[dict[str, Schema]] = {
    "id": told("string", "What it is revoked by."),
    "label": told("string", "What it is for."),
    "scope": told("string", "What it may do: `*`, or scopes such as `mail.read rooms:square`."),
    "created_at": told("integer", "When it was created, in seconds since 1970."),
    "used_at": nullable(told("integer", "When it was last used; at most minutes behind.")),
    "expires_at": nullable(told("integer", "When it expires; null is never.")),
    "current": told("boolean", "Whether this request was made with it."),
}

CREDENTIAL_SCHEMAS: Final[dict[str, Schema]] = {
    "Credential": shape(_MEMBERS),
    "Credentials": shape(
        {"credentials": listed(ref("Credential"), description="The oldest first.")}
    ),
    "NewCredential": shape(
        {
            "label": text("What it is for.", LONGEST_LABEL),
            "expires_in": {
                "type": "integer",
                "minimum": 1,
                "maximum": LONGEST_LIFE,
                "description": "Seconds until it expires; without it, it never does.",
            },
            "scope": text(
                "What it may do: `*`, or scopes such as `mail.read rooms:square`. Without it, the "
                "same as the token that the request was made with.",
                MOST_CHARACTERS,
            ),
        },
        "label",
        "expires_in",
        "scope",
    ),
    "CreatedCredential": shape(
        {**_MEMBERS, "token": told("string", "The token itself. It is not shown again.")}
    ),
}


def _account(call: Call) -> Account:
    if call.visitor.account is None:
        raise CapabilityDenied("A guest has no account, and no tokens of its own.")
    return call.visitor.account


async def list_credentials(call: Call) -> Answered:
    """The caller's tokens."""
    found = await call.services.accounts.authentication.list(_account(call))
    current = call.visitor.credential_id
    return Answered({"credentials": [shown(each, current) for each in found]})


async def create_credential(call: Call) -> Answered:
    """One more token."""
    account, body = _account(call), call.body
    check_members(CREDENTIAL_SCHEMAS["NewCredential"], body)
    made = await call.services.accounts.authentication.create(
        account,
        body.get("label", ""),
        expires_in=body.get("expires_in"),
        scope=check_scope(body["scope"]) if "scope" in body else "",
        by=call.visitor.credential_id,
    )
    told = {**shown(made.credential, call.visitor.credential_id), "token": made.token}
    return Answered(told, {"location": f"{PATH}/{made.credential.id}"})


async def revoke_credential(call: Call) -> Answered:
    """One token less."""
    await call.services.accounts.authentication.revoke(_account(call), call.named["credential"])
    return Answered()


CREDENTIAL_OPERATIONS: Final = (
    Operation(
        id="listCredentials",
        name="folkmoot/tokens",
        method="GET",
        path=PATH,
        summary="List your tokens",
        description="Without their secrets.",
        handler=list_credentials,
        reply=Reply(200, "The tokens, the oldest first.", "Credentials"),
    ),
    Operation(
        id="createCredential",
        name="folkmoot/create_token",
        method="POST",
        path=PATH,
        summary="Create a token",
        description="It opens your account until it is revoked or expires. The answer is the only "
        "place where it is shown.",
        handler=create_credential,
        body=Body("NewCredential", {"label": "laptop", "expires_in": 2_592_000}),
        reply=Reply(
            201, "The token.", "CreatedCredential", {"Location": "Where it can be revoked."}
        ),
        errors=(ArgumentInvalid, QuotaExceeded),
    ),
    Operation(
        id="revokeCredential",
        name="folkmoot/revoke_token",
        method="DELETE",
        path=PATH + "/{credential}",
        summary="Revoke a token",
        description="Whatever is open with it ends at once.",
        handler=revoke_credential,
        reply=Reply(204, "It is revoked."),
        errors=(CredentialNotFound,),
    ),
)
