"""Who asks, as rooms know them."""

from __future__ import annotations

from typing import Final

from folkmoot.accounts import Account, Identity
from folkmoot.accounts.model import principal_of
from folkmoot.core.errors import AccountSuspended
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.scopes import ALL
from folkmoot.rooms.model import Guest, Visitor

SIGNED_OUT: Final = "Authentication required. You were signed out in this browser: sign in again."


def visitor_behind(identity: Identity, account: Account) -> Visitor:
    """Whoever came with a credential of an account, unless that is suspended."""
    if account.suspended_at is not None:
        raise AccountSuspended
    return Visitor(identity.principal, account, None, identity.credential.id)


def visitor_of(account: Account, credential_id: str = "", scope: str = ALL) -> Visitor:
    """An account as a visitor, with the credential that it came with and the scope of that."""
    return Visitor(principal_of(account, scope), account, None, credential_id)


def guest_visitor(guest: Guest, credential_id: str) -> Visitor:
    """A guest as a visitor of its one room."""
    principal = Principal(guest.id, guest.name, PrincipalType.GUEST)
    return Visitor(principal, None, guest.room_id, credential_id)
