"""Accounts: handles, tokens, profiles, contacts, blocks and invites.

An *account* has one live *handle*; handles it gave up *redirect* to it for a while. It is opened by
a *token* and, when that is lost, by a *recovery code*; only their hashes are stored. Its *privacy*
says who sees its *profile* and may write to it: everyone, or those in its *contacts*. A *block*
keeps one sender out, in one direction. An *invite* lets someone register and may carry a message. A
*grant* lets an *app* use the account. `accounts.py` is what others use: each action there is one
unit of the store. Its `check_*` and `access_*` functions are in `registration`, `profiles` and
`people`, the SQL in `queries*.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.accounts.limits import MAX_FORMATS, REDIRECT_SECONDS
from folkmoot.accounts.model import (
    Account,
    AccountExport,
    AccountType,
    AppClient,
    ConnectedApp,
    Contact,
    ContactPage,
    Credential,
    CredentialKind,
    FoundAccount,
    HandleChange,
    HandleInvite,
    HubInvitation,
    Identity,
    InviteRecord,
    InviteState,
    NewToken,
    OnDelete,
    Pair,
    Passkey,
    PersonRow,
    Policy,
    Privacy,
    Recovered,
    Registered,
    SessionTimes,
    Welcome,
)
from folkmoot.lazy_packages import loading

if TYPE_CHECKING:
    from folkmoot.accounts.accounts import Accounts
    from folkmoot.accounts.credentials import check_public_key, is_token
    from folkmoot.accounts.people import access_recipient
    from folkmoot.accounts.registration import ReservedNames, Standing
else:
    __getattr__ = loading(
        __name__,
        {
            "accounts": "Accounts",
            "credentials": "check_public_key is_token",
            "people": "access_recipient",
            "registration": "ReservedNames Standing",
        },
    )
