"""Who comes in, and by what: a token, a browser's session, or a guest's credential."""

from __future__ import annotations

import logging
from typing import NamedTuple

from folkmoot.accounts.credentials import ACCESS_INVALID, BEARER, OF_APPS, hash_of
from folkmoot.core import errors as e
from folkmoot.rooms import invitations, queries_guests
from folkmoot.rooms.access import SIGNED_OUT, guest_visitor, role_in, visitor_behind
from folkmoot.rooms.connections import CONNECTED
from folkmoot.rooms.invitations import Inviter
from folkmoot.rooms.listing import Listing
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import Guest, Visitor
from folkmoot.rooms.ports import Policy, RoomPort

logger = logging.getLogger("folkmoot.rooms")


class Admission(NamedTuple):
    """The room to which a visitor is admitted, and their role in it."""

    room: RoomPort
    role: Role


class RoomEntrance(Listing):
    """The way into the rooms."""

    _inviter: Inviter
    _policy: Policy | None

    async def authenticate(self, token: str) -> Visitor:
        """Whose token this is: an account's, an app's, or a guest's credential."""
        token_hash = hash_of(BEARER, token)
        if token_hash is not None:
            identity = await self._accounts.authentication.by_hash(token_hash)
            if identity is not None and identity.account is not None:
                return visitor_behind(identity, identity.account)
        guest = await self._guest_with(token)
        if guest is None:
            raise e.TokenInvalid(ACCESS_INVALID if token.startswith(OF_APPS) else "")
        return guest

    async def _guest_with(self, secret: str) -> Visitor | None:
        """The guest with this credential."""
        hashed = invitations.hash_credential(secret)
        if hashed is None:
            return None
        found = await self._store.read(lambda tx: queries_guests.by_credential(tx, hashed))
        return None if found is None else guest_visitor(*found)

    async def authenticate_browser(self, secret: str) -> Visitor:
        """The visitor of a browser session; a guest's session is its credential."""
        guest = await self._guest_with(secret)
        if guest is not None:
            return guest
        identity = await self._accounts.authentication.by_browser(secret)
        if identity is None or identity.account is None:
            raise e.TokenInvalid(SIGNED_OUT)
        return visitor_behind(identity, identity.account)

    async def exchange(self, name: str, token: str) -> tuple[Visitor, str]:
        """A guest's credential for the invitation it was sent; that is used up."""
        guest, credential_id, secret = await self._inviter.exchange(name, token)
        visitor = guest_visitor(guest, credential_id)
        if guest.capabilities:
            await self._apply_guest_grants(visitor, name, guest)
        return visitor, secret

    async def _apply_guest_grants(self, visitor: Visitor, name: str, guest: Guest) -> None:
        """Give a guest the promised rights; a failure does not keep it out."""
        try:
            record, _ = await self.find_in(visitor, name)
            await (await self._live.open(record)).apply_guest_grants(visitor.principal, guest)
        except e.FolkmootError as error:
            logger.warning("a guest was not given its rights", extra={"error": error.code})

    def check_connection(self, visitor: Visitor, name: str) -> None:
        """Refuse someone whom the hub denies to join rooms, or to hear what is said in them."""
        if self._policy is not None:
            for operation in CONNECTED:
                self._policy.check(visitor.principal, operation, {"room": name})

    async def enter(self, visitor: Visitor, name: str) -> Admission:
        """Let someone come in; an account that was not a member of an open room becomes one."""
        record, membership = await self.find(visitor, name)
        role = role_in(record, membership, visitor)
        await self.remember(record, membership, visitor)
        room = await self._live.open(record)
        await room.prepare(visitor.principal.account_id)
        return Admission(room, role)

    async def check_still(self, visitor: Visitor) -> None:
        """Refuse someone whose account or token has become void while they waited.

        An access token of an app may expire meanwhile, as long as its grant has not ended.
        """
        if visitor.account is None:
            return
        if visitor.credential_id:
            identity = await self._accounts.authentication.by_id(visitor.credential_id)
            account = None if identity is None else identity.account
        else:
            account = await self._accounts.account(visitor.principal.account_id)
        if account is None:
            raise e.TokenInvalid
        if account.suspended_at is not None:
            raise e.AccountSuspended
