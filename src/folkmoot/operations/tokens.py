"""One's own tokens. They are made and revoked with REST or the command line: a model that made one
would have read its secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from folkmoot.operations.row import Nothing, Operation, Route

if TYPE_CHECKING:
    from folkmoot.accounts import Credential
    from folkmoot.operations.call import Call


class Tokens(Struct, frozen=True):
    """The tokens of an account."""

    tokens: list[dict[str, Any]]


async def tokens(call: Call[Nothing]) -> Tokens:
    """The caller's tokens, without their secrets."""
    found = await call.services.accounts.authentication.list(call.account)
    return Tokens([shown(each, call.caller.credential_id) for each in found])


def shown(credential: Credential, current: str) -> dict[str, Any]:
    """A token as its owner sees it."""
    return {
        "id": credential.id,
        "label": credential.label,
        "scope": credential.scope,
        "created_at": credential.created_at,
        "used_at": credential.used_at,
        "expires_at": credential.expires_at,
        "current": credential.id == current,
    }


TOKENS = (
    Operation(
        name="folkmoot/tokens",
        description="List the tokens that open your account: what each is for, when it was created "
        "and last used, and when it expires. The secrets are not shown. The user creates and "
        "revokes tokens with 'folkmoot tokens'.",
        takes=Nothing,
        gives=Tokens,
        handler=tokens,
        scope="account.read",
        effect="reads",
        routes=(Route("GET", "/v1/me/credentials"),),
        commands=("tokens list",),
    ),
)
