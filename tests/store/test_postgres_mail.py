"""Letters of several hubs on one database: sending is not isolated, so that any order must do."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from folkmoot.accounts import Account, Accounts
from folkmoot.core import errors as e
from folkmoot.mail import Mail
from folkmoot.store.postgres import PostgresStore
from folkmoot.vault import Vault
from tests import postgres
from tests.amounts import TIMES
from tests.mail.support import BOOKS, KEY, StillClock

pytestmark = postgres.NEEDED

PEOPLE = 4
ROUNDS = 40 * TIMES


class Office:
    """A hub's mail."""

    def __init__(self, store: PostgresStore, vault: Vault) -> None:
        clock = StillClock()
        self.accounts = Accounts(store, clock, vault, policy="open")
        self.mail = Mail(store, store.bus, clock, self.accounts, vault)


async def act(office: Office, who: Account, others: list[Account], chance: random.Random) -> None:
    """Do what people do with mail."""
    mail, other = office.mail, chance.choice(others)
    dice = chance.random()
    if dice < 0.6:
        await mail.send(who, other.handle, body="hello")
        return
    page = await mail.threads(who)
    if not page.threads:
        return
    thread = chance.choice(page.threads)
    if dice < 0.75:
        await mail.mark_read(who, thread.id)
    elif dice < 0.9:
        await mail.mark_delivered(who, (await mail.inbox(who)).seqs)
    else:
        await mail.delete_thread(who, thread.id)


@pytest.fixture
async def offices(stores: list[PostgresStore]) -> list[Office]:
    vault = await Vault.load(stores[0], KEY)
    return [Office(store, vault) for store in stores]


async def wrong_books(connection: asyncpg.Connection) -> dict[str, list[Any]]:
    kept = {name: sql for name, sql in BOOKS.items() if "sequence" not in name}
    found = {name: await connection.fetch(sql) for name, sql in kept.items()}
    return {name: rows for name, rows in found.items() if rows}


async def test_letters_reads_and_removals_of_two_hubs_leave_the_books_right(offices, connection):
    people = [
        (await offices[0].accounts.register(f"person_{number}")).account for number in range(PEOPLE)
    ]

    async def person(number: int) -> None:
        chance = random.Random(number)
        me = people[number % PEOPLE]
        others = [one for one in people if one is not me]
        for _ in range(ROUNDS):
            # Someone may have removed it meanwhile.
            with suppress(e.ThreadNotFound, e.AccessDenied):
                await act(offices[number % 2], me, others, chance)

    await asyncio.gather(*(person(number) for number in range(PEOPLE * 3)))
    assert await wrong_books(connection) == {}


@pytest.mark.parametrize("first", [True, False], ids=["the first", "later ones"])
async def test_letters_of_two_hubs_to_one_thread_have_places_in_the_order_of_their_commits(
    offices, connection, first
):
    ann, bob = [(await offices[0].accounts.register(handle)).account for handle in ("ann", "bob")]
    if not first:
        await offices[0].mail.send(ann, "bob", body="the first")
    seen: list[list[int]] = []
    done = asyncio.Event()

    async def look() -> None:
        """See what is committed, again and again: what comes later must have a later place."""
        while not done.is_set():
            rows = await connection.fetch("SELECT seq FROM messages ORDER BY seq")
            seen.append([row[0] for row in rows])

    looking = asyncio.create_task(look())
    letters = [
        office.mail.send(*pair, body=f"{number}")
        for number in range(20 * TIMES)
        for office, pair in zip(offices, ((ann, "bob"), (bob, "ann")), strict=True)
    ]
    await asyncio.gather(*letters)
    done.set()
    await looking
    assert len(letters) == 40 * TIMES
    assert all(later[: len(before)] == before for before, later in pairwise(seen))
    assert await wrong_books(connection) == {}
    assert await connection.fetchval("SELECT count(*) FROM threads") == 1
