"""Invitations: an account becomes one who may come in, a guest gets a token that is told once."""

from __future__ import annotations

from typing import NamedTuple

from folkmoot.accounts import Accounts
from folkmoot.core.errors import InvitationInvalid, InviteNotOpen, NameRefused, RoomNotFound
from folkmoot.core.ports import Clock, Store, Tx
from folkmoot.quotas import Quotas
from folkmoot.rooms import guests, queries, queries_guests
from folkmoot.rooms.machine import Invite
from folkmoot.rooms.machine.wire import moment
from folkmoot.rooms.model import Guest, Invitation, OpenInvitation, RoomId, RoomRecord
from folkmoot.rooms.spec import check_name


class Invited(NamedTuple):
    """Someone may come into a room now; a guest has no account."""

    room_id: RoomId
    account: str | None
    invitation: Invitation


class Inviter:
    """Makes invitations and takes them back in exchange for credentials."""

    def __init__(self, store: Store, clock: Clock, accounts: Accounts, quotas: Quotas) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._quotas = quotas

    async def check(self, room_id: RoomId, by: str, handle: str | None, guest: str | None) -> None:
        """Refuse an invitation that could not be made, before anyone hears of it."""
        now = int(self._clock.now())
        self._quotas.check_disk()

        async def query(tx: Tx) -> None:
            if guest is None:
                await self._accounts.reachable(tx, by, handle or "")
            else:
                self._check_free(guest)
                await self._check_quota(tx, by)
                await guests.check_guest_name(tx, room_id, guest, now)

        await self._store.read(query)

    async def invite(self, name: str, asked: Invite) -> Invited:
        """Do what an inviter asked for; whoever was put out before may come again."""
        handle, guest, by = asked.handle, asked.guest, asked.by.account_id
        if guest is not None:
            return await self._invite_guest(name, guest, asked)

        async def unit(tx: Tx) -> Invited:
            record = await _room(tx, name)
            account = await self._accounts.reachable(tx, by, handle or "")
            await queries.invite(tx, record.id, account.id, banned=True)
            return Invited(record.id, account.id, Invitation(name, handle=account.handle))

        return await self._store.write(unit)

    async def _invite_guest(self, name: str, guest: str, asked: Invite) -> Invited:
        secret, now = guests.new_invitation(), int(self._clock.now())
        by = asked.by.account_id

        async def unit(tx: Tx) -> Invited:
            self._check_free(guest)
            await self._check_quota(tx, by)
            record = await _room(tx, name)
            someone = guests.new_guest(record.id, guest, by, asked.capabilities, asked.id)
            until = await guests.do_invite(tx, someone, secret.hash, now)
            invitation = Invitation(name, guest=guest, token=secret.text, expires_at=moment(until))
            return Invited(record.id, None, invitation)

        return await self._store.write(unit)

    async def open(self, room_id: RoomId, by: str | None) -> list[OpenInvitation]:
        """Whom a room waits for; with `by`, the guests alone whom that account invited."""
        now = int(self._clock.now())

        async def query(tx: Tx) -> list[OpenInvitation]:
            handles = [] if by else await queries.invited_to(tx, room_id, guests.MOST_GUESTS)
            waiting = await queries_guests.waiting_in(tx, room_id, by, now, guests.MOST_GUESTS)
            return [
                *(OpenInvitation(handle=handle) for handle in handles),
                *(
                    OpenInvitation(guest=name, invited_by=inviter, expires_at=moment(until))
                    for name, inviter, until in waiting
                ),
            ]

        return await self._store.read(query)

    async def withdraw(self, room_id: RoomId, invited: str, by: str | None) -> None:
        """Have an invitation open nothing any more; with `by`, a guest's of that account's."""

        async def unit(tx: Tx) -> bool:
            if await queries_guests.remove_invitation(tx, room_id, invited, by):
                return True
            return by is None and await queries.remove_invited(tx, room_id, invited)

        if not await self._store.write(unit):
            raise InviteNotOpen

    async def _check_quota(self, tx: Tx, by: str) -> None:
        """Refuse one guest more to whom has invited as many as one account may."""
        most = self._quotas.limits.guests_per_account
        if most:
            invited = await queries_guests.count_by(tx, by, most)
            self._quotas.check("guests_per_account", invited + 1, most)

    def _check_free(self, guest: str) -> None:
        """Refuse a guest the name of a backend, whether or not the room has it."""
        if self._accounts.reserved.belongs_elsewhere(guest):
            raise NameRefused(f"The name {guest} is reserved.")

    async def exchange(self, name: str, token: str) -> tuple[Guest, str, str]:
        """A guest, and the id and the text of its credential, for its invitation, once.

        Void invitations and void rooms look alike.
        """
        hashed, secret, now = (
            guests.hash_invitation(token),
            guests.new_credential(),
            int(self._clock.now()),
        )
        check_name(name)

        async def unit(tx: Tx) -> tuple[Guest, str]:
            record = await queries.room_by_name(tx, name)
            if record is None:
                raise InvitationInvalid(guests.VOID)
            return await guests.do_exchange(tx, record.id, hashed, secret.hash, now)

        return *await self._store.write(unit), secret.text


async def _room(tx: Tx, name: str) -> RoomRecord:
    record = await queries.room_by_name(tx, name)
    if record is None:
        raise RoomNotFound("There is no such room.")
    return record
