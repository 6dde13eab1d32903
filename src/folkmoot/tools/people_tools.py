"""Other people: finding them, keeping them, keeping them away, inviting them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from folkmoot.core.errors import FolkmootError
from folkmoot.tools.account_tools import MISSED, by_user, when_done
from folkmoot.tools.model import Arguments, Call, Payload, Rate, Tool
from folkmoot.tools.schemas import CURSOR, LIMIT, choice, obj, text

PageLimit = Annotated[int, Meta(ge=1, le=100)]


class Contacts(Arguments, frozen=True, kw_only=True):
    """A page of a list of people, which goes by handle."""

    limit: PageLimit = 100
    cursor: str | None = None


async def contacts(call: Call[Contacts]) -> Payload:
    """The caller's contacts."""
    given = call.arguments
    page = await call.services.accounts.contacts(call.account, given.limit, given.cursor)
    listed = [
        {
            "handle": contact.handle,
            "display_name": contact.display_name,
            "nickname": contact.nickname,
            "added_at": contact.added_at,
        }
        for contact in page.contacts
    ]
    return {"contacts": listed, "next_cursor": page.next_cursor}


class AddContact(Arguments, frozen=True, kw_only=True):
    """Whom to add, and how to call them."""

    handle: str
    nickname: str = ""


async def add_contact(call: Call[AddContact]) -> Payload:
    """Add a contact, or give them another nickname."""
    given = call.arguments
    added = await call.services.accounts.add_contact(call.account, given.handle, given.nickname)
    return {
        "contact": added.handle,
        "nickname": given.nickname,
        "message": "Contact added.",
    }


class Handle(Arguments, frozen=True, kw_only=True):
    """Someone."""

    handle: str


async def remove_contact(call: Call[Handle]) -> Payload:
    """Remove a contact."""
    contact = await call.services.accounts.remove_contact(call.account, call.arguments.handle)
    return {"contact": contact.handle, "message": "Contact removed."}


async def lookup(call: Call[Handle]) -> Payload:
    """The public profile of someone whom the caller may see."""
    found = await call.services.accounts.lookup(call.account, call.arguments.handle)
    return {
        "handle": found.handle,
        "display_name": found.display_name,
        "bio": found.bio,
        "status": found.status,
        "account_type": found.account_type,
        "public_key": found.public_key,
        "client_public_key": found.client_public_key,
        "payload_formats": found.payload_formats.split(),
    }


class SearchUsers(Arguments, frozen=True, kw_only=True):
    """What to look for."""

    query: str


async def search_users(call: Call[SearchUsers]) -> Payload:
    """People whose handle or name contains the words."""
    found = await call.services.accounts.search(call.account, call.arguments.query)
    results = []
    for user in found:
        result = {"handle": user.handle, "display_name": user.display_name}
        if user.bio is not None:
            result["bio"] = user.bio
        if user.account_type is not None:
            result["account_type"] = user.account_type
        results.append(result)
    return {"results": results}


class Block(Arguments, frozen=True, kw_only=True):
    """Whom to block, or no longer."""

    handle: str
    action: Literal["block", "unblock"] = "block"


async def block(call: Call[Block]) -> Payload:
    """Keep someone from writing, or let them again."""
    given, accounts = call.arguments, call.services.accounts
    act = accounts.block if given.action == "block" else accounts.unblock
    other = await act(call.account, given.handle)
    return {
        "handle": other.handle,
        "action": given.action,
        "message": f"User {given.action}ed.",
    }


async def blocks(call: Call[Contacts]) -> Payload:
    """Whom the caller blocks."""
    given = call.arguments
    return await call.services.accounts.blocked(call.account, given.limit, given.cursor)


class Invite(Arguments, frozen=True, kw_only=True):
    """What the invited one is to read first."""

    message: str | None = None


async def invite(call: Call[Invite]) -> Payload:
    """A code with which someone can register."""
    code = await call.services.accounts.create_invite(call.account, call.arguments.message)
    return {
        "invite_code": code,
        "invite_url": f"{call.caller.base_url}/invite/{code}",
        "message": "Share this link with someone to invite them to MMP.",
    }


def every_try(_: FolkmootError | None) -> bool:
    """Count whatever comes of it."""
    return True


PEOPLE_TOOLS = (
    Tool(
        name="msg/contacts",
        description="List your contacts with their handles, display names, and nicknames.",
        schema=obj({"limit": LIMIT, "cursor": CURSOR}),
        arguments=Contacts,
        handler=contacts,
        kind="reads",
        others=("contacts",),
    ),
    Tool(
        name="msg/add_contact",
        description="Add a user to your contacts list.",
        schema=obj(
            {
                "handle": text("Handle of the user to add as a contact"),
                "nickname": text("Optional nickname for this contact"),
            },
            ("handle",),
        ),
        arguments=AddContact,
        handler=add_contact,
        rates=(MISSED,),
    ),
    Tool(
        name="msg/remove_contact",
        description="Remove a user from your contacts list.",
        schema=obj({"handle": text("Handle of the contact to remove")}, ("handle",)),
        arguments=Handle,
        handler=remove_contact,
        rates=(MISSED,),
        kind="destroys",
    ),
    Tool(
        name="msg/lookup",
        description="Look up a user's public profile by handle.",
        schema=obj({"handle": text("Handle to look up")}, ("handle",)),
        arguments=Handle,
        handler=lookup,
        rates=(MISSED,),
        kind="reads",
        others=("display_name", "bio", "status"),
    ),
    Tool(
        name="msg/search_users",
        description="Search for users by handle or display name.",
        schema=obj(
            {"query": text("Search query (matches against handle and display_name)")}, ("query",)
        ),
        arguments=SearchUsers,
        handler=search_users,
        rates=(Rate("search", by_user, every_try),),
        kind="reads",
        others=("results",),
    ),
    Tool(
        name="msg/block",
        description="Block or unblock a user. Blocked users cannot send you messages.",
        schema=obj(
            {
                "handle": text("Handle of the user to block or unblock"),
                "action": choice(
                    "block",
                    "unblock",
                    description="Whether to block or unblock. Defaults to block.",
                ),
            },
            ("handle",),
        ),
        arguments=Block,
        handler=block,
        rates=(MISSED,),
    ),
    Tool(
        name="msg/blocks",
        description="List the users you have blocked, by handle.",
        schema=obj({"limit": LIMIT, "cursor": CURSOR}),
        arguments=Contacts,
        handler=blocks,
        kind="reads",
    ),
    Tool(
        name="msg/invite",
        description="Generate an invite link for someone who doesn't have MMP. Optionally include "
        "a message that will be delivered when they register.",
        schema=obj({"message": text("Optional message to deliver when the invitee registers")}),
        arguments=Invite,
        handler=invite,
        rates=(Rate("invite", by_user, when_done),),
        kind="adds",
        open_world=True,
    ),
)
