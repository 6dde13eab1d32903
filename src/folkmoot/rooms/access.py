"""Who asks, who may know of a room, who may come in, and what remains when an account goes."""

from __future__ import annotations

from typing import Final

import msgspec

from folkmoot.accounts import Account, Identity
from folkmoot.accounts.model import principal_of
from folkmoot.core import errors as e
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.ports import Store, Tx
from folkmoot.core.scopes import ALL
from folkmoot.rooms import queries, queries_members
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import Access, Guest, Membership, RoomId, RoomRecord, Visitor

IN: Final = ("member", "invited")
"""The states of those who may come in, whatever the access."""

STRANGERS_COME_IN: Final[dict[Access, bool]] = {"open": True, "invite": False, "private": False}
STRANGERS_KNOW: Final[dict[Access, bool]] = {"open": True, "invite": True, "private": False}


def check_known(record: RoomRecord, membership: Membership | None, visitor: Visitor) -> None:
    """Raise `RoomNotFound` where the visitor is not to know that there is such a room."""
    if visitor.room_id is not None:
        if visitor.room_id != record.id:
            raise e.RoomNotFound("There is no such room.")
    elif not STRANGERS_KNOW[record.access] and (membership is None or membership.state not in IN):
        raise e.RoomNotFound("There is no such room.")


def role_in(record: RoomRecord, membership: Membership | None, visitor: Visitor) -> Role:
    """What the visitor is in the room, if it may come in."""
    check_known(record, membership, visitor)
    if not may_enter(record, membership, visitor):
        removed = membership is not None
        raise e.RoomForbidden(
            "You were removed from this room."
            if removed
            else "This room is for invited people only."
        )
    if visitor.room_id is not None:
        return Role.GUEST
    return Role.MEMBER if membership is None else membership.role


def may_enter(record: RoomRecord, membership: Membership | None, visitor: Visitor) -> bool:
    """Whether the visitor would be let in."""
    if visitor.room_id is not None:
        return visitor.room_id == record.id
    if membership is None:
        return STRANGERS_COME_IN[record.access]
    return membership.state in IN


def require_owner(role: Role) -> None:
    """Refuse what is the owners' to do."""
    if role is not Role.OWNER:
        raise e.RoomForbidden("Only an owner of the room may do this.")


SIGNED_OUT: Final = "Authentication required. You were signed out in this browser: sign in again."


def visitor_behind(identity: Identity, account: Account) -> Visitor:
    """Whoever came with a credential of an account, unless that is suspended."""
    if account.suspended_at is not None:
        raise e.AccountSuspended
    return Visitor(identity.principal, account, None, identity.credential.lasting_id)


def visitor_of(account: Account, credential_id: str = "", scope: str = ALL) -> Visitor:
    """An account as a visitor, with the credential that it came with and the scope of that."""
    return Visitor(principal_of(account, scope), account, None, credential_id)


def guest_visitor(guest: Guest, credential_id: str) -> Visitor:
    """A guest as a visitor of its one room."""
    principal = Principal(guest.id, guest.name, PrincipalType.GUEST)
    return Visitor(principal, None, guest.room_id, credential_id)


async def leave_all_rooms(tx: Tx, account: Account) -> None:
    """Within the deletion of an account: remove its memberships and rights in rooms."""
    for room_id in await queries_members.remove_account(tx, account.id):
        # Read again where another change of the room came first.
        while not await _drop_grants(tx, room_id, account.id):
            pass


async def _drop_grants(tx: Tx, room_id: RoomId, account_id: str) -> bool:
    record = await queries.room_by_id(tx, room_id)
    if record is None or account_id not in record.grants:
        return True
    grants = {id_: held for id_, held in record.grants.items() if id_ != account_id}
    return await queries.update_room(tx, msgspec.structs.replace(record, grants=grants))


async def remove_if_deserted(store: Store, record: RoomRecord) -> bool:
    """Remove a room that is not open to all, with its history, once nobody may enter it.

    It must not be live.
    """
    if record.access == "open" or not await store.read(lambda tx: is_deserted(tx, record.id)):
        return False
    return await store.write(lambda tx: queries.delete_if_deserted(tx, record.id))


async def is_deserted(tx: Tx, room_id: RoomId) -> bool:
    """Whether a room has no member, nobody who was invited, and no guest."""
    row = await tx.fetch_one(
        "SELECT 1 FROM rooms r WHERE r.id = ? AND NOT EXISTS (SELECT 1 FROM room_members m "
        "WHERE m.room_id = r.id AND m.state <> 'banned') "
        "AND NOT EXISTS (SELECT 1 FROM room_guests g WHERE g.room_id = r.id)",
        (room_id,),
    )
    return row is not None
