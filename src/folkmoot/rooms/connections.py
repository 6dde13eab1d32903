"""What ends the connections of rooms.

Revocation hears the events that units publish, also those of other hubs on the same store: when
accounts, credentials, rights or rooms change, connections end or are renamed.
"""

from __future__ import annotations

from typing import Final

from folkmoot.accounts import Accounts
from folkmoot.accounts.model import read_change
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.entity import Entity
from folkmoot.core.events import ACCOUNTS, CREDENTIALS, GRANTS, ROOMS, SETTINGS, about
from folkmoot.core.ports import Bus, Event
from folkmoot.rooms.access import visitor_of
from folkmoot.rooms.loading import LiveRooms
from folkmoot.rooms.model import Visitor
from folkmoot.rooms.ports import Policy
from folkmoot.rooms.visits import Visit

JOIN: Final = "room/join"
READ: Final = "room/read"
CONNECTED: Final = (JOIN, READ)
"""The operations that a connection is: whoever has one is here, and hears what is said."""


class Revocation(Entity):
    """Holds every connection to what it was opened with."""

    bus: Bus
    accounts: Accounts
    rooms: LiveRooms
    policy: Policy | None
    hub_id: str
    changes: int = 0
    """How often an account changed, or a credential ended, since the hub began."""

    def __post_init__(self) -> None:
        self.bus.listen(ACCOUNTS, self._account_changed)
        self.bus.listen(CREDENTIALS, self._credential_ended)
        self.bus.listen(ROOMS, self._room_changed)
        self.bus.listen(GRANTS, self._grants_changed)
        self.bus.listen(SETTINGS, self._settings_changed)

    def _settings_changed(self, _: Event) -> None:
        """The hub may have other backends now; rooms that are not live are seen to later."""
        for room in self.rooms:
            room.set_backends()
        self._end_denied(None)

    def _grants_changed(self, event: Event) -> None:
        self._end_denied(about(event))

    def _end_denied(self, account_id: str | None) -> None:
        """End the connections of one, or of everyone, whom the hub denies to be here now."""
        if self.policy is None:
            return
        for room in self.rooms.in_use():
            for outlet, visitor in list(room.outlets.items()):
                account = visitor.principal.account_id
                if account_id not in (None, account):
                    continue
                if self._is_denied(visitor, JOIN, room.name):
                    room.remove(account, CloseCode.NOT_ALLOWED)
                elif not isinstance(outlet, Visit) and self._is_denied(visitor, READ, room.name):
                    outlet.close(CloseCode.NOT_ALLOWED)

    def _is_denied(self, visitor: Visitor, operation: str, name: str) -> bool:
        try:
            if self.policy is not None:
                where = {"room": name}
                self.policy.check(visitor.principal, operation, where, attempted=False)
        except e.PolicyError:
            return True
        return False

    def _account_changed(self, event: Event) -> None:
        """An account changed: connections of a token that is no longer good end, names follow."""
        changed = read_change(event)
        self.changes += 1
        for room in self.rooms.in_use():
            if changed.closes:
                room.remove(changed.id, CloseCode.NOT_AUTHENTICATED)
                continue
            if changed.ends_tokens:
                for outlet, visitor in list(room.outlets.items()):
                    if visitor.principal.account_id == changed.id and visitor.credential_id:
                        outlet.close(CloseCode.NOT_AUTHENTICATED)
            room.rename(changed.principal)
        if changed.change == "handle":
            self._end_denied(changed.id)
        if changed.change in ("suspended", "restored", "deleted"):
            self.rooms.stand(changed.id, changed.change)

    def _credential_ended(self, event: Event) -> None:
        """Close the connections opened with an ended credential."""
        self.changes += 1
        for room in self.rooms.in_use():
            for outlet, visitor in list(room.outlets.items()):
                if visitor.credential_id == about(event):
                    outlet.close(CloseCode.NOT_AUTHENTICATED)

    def _room_changed(self, event: Event) -> None:
        """A room was removed, or set anew by another hub: what is live of it is not valid."""
        room_id = int(about(event))
        if event.data["gone"]:
            self.rooms.leave(room_id, e.RoomNotFound("The room was removed."))
            self.rooms.budget.forget()
        elif event.data["by"] != self.hub_id:
            self.rooms.end(room_id, e.RoomUnavailable("The room was changed; it is loaded again."))

    async def recheck(self, account_id: str) -> None:
        """End the connections of an account that is no longer good, or rename it in its rooms."""
        account = await self.accounts.account(account_id)
        if account is None or account.suspended_at is not None:
            self.rooms.stand(account_id, "deleted" if account is None else "suspended")
        for room in self.rooms.in_use():
            if account is None or account.suspended_at is not None:
                room.remove(account_id, CloseCode.NOT_AUTHENTICATED)
                continue
            for outlet, visitor in list(room.outlets.items()):
                if visitor.principal.account_id != account_id or not visitor.credential_id:
                    continue
                if await self.accounts.still_valid(visitor.credential_id) is None:
                    outlet.close(CloseCode.NOT_AUTHENTICATED)
            room.rename(visitor_of(account).principal)
