"""An app that signs in to someone's account, without the pages and endpoints between them."""

from __future__ import annotations

from typing import Any

from folkmoot.accounts import Account, Accounts, AppClient, Credential, Pair
from folkmoot.core.ports import Tx

CLIENT = "https://app.example/client.json"
BACK = "http://127.0.0.1:7777/callback"
CHALLENGE = "c" * 43
SCOPE = "contacts mail.read mail.send rooms tools"
GIVEN: dict[str, Any] = {
    "client": AppClient(CLIENT, "Assistant", "127.0.0.1", "http://127.0.0.1/mcp"),
    "redirect_uri": BACK,
    "code_challenge": CHALLENGE,
    "scope": SCOPE,
}
# What an app exchanges its code with.
SHOWN: dict[str, Any] = {
    "client_id": CLIENT,
    "redirect_uri": BACK,
    "challenge_of": lambda challenge: challenge == CHALLENGE,
}


async def browser(accounts: Accounts, account: Account, scope: str = "") -> Credential:
    """A browser in which someone is signed in."""
    made = await accounts.browsers.open(account.id, scope=scope)
    assert made is not None
    return made.credential


async def consent(accounts: Accounts, account: Account, **given: Any) -> str:
    """The code that an app is sent back with."""
    return await accounts.apps.code(account, await browser(accounts, account), **GIVEN | given)


async def connect(accounts: Accounts, account: Account, **given: Any) -> Pair:
    """The tokens of an app that someone has just connected."""
    shown = SHOWN | {name: given[name] for name in SHOWN.keys() & given.keys()}
    return await accounts.apps.exchange(await consent(accounts, account, **given), **shown)


TABLES = (
    *("app_grants", "app_refresh", "consents", "identities"),
    *("passkeys", "registrations", "spent"),
)


async def fill(tx: Tx, account_id: str) -> None:
    """A row in each of those tables of signing in that `connect` leaves empty."""
    for table, row in {
        "consents": ("notes", account_id, account_id, "https://i", "", "", "", 1, 1, None, 0),
        "identities": ("https://i", "42", account_id, "[]", 1, 1),
        "passkeys": ("p_1", account_id, "id", "localhost", "Phone", "key", 0, 1, None),
        "registrations": ("https://i", "sealed"),
        "spent": ("hash", 9),
    }.items():
        marks = ", ".join("?" * len(row))
        await tx.execute(f"INSERT INTO {table} VALUES ({marks})", row)
