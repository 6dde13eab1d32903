"""Who sees whom, who knows whom, and who may write to whom."""

from __future__ import annotations

from msgspec.structs import replace

from folkmoot.accounts import queries
from folkmoot.accounts import queries_people as people
from folkmoot.accounts.limits import MAX_PEOPLE_PAGE
from folkmoot.accounts.model import (
    Account,
    Contact,
)
from folkmoot.core import errors as e
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


def seal_nickname(sealer: Sealer, user_id: str, contact_id: str, nickname: str) -> str:
    """A nickname as it is stored, bound to one contact of one user; none is stored as none."""
    if not nickname:
        return ""
    return sealer.seal(NICKNAME, f"{user_id} {contact_id}", nickname.encode())


def open_nickname(sealer: Sealer, user_id: str, contact_id: str, contact: Contact) -> Contact:
    """A contact with its nickname in plain text."""
    if not contact.nickname:
        return contact
    plain = sealer.open(NICKNAME, f"{user_id} {contact_id}", contact.nickname)
    return replace(contact, nickname=plain.decode())


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


def cursor_after(handle: str | None) -> str | None:
    """The cursor of the page that begins after a handle, if there is one."""
    return None if handle is None else f"{AFTER}{handle}"
