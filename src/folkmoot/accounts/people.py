"""Who sees whom, who knows whom, and who may write to whom."""

from __future__ import annotations

from msgspec.structs import replace

from folkmoot.accounts import queries
from folkmoot.accounts import queries_people as people
from folkmoot.accounts.limits import MAX_PEOPLE_PAGE
from folkmoot.accounts.model import (
    Account,
    Belongings,
    BlockedPage,
    Contact,
    ContactPage,
)
from folkmoot.accounts.queries_invites import invites_of
from folkmoot.accounts.registration import access_own
from folkmoot.core import errors as e
from folkmoot.core.events import CONTACTS, subject
from folkmoot.core.ports import Sealer, Tx
from folkmoot.names.grammar import HANDLE, parse_handle

NICKNAME = "nickname"
"""What a nickname is sealed for; its row is its owner's id and the contact's."""
START = ""
"""Comes before every handle."""
AFTER = "after-"
"""Begins a cursor; no handle has a dash."""
EVERYONE = 2**62
"""A limit that no list reaches."""
NOBODY = ""


async def access_user(tx: Tx, handle: str, now: int) -> Account:
    """The user a handle leads to, whatever their privacy."""
    name = parse_handle(handle)
    account = await queries.by_handle(tx, name, now) if name else None
    if account is None:
        raise e.UserNotFound
    return account


async def access_recipient(tx: Tx, sender: Account, handle: str, now: int) -> Account:
    """The user a handle leads to, if they take mail from the sender; oneself is not refused."""
    name = parse_handle(handle)
    found = await people.recipient_by_handle(tx, sender.id, name, now) if name else None
    if found is None:
        raise e.UserNotFound
    recipient, takes_mail = found
    if not takes_mail and recipient.id != sender.id:
        raise e.CannotSend
    return recipient


async def access_profile(tx: Tx, viewer: Account, handle: str, now: int) -> Account:
    """The user a handle leads to, if the viewer may see the profile.

    The same questions are asked in every case, so that time does not tell who is hidden from who
    is not there.
    """
    account = await queries.by_handle(tx, parse_handle(handle) or NOBODY, now)
    target = account.id if account else NOBODY
    known = await people.has_contact(tx, target, viewer.id)
    if account is None or not (known or account.privacy == "public" or target == viewer.id):
        raise e.UserNotFound
    return account


class Nicknames:
    """Seals and opens nicknames; each seal is bound to one contact of one user."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def seal(self, user_id: str, contact_id: str, nickname: str) -> str:
        """A nickname as it is stored; none is stored as none."""
        if not nickname:
            return ""
        return self._sealer.seal(NICKNAME, f"{user_id} {contact_id}", nickname.encode())

    def open(self, user_id: str, contact_id: str, contact: Contact) -> Contact:
        """A contact with its nickname in plain text."""
        if not contact.nickname:
            return contact
        plain = self._sealer.open(NICKNAME, f"{user_id} {contact_id}", contact.nickname)
        return replace(contact, nickname=plain.decode())


async def do_add_contact(
    tx: Tx, user_id: str, handle: str, nickname: str, now: int, nicknames: Nicknames
) -> Account:
    """Add a user to one's contacts, or give a contact another nickname."""
    await access_own(tx, user_id)
    target = await access_user(tx, handle, now)
    if target.id == user_id:
        raise e.CannotAddSelf
    sealed = nicknames.seal(user_id, target.id, nickname)
    await people.put_contact(tx, user_id, target.id, sealed, now)
    publish_people(tx, user_id, target, "added")
    return target


async def do_remove_contact(tx: Tx, user_id: str, handle: str, now: int) -> Account:
    """Remove a user from one's contacts."""
    target = await access_user(tx, handle, now)
    if not await people.delete_contact(tx, user_id, target.id):
        raise e.ContactNotFound
    publish_people(tx, user_id, target, "removed")
    return target


async def do_block(tx: Tx, user_id: str, handle: str, now: int) -> Account:
    """Keep a user from writing to oneself."""
    await access_own(tx, user_id)
    target = await access_user(tx, handle, now)
    if target.id == user_id:
        raise e.CannotBlockSelf
    await people.put_block(tx, user_id, target.id)
    publish_people(tx, user_id, target, "blocked")
    return target


async def do_unblock(tx: Tx, user_id: str, handle: str, now: int) -> Account:
    """Let a user write to oneself again."""
    target = await access_user(tx, handle, now)
    await people.delete_block(tx, user_id, target.id)
    publish_people(tx, user_id, target, "unblocked")
    return target


def publish_people(tx: Tx, user_id: str, other: Account, change: str) -> None:
    """Within a unit: publish a change of a contact or block to the user's other devices."""
    tx.publish(subject(CONTACTS, user_id), {"handle": other.handle, "change": change})


def check_page(limit: int, cursor: str | None) -> str:
    """The handle after which a page of people begins, if limit and cursor are ones to go by."""
    if not 1 <= limit <= MAX_PEOPLE_PAGE:
        raise e.ArgumentInvalid(f"limit must be 1 to {MAX_PEOPLE_PAGE}.", field="limit")
    if cursor is None:
        return START
    handle = cursor.removeprefix(AFTER)
    if handle == cursor or HANDLE.fullmatch(handle) is None:
        raise e.ArgumentInvalid("cursor must be one that an earlier page gave.", field="cursor")
    return handle


def cursor_after(handle: str) -> str:
    """The cursor of a page that begins after a handle."""
    return f"{AFTER}{handle}"


async def contact_page(
    tx: Tx, user_id: str, after: str, limit: int, nicknames: Nicknames
) -> ContactPage:
    """One page of contacts."""
    found = await people.contacts_of(tx, user_id, after=after, limit=limit + 1)
    shown = [nicknames.open(user_id, *each) for each in found[:limit]]
    return ContactPage(shown, cursor_after(shown[-1].handle) if len(found) > limit else None)


async def blocked_page(tx: Tx, user_id: str, after: str, limit: int) -> BlockedPage:
    """One page of the accounts a user blocks."""
    found = await people.blocked_by(tx, user_id, after=after, limit=limit + 1)
    shown = found[:limit]
    return BlockedPage(shown, cursor_after(shown[-1]) if len(found) > limit else None)


async def belongings(tx: Tx, user_id: str, now: int, nicknames: Nicknames) -> Belongings | None:
    """Everything kept of an account but mail and secrets."""
    account = await queries.by_id(tx, user_id)
    if account is None:
        return None
    contacts = await people.contacts_of(tx, user_id, after=START, limit=EVERYONE)
    return Belongings(
        account=account,
        redirects=await queries.redirects_of(tx, user_id, now),
        contacts=[nicknames.open(user_id, *each) for each in contacts],
        blocked=await people.blocked_by(tx, user_id, after=START, limit=EVERYONE),
        invites=await invites_of(tx, user_id),
    )
