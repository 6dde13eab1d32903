"""Guests: how someone without an account comes into one room, and how that ends.

An owner has an *invitation* made for a name. Whoever shows it first gets a *credential* for it,
which is good in that room alone until the guest is put out. Both are told once and kept as hashes.
"""

from __future__ import annotations

import re
import secrets
import uuid
from typing import Final, NamedTuple

from folkmoot.accounts import Credential, queries_credentials
from folkmoot.accounts.credentials import hash_secret
from folkmoot.accounts.handles import OFFICIAL, RESERVED
from folkmoot.core.capability import Source
from folkmoot.core.errors import InvitationInvalid, NameRefused, TooManyOpen
from folkmoot.core.ports import Tx
from folkmoot.rooms import queries, queries_backends, queries_guests
from folkmoot.rooms.machine.likeness import check_name, skeleton
from folkmoot.rooms.model import Guest, RoomId

INVITATION: Final = re.compile(r"gi_[0-9a-f]{64}")
CREDENTIAL: Final = re.compile(r"gk_[0-9a-f]{64}")
SECRET_BYTES: Final = 32

INVITATION_SECONDS: Final = 604_800
"""Seven days."""
MOST_GUESTS: Final = 1_000
"""Guests one room can have, those who have not come included."""

GUEST_LIMIT: Final = "guest"
"""The limit that wrong invitations count towards, by address."""

VOID: Final = "The invitation was used before, has expired, or is not for here."

_RESERVED: Final = frozenset(skeleton(name) for name in RESERVED | OFFICIAL)


class Secret(NamedTuple):
    """An invitation or a credential, and the hash that is all that is kept of it."""

    text: str
    hash: str

    def __repr__(self) -> str:
        return "<Secret>"


def new_invitation() -> Secret:
    """A fresh invitation."""
    return _secret("gi")


def new_credential() -> Secret:
    """A fresh credential."""
    return _secret("gk")


def _secret(prefix: str) -> Secret:
    text = f"{prefix}_{secrets.token_hex(SECRET_BYTES)}"
    return Secret(text, hash_secret(text))


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
    """Someone to be invited."""
    id_ = f"{queries_guests.PREFIX}{uuid.uuid4()}"
    return Guest(id_, room_id, name, by, capabilities, invite_id)


async def do_invite(tx: Tx, guest: Guest, invitation_hash: str, now: int) -> int:
    """Store an invitation, and answer until when it is good.

    It takes the place of one that its maker made for the same name and nobody used.
    """
    await check_guest_name(tx, guest.room_id, guest.name, now)
    likeness, expires_at = skeleton(guest.name), now + INVITATION_SECONDS
    await queries_guests.remove_waiting(tx, guest.room_id, likeness, guest.invited_by, now)
    if await queries_guests.count_in(tx, guest.room_id, MOST_GUESTS) >= MOST_GUESTS:
        raise TooManyOpen("The room cannot have more guests.")
    stored = await queries_guests.insert(
        tx,
        guest,
        likeness,
        invitation_hash=invitation_hash,
        now=now,
        expires_at=expires_at,
    )
    if not stored:
        raise NameRefused(f"The name {guest.name} could be mistaken for another guest of the room.")
    return expires_at


async def check_guest_name(tx: Tx, room_id: RoomId, name: str, now: int) -> None:
    """Refuse the name of a guest that is someone's handle, or like one of the room or the hub."""
    check_name(name)
    likeness = skeleton(name)
    if likeness in _RESERVED:
        raise NameRefused(f"The name {name} is reserved.")
    if await queries_guests.is_handle(tx, name, now):
        raise NameRefused(f"The name {name} is the handle of an account.")
    others = (
        *await queries.handles_in(tx, room_id),
        *await queries_backends.of_room(tx, room_id),
    )
    if any(skeleton(other) == likeness for other in others):
        raise NameRefused(f"The name {name} could be mistaken for another participant.")


async def do_exchange(
    tx: Tx, room_id: RoomId, invitation_hash: str | None, credential_hash: str, now: int
) -> tuple[Guest, str]:
    """Exchange an invitation for a credential, once; the guest, and the credential's id."""
    guest = None
    if invitation_hash is not None:
        guest = await queries_guests.exchange(tx, room_id, invitation_hash, now)
    if guest is None:
        raise InvitationInvalid(VOID)
    credential = Credential(
        id=queries_credentials.new_id(),
        kind="guest",
        account_id=None,
        guest_id=guest.id,
        parent_id=None,
        label="",
        created_at=now,
        used_at=None,
        expires_at=None,
    )
    await queries_credentials.insert(tx, credential, credential_hash)
    return guest, credential.id
