"""Who may know of a room, and who may come in."""

from __future__ import annotations

from typing import Final

from folkmoot.core.errors import RoomForbidden, RoomNotFound
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import Access, Membership, RoomRecord, Visitor

IN: Final = ("member", "invited")
"""The states of those who may come in, whatever the access."""

STRANGERS_COME_IN: Final[dict[Access, bool]] = {"open": True, "invite": False, "private": False}
STRANGERS_KNOW: Final[dict[Access, bool]] = {"open": True, "invite": True, "private": False}


def check_known(record: RoomRecord, membership: Membership | None, visitor: Visitor) -> None:
    """Raise `RoomNotFound` where the visitor is not to know that there is such a room."""
    if visitor.room_id is not None:
        if visitor.room_id != record.id:
            raise RoomNotFound("There is no such room.")
    elif not STRANGERS_KNOW[record.access] and (membership is None or membership.state not in IN):
        raise RoomNotFound("There is no such room.")


def role_in(record: RoomRecord, membership: Membership | None, visitor: Visitor) -> Role:
    """What the visitor is in the room, if it may come in."""
    check_known(record, membership, visitor)
    if not may_enter(record, membership, visitor):
        removed = membership is not None
        raise RoomForbidden(
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
        raise RoomForbidden("Only an owner of the room may do this.")
