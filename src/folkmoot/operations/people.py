"""Other people: search, contacts, blocks and invites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Struct, UnsetType

from folkmoot.accounts.model import AccountType, BlockedPage, ContactPage
from folkmoot.core import errors as e
from folkmoot.operations.declare import Topic, delete, get, post, put
from folkmoot.operations.rate_limits import MISSED, by_user, every_try, when_done
from folkmoot.operations.row import Cursor, OperationLimit, PageLimit, view_of

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

CONTACT = "/v1/contacts/{handle}"
BLOCK = "/v1/blocks/{handle}"
people = Topic(scope="contacts")


@people.reads(
    "msg/contacts",
    get("/v1/contacts", "listContacts", "List your contacts"),
    others_words=("contacts",),
    commands=("mail contacts list",),
)
async def contacts(
    call: Call, *, limit: PageLimit = 100, cursor: Cursor | None = None
) -> ContactPage:
    """List your contacts with their handles, display names, and nicknames."""
    return await call.services.accounts.contacts(call.account, limit, cursor)


class ContactAdded(Struct, frozen=True):
    """The new contact."""

    contact: str
    nickname: str
    message: str


@people.changes(
    "msg/add_contact",
    put(CONTACT, "addContact", "Add a contact", example={"nickname": "Bobby"}),
    limits=(MISSED,),
    errors=(e.UserNotFound, e.CannotAddSelf),
    commands=("mail contacts add",),
)
async def add_contact(
    call: Call,
    handle: Annotated[str, "Handle of the user to add as a contact"],
    *,
    nickname: Annotated[str, "Optional nickname for this contact"] = "",
) -> ContactAdded:
    """Add a user to your contacts list."""
    added = await call.services.accounts.add_contact(call.account, handle, nickname)
    return ContactAdded(added.handle, nickname, "Contact added.")


class ContactRemoved(Struct, frozen=True):
    """The removed contact."""

    contact: str
    message: str


@people.destroys(
    "msg/remove_contact",
    delete(CONTACT, "removeContact", "Remove a contact"),
    limits=(MISSED,),
    errors=(e.UserNotFound, e.ContactNotFound),
    commands=("mail contacts remove",),
)
async def remove_contact(
    call: Call, handle: Annotated[str, "Handle of the contact to remove"]
) -> ContactRemoved:
    """Remove a user from your contacts list."""
    contact = await call.services.accounts.remove_contact(call.account, handle)
    return ContactRemoved(contact.handle, "Contact removed.")


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


@people.reads(
    "msg/lookup",
    get("/v1/people/{handle}", "lookUp", "Look someone up"),
    others_words=("display_name", "bio", "status"),
    limits=(MISSED,),
    errors=(e.UserNotFound,),
    commands=("mail lookup",),
)
async def lookup(call: Call, handle: Annotated[str, "Handle to look up"]) -> PublicProfile:
    """Look up a user's public profile by handle."""
    found = await call.services.accounts.lookup(call.account, handle)
    return view_of(PublicProfile, found, payload_formats=found.payload_formats.split())


class FoundUser(Struct, frozen=True):
    """One result of a search; of a `contacts_only` profile only the names."""

    handle: str
    display_name: str
    bio: str | UnsetType = UNSET
    account_type: AccountType | UnsetType = UNSET


class FoundUsers(Struct, frozen=True):
    """The results of a search."""

    results: list[FoundUser]


@people.reads(
    "msg/search_users",
    get("/v1/people", "searchPeople", "Search for people"),
    others_words=("results",),
    limits=(OperationLimit("search", by_user, every_try),),
    commands=("mail find",),
)
async def search_users(
    call: Call,
    query: Annotated[str, "Search query (matches against handle and display_name)"],
) -> FoundUsers:
    """Search for users by handle or display name."""
    found = await call.services.accounts.search(call.account, query)
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


class Blocked(Struct, frozen=True):
    """A handle, and whether it was blocked or unblocked."""

    handle: str
    action: Literal["block", "unblock"]
    message: str


@people.changes(
    "msg/block",
    put(BLOCK, "block", "Block someone", fixed={"action": "block"}),
    delete(BLOCK, "unblock", "Unblock someone", fixed={"action": "unblock"}),
    limits=(MISSED,),
    errors=(e.UserNotFound, e.CannotBlockSelf),
    commands=("mail block", "mail unblock"),
)
async def block(
    call: Call,
    handle: Annotated[str, "Handle of the user to block or unblock"],
    *,
    action: Annotated[
        Literal["block", "unblock"], "Whether to block or unblock. Defaults to block."
    ] = "block",
) -> Blocked:
    """Block or unblock a user. Blocked users cannot send you messages."""
    accounts = call.services.accounts
    act = accounts.block if action == "block" else accounts.unblock
    other = await act(call.account, handle)
    return Blocked(other.handle, action, f"User {action}ed.")


@people.reads(
    "msg/blocks",
    get("/v1/blocks", "listBlocks", "List whom you block"),
    commands=("mail blocked",),
)
async def blocks(
    call: Call, *, limit: PageLimit = 100, cursor: Cursor | None = None
) -> BlockedPage:
    """List the users you have blocked, by handle."""
    return await call.services.accounts.blocked(call.account, limit, cursor)


class InviteMade(Struct, frozen=True):
    """An invite, and where it leads."""

    invite_code: str
    invite_url: str
    message: str


@people.adds(
    "msg/invite",
    post(
        "/v1/invites",
        "createInvite",
        "Invite someone to register",
        status=201,
        example={"message": "Come aboard!"},
    ),
    secret=("invite_code",),
    reaches_others=True,
    limits=(OperationLimit("invite", by_user, when_done),),
    errors=(e.RegistrationClosed,),
    commands=("invite",),
)
async def invite(
    call: Call,
    *,
    message: Annotated[str, "Optional message to deliver when the invitee registers"] | None = None,
) -> InviteMade:
    """Generate an invite link for someone who doesn't have MMP. Optionally include a message that
    will be delivered when they register.
    """
    code = await call.services.accounts.create_invite(call.account, message)
    return InviteMade(
        code,
        f"{call.caller.base_url}/invite/{code}",
        "Share this link with someone to invite them to MMP.",
    )
