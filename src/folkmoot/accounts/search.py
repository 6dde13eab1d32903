"""Who is found by a part of a handle or display name.

What it costs, by the number of accounts: a query of up to three characters reads one range of the
index and stops at fifty. A longer one reads the users of its rarest gram (among eight at most, each
counted to a hundred or more) and stops at fifty matches; it grows with that gram, never with all
accounts. So a name that many have is as short a read as a few characters of it.
Private users are not indexed: they are looked for among those who have the viewer in their
contacts, so that part grows with the number of those.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from folkmoot.accounts.limits import MAX_USERS_FOUND
from folkmoot.accounts.model import Account, FoundAccount
from folkmoot.accounts.profiles import TEXTS, is_plain
from folkmoot.accounts.queries import by_handle, fold, grams_in_query
from folkmoot.accounts.queries_people import (
    has_contact,
    not_private,
    private_who_know,
    rarest_first,
    with_grams,
)
from folkmoot.core.ports import Tx
from folkmoot.names.grammar import HERE, parse_handle

LONGEST_QUERY = TEXTS["display_name"].most


async def search(tx: Tx, viewer: Account, query: str) -> list[FoundAccount]:
    """At most fifty users whose handle or display name contains the query, best match first."""
    if len(query) > LONGEST_QUERY or not is_plain(query):
        return []  # no name is like that
    # "@alice" is how a handle is spoken of; whatever contains it contains "alice" too.
    wanted = fold(query.removeprefix("@")).removesuffix(HERE)
    found = {account.id: account for account in await acquainted(tx, viewer, wanted)}
    for account in await everyone(tx, wanted):
        found.setdefault(account.id, account)
    ranked = sorted(found.values(), key=lambda account: rank(account, wanted))
    return [await found_account(tx, account, viewer) for account in ranked[:MAX_USERS_FOUND]]


async def acquainted(tx: Tx, viewer: Account, wanted: str) -> list[Account]:
    """The matching private users who may be seen by the viewer, and the viewer."""

    async def page(after: str) -> list[Account]:
        return await private_who_know(tx, viewer.id, after=after, limit=MAX_USERS_FOUND)

    found = await matching(page, wanted)
    return [viewer, *found] if matches(viewer, wanted) else found


async def everyone(tx: Tx, wanted: str) -> list[Account]:
    """The matching users whom everyone may find; the one with that very handle is among them."""
    if not wanted:
        return await not_private(tx, limit=MAX_USERS_FOUND)
    handle = parse_handle(wanted)
    exact = await by_handle(tx, handle, now=NO_REDIRECTS) if handle else None
    first = [exact] if exact and exact.privacy != "private" else []
    grams = await rarest_first(tx, grams_in_query(wanted))

    async def page(after: str) -> list[Account]:
        return await with_grams(tx, grams, after=after, limit=MAX_USERS_FOUND)

    return first + await matching(page, wanted)


NO_REDIRECTS = 1 << 62
"""So late that no redirect is active any more."""


async def matching(page: Callable[[str], Awaitable[list[Account]]], wanted: str) -> list[Account]:
    """Up to fifty of the users, read by fifties, whose names contain what is wanted.

    Nearly all who have its grams match, so that more at once would be read for nothing.
    """
    found: list[Account] = []
    after = ""
    while True:
        candidates = await page(after)
        found += [account for account in candidates if matches(account, wanted)]
        if len(found) >= MAX_USERS_FOUND or len(candidates) < MAX_USERS_FOUND:
            return found[:MAX_USERS_FOUND]
        after = candidates[-1].id


def matches(account: Account, wanted: str) -> bool:
    """Whether handle or display name contains what is wanted."""
    return wanted in account.handle or wanted in fold(account.display_name)


def rank(account: Account, wanted: str) -> tuple[int, str]:
    """Sort key: the exact handle, then handles that begin with it, then the rest by handle."""
    handle = account.handle
    return (0 if handle == wanted else 1 if handle.startswith(wanted) else 2, handle)


async def found_account(tx: Tx, account: Account, viewer: Account) -> FoundAccount:
    """What a search tells of a user.

    Of one who is `contacts_only` that is the two names alone, unless the viewer is a contact of
    theirs: then it is what looking them up tells too.
    """
    if (
        account.privacy == "contacts_only"
        and account.id != viewer.id
        and not await has_contact(tx, account.id, viewer.id)
    ):
        return FoundAccount(account.handle, account.display_name, None, None)
    return FoundAccount(account.handle, account.display_name, account.bio, account.account_type)
