"""Invitations: of accounts, and of guests, who have no account and come into one room.

An owner has an *invitation* made for a name. Whoever shows it first gets a *credential* for it,
which is good in that room alone until the guest is put out. Both are told once and kept as hashes.
"""

from __future__ import annotations

import re
import secrets
import uuid
from typing import Final, NamedTuple

from folkmoot.accounts import Accounts, Credential, queries_credentials
from folkmoot.accounts.credentials import hash_secret
from folkmoot.accounts.handles import OFFICIAL
from folkmoot.core import errors as e
from folkmoot.core.capability import Source
from folkmoot.core.entity import Entity
from folkmoot.core.ports import Clock, Store, Tx
from folkmoot.names.grammar import RESERVED_NAMES
from folkmoot.quotas import Quotas
from folkmoot.rooms import queries, queries_guests, queries_members
from folkmoot.rooms.limits import INVITATION_SECONDS, MAX_GUESTS
from folkmoot.rooms.machine import Invite
from folkmoot.rooms.machine.members import check_name, skeleton
from folkmoot.rooms.machine.wire import moment
from folkmoot.rooms.model import Guest, Invitation, OpenInvitation, RoomId, RoomRecord
from folkmoot.rooms.spec import check_room_name

INVITATION: Final = re.compile(r"gi_[0-9a-f]{64}")
CREDENTIAL: Final = re.compile(r"gk_[0-9a-f]{64}")
SECRET_BYTES: Final = 32


GUEST_LIMIT: Final = "guest"
"""The limit that wrong invitations count towards, by address."""

VOID: Final = "The invitation was used before, has expired, or is not for here."

_RESERVED: Final = frozenset(skeleton(name) for name in RESERVED_NAMES | OFFICIAL)


class GuestSecret(NamedTuple):
    """An invitation or a credential, and the hash that is all that is kept of it."""

    text: str
    hash: str

    def __repr__(self) -> str:
        return "<GuestSecret>"


def new_invitation() -> GuestSecret:
    return _secret("gi")


def new_credential() -> GuestSecret:
    return _secret("gk")


def _secret(prefix: str) -> GuestSecret:
    text = f"{prefix}_{secrets.token_hex(SECRET_BYTES)}"
    return GuestSecret(text, hash_secret(text))


def hash_invitation(text: str) -> str | None:
    """The hash of an invitation; nothing where the text is not one."""
    return hash_secret(text) if INVITATION.fullmatch(text) else None


def hash_credential(text: str) -> str | None:
    """The hash of a credential; nothing where the text is not one."""
    return hash_secret(text) if CREDENTIAL.fullmatch(text) else None


def new_guest(
    room_id: RoomId,
    name: str,
    by: str,
    capabilities: tuple[Source, ...] = (),
    invite_id: str = "",
) -> Guest:
    id_ = f"{queries_guests.PREFIX}{uuid.uuid4()}"
    return Guest(id_, room_id, name, by, capabilities, invite_id)


async def do_invite(tx: Tx, guest: Guest, invitation_hash: str, now: int) -> int:
    """Store an invitation, and answer until when it is good.

    It takes the place of one that its maker made for the same name and nobody used.
    """
    await queries.lock_room(tx, guest.room_id)
    await check_guest_name(tx, guest.room_id, guest.name, now)
    likeness, expires_at = skeleton(guest.name), now + INVITATION_SECONDS
    await queries_guests.remove_waiting(tx, guest.room_id, likeness, guest.invited_by, now)
    if await queries_guests.count_in(tx, guest.room_id, MAX_GUESTS) >= MAX_GUESTS:
        raise e.TooManyOpen("The room cannot have more guests.")
    stored = await queries_guests.insert(
        tx,
        guest,
        likeness,
        invitation_hash=invitation_hash,
        now=now,
        expires_at=expires_at,
    )
    if not stored:
        raise e.NameRefused(
            f"The name {guest.name} could be mistaken for another guest of the room."
        )
    return expires_at


async def check_guest_name(tx: Tx, room_id: RoomId, name: str, now: int) -> None:
    """Refuse the name of a guest that is someone's handle, or like one of the room or the hub."""
    check_name(name)
    likeness = skeleton(name)
    if likeness in _RESERVED:
        raise e.NameRefused(f"The name {name} is reserved.")
    if await queries_guests.is_handle(tx, name, now):
        raise e.NameRefused(f"The name {name} is the handle of an account.")
    others = (
        *await queries_members.handles_in(tx, room_id),
        *await queries.backends_of_room(tx, room_id),
    )
    if any(skeleton(other) == likeness for other in others):
        raise e.NameRefused(f"The name {name} could be mistaken for another participant.")


async def do_exchange(
    tx: Tx,
    room_id: RoomId,
    invitation_hash: str | None,
    credential_hash: str,
    now: int,
    read_seq: int = 0,
) -> tuple[Guest, str]:
    """Exchange an invitation for a credential, once; the guest, and the credential's id."""
    guest = None
    if invitation_hash is not None:
        guest = await queries_guests.exchange(tx, room_id, invitation_hash, now, read_seq)
    if guest is None:
        raise e.InvitationInvalid(VOID)
    credential = Credential(queries_credentials.new_id(), "guest", None, now, guest_id=guest.id)
    await queries_credentials.insert(tx, credential, credential_hash)
    return guest, credential.id


class Invited(NamedTuple):
    """Someone may come into a room now; a guest has no account."""

    room_id: RoomId
    account: str | None
    invitation: Invitation


class Inviter(Entity):
    """Makes invitations and takes them back in exchange for credentials."""

    store: Store
    clock: Clock
    accounts: Accounts
    quotas: Quotas

    async def check(self, room_id: RoomId, by: str, handle: str | None, guest: str | None) -> None:
        """Refuse an invitation that could not be made, before anyone hears of it."""
        now = int(self.clock.now())
        self.quotas.check_disk()

        async def query(tx: Tx) -> None:
            if guest is None:
                await self.accounts.reachable(tx, by, handle or "")
            else:
                self._check_free(guest)
                await self._check_quota(tx, by)
                await check_guest_name(tx, room_id, guest, now)

        await self.store.read(query)

    async def invite(self, name: str, asked: Invite) -> Invited:
        """Do what an inviter asked for; whoever was put out before may come again."""
        handle, guest, by = asked.handle, asked.guest, asked.by.account_id
        if guest is not None:
            return await self._invite_guest(name, guest, asked)

        async def unit(tx: Tx) -> Invited:
            record = await _room(tx, name)
            account = await self.accounts.reachable(tx, by, handle or "")
            await queries_members.invite(tx, record.id, account.id, banned=True)
            return Invited(record.id, account.id, Invitation(name, handle=account.handle))

        return await self.store.write(unit)

    async def _invite_guest(self, name: str, guest: str, asked: Invite) -> Invited:
        secret, now = new_invitation(), int(self.clock.now())
        by = asked.by.account_id

        async def unit(tx: Tx) -> Invited:
            self._check_free(guest)
            await queries_members.lock_account(tx, by)
            await self._check_quota(tx, by)
            record = await _room(tx, name)
            someone = new_guest(record.id, guest, by, asked.capabilities, asked.id)
            until = await do_invite(tx, someone, secret.hash, now)
            invitation = Invitation(name, guest=guest, token=secret.text, expires_at=moment(until))
            return Invited(record.id, None, invitation)

        return await self.store.write(unit)

    async def open(self, room_id: RoomId, by: str | None) -> list[OpenInvitation]:
        """Whom a room waits for; with `by`, the guests alone whom that account invited."""
        now = int(self.clock.now())

        async def query(tx: Tx) -> list[OpenInvitation]:
            handles = [] if by else await queries_members.invited_to(tx, room_id, MAX_GUESTS)
            waiting = await queries_guests.waiting_in(tx, room_id, by, now, MAX_GUESTS)
            return [
                *(OpenInvitation(handle=handle) for handle in handles),
                *(
                    OpenInvitation(guest=name, invited_by=inviter, expires_at=moment(until))
                    for name, inviter, until in waiting
                ),
            ]

        return await self.store.read(query)

    async def withdraw(self, room_id: RoomId, invited: str, by: str | None) -> None:
        """Withdraw an unused invitation; with `by`, only a guest's that this account invited."""

        async def unit(tx: Tx) -> bool:
            if await queries_guests.remove_invitation(tx, room_id, invited, by):
                return True
            return by is None and await queries_members.remove_invited(tx, room_id, invited)

        if not await self.store.write(unit):
            raise e.InviteNotOpen

    async def _check_quota(self, tx: Tx, by: str) -> None:
        """Refuse a guest beyond the inviter's quota."""
        most = self.quotas.limits.guests_per_account
        if most:
            invited = await queries_guests.count_by(tx, by, most)
            self.quotas.check("guests_per_account", invited + 1, most)

    def _check_free(self, guest: str) -> None:
        """Refuse a guest the name of a backend, whether or not the room has it."""
        if self.accounts.reserved.belongs_elsewhere(guest):
            raise e.NameRefused(f"The name {guest} is reserved.")

    async def exchange(self, name: str, token: str) -> tuple[Guest, str, str]:
        """A guest, and the id and the text of its credential, for its invitation, once.

        Void invitations and void rooms look alike.
        """
        hashed, secret, now = (
            hash_invitation(token),
            new_credential(),
            int(self.clock.now()),
        )
        check_room_name(name)

        async def unit(tx: Tx) -> tuple[Guest, str]:
            record = await queries.room_by_name(tx, name)
            if record is None:
                raise e.InvitationInvalid(VOID)
            return await do_exchange(tx, record.id, hashed, secret.hash, now, record.last_seq)

        return *await self.store.write(unit), secret.text


async def _room(tx: Tx, name: str) -> RoomRecord:
    record = await queries.room_by_name(tx, name)
    if record is None:
        raise e.RoomNotFound("There is no such room.")
    return record
