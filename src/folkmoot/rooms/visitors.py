"""Who asks, as rooms know them."""

from __future__ import annotations

from folkmoot.accounts import Account
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.rooms.model import Guest, Visitor


def visitor_of(account: Account, credential_id: str = "") -> Visitor:
    """An account as a visitor."""
    type_ = PrincipalType(account.account_type)
    return Visitor(Principal(account.id, account.handle, type_), account, None, credential_id)


def guest_visitor(guest: Guest, credential_id: str) -> Visitor:
    """A guest as a visitor of its one room."""
    principal = Principal(guest.id, guest.name, PrincipalType.GUEST)
    return Visitor(principal, None, guest.room_id, credential_id)
