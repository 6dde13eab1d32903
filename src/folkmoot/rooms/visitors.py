"""Who asks, as rooms know them."""

from __future__ import annotations

from folkmoot.accounts import Account
from folkmoot.accounts.model import principal_of
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.scopes import ALL
from folkmoot.rooms.model import Guest, Visitor


def visitor_of(account: Account, credential_id: str = "", scope: str = ALL) -> Visitor:
    """An account as a visitor, with the credential that it came with and the scope of that."""
    return Visitor(principal_of(account, scope), account, None, credential_id)


def guest_visitor(guest: Guest, credential_id: str) -> Visitor:
    """A guest as a visitor of its one room."""
    principal = Principal(guest.id, guest.name, PrincipalType.GUEST)
    return Visitor(principal, None, guest.room_id, credential_id)
