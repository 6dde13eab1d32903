"""Other people: search, contacts, blocks and invites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Struct, UnsetType

from folkmoot.accounts.model import AccountType, BlockedPage, ContactPage
from folkmoot.core import errors as e
from folkmoot.operations.rate_limits import MISSED, by_user, every_try, when_done
from folkmoot.operations.row import (
    Arguments,
    Cursor,
    Operation,
    OperationLimit,
    PageLimit,
    Route,
    describe,
    view_of,
)

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


class People(Arguments, frozen=True, kw_only=True):
    """A page of a list of people, which goes by handle."""

    limit: PageLimit = 100
    cursor: Cursor | None = None


async def contacts(call: Call[People]) -> ContactPage:
    """The caller's contacts."""
    given = call.arguments
    return await call.services.accounts.contacts(call.account, given.limit, given.cursor)


class AddContact(Arguments, frozen=True, kw_only=True):
    """The handle to add, and a nickname."""

    handle: Annotated[str, describe("Handle of the user to add as a contact")]
    nickname: Annotated[str, describe("Optional nickname for this contact")] = ""


class ContactAdded(Struct, frozen=True):
    """The new contact."""

    contact: str
    nickname: str
    message: str


async def add_contact(call: Call[AddContact]) -> ContactAdded:
    """Add a contact, or give them another nickname."""
    given = call.arguments
    added = await call.services.accounts.add_contact(call.account, given.handle, given.nickname)
    return ContactAdded(added.handle, given.nickname, "Contact added.")


class RemoveContact(Arguments, frozen=True, kw_only=True):
    """Whom to remove."""

    handle: Annotated[str, describe("Handle of the contact to remove")]


class ContactRemoved(Struct, frozen=True):
    """The removed contact."""

    contact: str
    message: str


async def remove_contact(call: Call[RemoveContact]) -> ContactRemoved:
    contact = await call.services.accounts.remove_contact(call.account, call.arguments.handle)
    return ContactRemoved(contact.handle, "Contact removed.")


class LookUpUser(Arguments, frozen=True, kw_only=True):
    """The handle to look up."""

    handle: Annotated[str, describe("Handle to look up")]


class PublicProfile(Struct, frozen=True):
    """A profile as others see it."""

    handle: str
    display_name: str
    bio: str
    status: str
    account_type: AccountType
    public_key: str
    client_public_key: str | None
    payload_formats: list[str]


async def lookup(call: Call[LookUpUser]) -> PublicProfile:
    """The public profile of someone whom the caller may see."""
    found = await call.services.accounts.lookup(call.account, call.arguments.handle)
    return view_of(PublicProfile, found, payload_formats=found.payload_formats.split())


class SearchUsers(Arguments, frozen=True, kw_only=True):
    """The text to search for."""

    query: Annotated[str, describe("Search query (matches against handle and display_name)")]


class FoundUser(Struct, frozen=True):
    """One result of a search; of a `contacts_only` profile only the names."""

    handle: str
    display_name: str
    bio: str | UnsetType = UNSET
    account_type: AccountType | UnsetType = UNSET


class FoundUsers(Struct, frozen=True):
    """The results of a search."""

    results: list[FoundUser]


async def search_users(call: Call[SearchUsers]) -> FoundUsers:
    """People whose handle or name contains the words."""
    found = await call.services.accounts.search(call.account, call.arguments.query)
    return FoundUsers(
        [
            FoundUser(
                user.handle,
                user.display_name,
                UNSET if user.bio is None else user.bio,
                UNSET if user.account_type is None else user.account_type,
            )
            for user in found
        ]
    )


class BlockUser(Arguments, frozen=True, kw_only=True):
    """Whom to block, or no longer."""

    handle: Annotated[str, describe("Handle of the user to block or unblock")]
    action: Annotated[
        Literal["block", "unblock"], describe("Whether to block or unblock. Defaults to block.")
    ] = "block"


class Blocked(Struct, frozen=True):
    """A handle, and whether it was blocked or unblocked."""

    handle: str
    action: Literal["block", "unblock"]
    message: str


async def block(call: Call[BlockUser]) -> Blocked:
    """Block someone from writing to you, or unblock them."""
    given, accounts = call.arguments, call.services.accounts
    act = accounts.block if given.action == "block" else accounts.unblock
    other = await act(call.account, given.handle)
    return Blocked(other.handle, given.action, f"User {given.action}ed.")


async def blocks(call: Call[People]) -> BlockedPage:
    """The handles the caller blocks."""
    given = call.arguments
    return await call.services.accounts.blocked(call.account, given.limit, given.cursor)


class InviteUser(Arguments, frozen=True, kw_only=True):
    """The first message to the invited person."""

    message: (
        Annotated[str, describe("Optional message to deliver when the invitee registers")] | None
    ) = None


class InviteMade(Struct, frozen=True):
    """An invite, and where it leads."""

    invite_code: str
    invite_url: str
    message: str


async def invite(call: Call[InviteUser]) -> InviteMade:
    """A code with which someone can register."""
    code = await call.services.accounts.create_invite(call.account, call.arguments.message)
    return InviteMade(
        code,
        f"{call.caller.base_url}/invite/{code}",
        "Share this link with someone to invite them to MMP.",
    )


PEOPLE = (
    Operation(
        name="msg/contacts",
        description="List your contacts with their handles, display names, and nicknames.",
        handler=contacts,
        scope="contacts",
        others_words=("contacts",),
        routes=(Route("GET", "/v1/contacts", "listContacts", "List your contacts"),),
        commands=("mail contacts list",),
    ),
    Operation(
        name="msg/add_contact",
        description="Add a user to your contacts list.",
        handler=add_contact,
        scope="contacts",
        limits=(MISSED,),
        errors=(e.UserNotFound, e.CannotAddSelf),
        routes=(
            Route(
                "PUT",
                "/v1/contacts/{handle}",
                "addContact",
                "Add a contact",
                example={"nickname": "Bobby"},
            ),
        ),
        commands=("mail contacts add",),
    ),
    Operation(
        name="msg/remove_contact",
        description="Remove a user from your contacts list.",
        handler=remove_contact,
        scope="contacts",
        limits=(MISSED,),
        errors=(e.UserNotFound, e.ContactNotFound),
        routes=(Route("DELETE", "/v1/contacts/{handle}", "removeContact", "Remove a contact"),),
        commands=("mail contacts remove",),
    ),
    Operation(
        name="msg/lookup",
        description="Look up a user's public profile by handle.",
        handler=lookup,
        scope="contacts",
        others_words=("display_name", "bio", "status"),
        limits=(MISSED,),
        errors=(e.UserNotFound,),
        routes=(Route("GET", "/v1/people/{handle}", "lookUp", "Look someone up"),),
        commands=("mail lookup",),
    ),
    Operation(
        name="msg/search_users",
        description="Search for users by handle or display name.",
        handler=search_users,
        scope="contacts",
        others_words=("results",),
        limits=(OperationLimit("search", by_user, every_try),),
        routes=(Route("GET", "/v1/people", "searchPeople", "Search for people"),),
        commands=("mail find",),
    ),
    Operation(
        name="msg/block",
        description="Block or unblock a user. Blocked users cannot send you messages.",
        handler=block,
        scope="contacts",
        limits=(MISSED,),
        errors=(e.UserNotFound, e.CannotBlockSelf),
        routes=(
            Route(
                "PUT", "/v1/blocks/{handle}", "block", "Block someone", fixed={"action": "block"}
            ),
            Route(
                "DELETE",
                "/v1/blocks/{handle}",
                "unblock",
                "Unblock someone",
                fixed={"action": "unblock"},
            ),
        ),
        commands=("mail block", "mail unblock"),
    ),
    Operation(
        name="msg/blocks",
        description="List the users you have blocked, by handle.",
        handler=blocks,
        scope="contacts",
        routes=(Route("GET", "/v1/blocks", "listBlocks", "List whom you block"),),
        commands=("mail blocked",),
    ),
    Operation(
        name="msg/invite",
        description="Generate an invite link for someone who doesn't have MMP. Optionally include "
        "a message that will be delivered when they register.",
        handler=invite,
        secret=("invite_code",),
        scope="contacts",
        reaches_others=True,
        limits=(OperationLimit("invite", by_user, when_done),),
        errors=(e.RegistrationClosed,),
        routes=(
            Route(
                "POST",
                "/v1/invites",
                "createInvite",
                "Invite someone to register",
                status=201,
                example={"message": "Come aboard!"},
            ),
        ),
        commands=("invite",),
    ),
)
