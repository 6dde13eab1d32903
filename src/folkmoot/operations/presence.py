"""People show that they are there, as operators must before they change what the hub runs.

A browser session lasts for weeks and a laptop is left open. For such a change their passkey signs
the very call, or they give a token once more where they have no passkey.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec

from folkmoot.accounts.limits import MAX_PASSKEY_ANSWER, MAX_PASSKEY_TICKET
from folkmoot.accounts.model import Decision
from folkmoot.core import errors as e
from folkmoot.core.scopes import OPERATE, scope
from folkmoot.operations.arguments import decode
from folkmoot.operations.row import CONFIRMED, Arguments, describe

if TYPE_CHECKING:
    from folkmoot.accounts.model import Credential
    from folkmoot.operations.call import Call

PRESENT: Final = {**CONFIRMED, "folkmoot-ticket": "ticket", "folkmoot-passkey": "passkey"}
"""In headers, which nobody logs, as a token that is given once more."""
CONFIRMING: Final = ("token", "ticket", "passkey")
ERRORS: Final = (
    e.CapabilityDenied,
    e.ConfirmationInvalid,
    e.PasskeyInvalid,
    e.PasskeyUnusable,
)
INSECURE: Final = (
    "This needs https, or a browser on the hub's own machine at localhost: over plain http anyone "
    "in between can read and change it."
)
CONFIRM: Final = "Show that it is you: use your passkey, or give your token once more."
NEEDS_PASSKEY: Final = "Use your passkey: in a browser, a token once more is not enough."
NARROW: Final = (
    "Give another of your tokens once more: this one is for a few things only, as a program's is."
)


SignedTicket = Annotated[
    str,
    describe(
        "The ticket of `folkmoot/begin_presence` for this call.", max_length=MAX_PASSKEY_TICKET
    ),
]
SignedAnswer = Annotated[
    str, describe("What the browser's passkey signed for it.", max_length=MAX_PASSKEY_ANSWER)
]


def call_to_sign(operation: str, arguments: dict[str, Any]) -> Decision:
    """What a passkey signs before a call: all of its arguments, also those that are left out."""
    from folkmoot.operations.table import OPERATIONS

    for row in OPERATIONS:
        if row.name == operation and "ticket" in row.takes.__struct_fields__:
            return Decision(operation, signed(decode(row.takes, arguments)))
    return Decision(operation, arguments)


def signed(arguments: msgspec.Struct) -> dict[str, Any]:
    """All arguments of a call but those that show that its caller is there."""
    given: dict[str, Any] = msgspec.to_builtins(arguments)
    return {name: value for name, value in given.items() if name not in CONFIRMING}


async def is_present(call: Call, operation: str, ticket: str, passkey: str) -> bool:
    """Whether the caller's passkey signed this very call; one that it did not sign is refused."""
    if not ticket:
        return False
    decision = Decision(operation, signed(call.arguments))
    await call.services.accounts.passkeys.check_presence(
        call.account, call.caller.base_url, decision, ticket, passkey
    )
    return True


class Confirmed(Arguments, frozen=True, kw_only=True):
    """What shows over the network that an operator is there."""

    token: Annotated[
        str,
        describe(
            "A token of your account once more, one that is not for a few things only.",
            max_length=200,
        ),
    ] = ""
    ticket: SignedTicket = ""
    passkey: SignedAnswer = ""


async def check_present(call: Call, operation: str) -> None:
    """Refuse whoever does not show that they are there.

    On the operator's own socket nothing more is needed: whoever is there can start programs anyway.
    """
    who = call.caller
    if who.account is None:
        return
    try:
        if not is_secure(who.base_url):
            raise e.CapabilityDenied(INSECURE)
        given = call.arguments
        if not await is_present(call, operation, given.ticket, given.passkey):
            await check_token(call)
    except e.FolkmootError as error:
        from folkmoot import audit

        audit.record_refusal(who.principal, operation, error)
        raise


async def check_token(call: Call) -> Credential:
    """Refuse a request without a token that shows it is the caller's own.

    What they may do they came with. A token for a few things only, such as an agent's, is not one
    that a person keeps to themselves.
    """
    from folkmoot.accounts.passkeys import has_passkeys

    accounts, token = call.services.accounts, call.arguments.token
    if not token:
        raise e.ConfirmationInvalid(CONFIRM)
    came_with = await accounts.authentication.by_id(call.caller.credential_id)
    if came_with and came_with.credential.kind == "browser" and has_passkeys(call.caller.base_url):
        here = urlsplit(call.caller.base_url.lower()).hostname
        if any(each.rp_id == here for each in await accounts.passkeys.list(call.account)):
            raise e.ConfirmationInvalid(NEEDS_PASSKEY)
    confirmed = await accounts.confirm(call.caller.credential_id, token)
    given = scope(confirmed.scope)
    if not (given.is_whole or given.has(OPERATE)):
        raise e.ConfirmationInvalid(NARROW)
    return confirmed


def is_secure(base_url: str) -> bool:
    """Whether a browser takes what comes from an address as secure."""
    from folkmoot.accounts.passkeys import has_passkeys

    if has_passkeys(base_url) or base_url.lower().startswith("https:"):
        return True
    try:
        return ip_address(urlsplit(base_url).hostname or "").is_loopback
    except ValueError:
        return False
