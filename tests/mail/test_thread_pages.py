"""Lists of threads that are kept in memory: never another answer than the store would give."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.mail import STATES
from folkmoot.mail.limits import MAX_LISTS_OF_READER
from folkmoot.mail.thread_pages import ThreadPages
from tests.mail.support import PostOffice, forgetful
from tests.stores import ON_POSTGRES

ACTIONS = 30 if ON_POSTGRES else 120


async def act(office: PostOffice, chance: random.Random, people: list[Account]) -> None:
    """Do one of the things that change what somebody's list shows."""
    mail, accounts = office.mail, office.accounts
    one, other = chance.sample(people, 2)
    threads = (await mail.threads(one)).threads
    thread_id = chance.choice(threads).id if threads else "none"
    messages = (await mail.inbox(one, peek=True, limit=5)).messages
    message_id = chance.choice(messages).id if messages else "none"
    office.clock.seconds += chance.choice((0, 1, 30))
    number = chance.randrange(100_000)
    match chance.randrange(15):
        case 0 | 1 | 2:
            await mail.send(one, other.handle, body=f"number {number}")
        case 3:
            await mail.reply(one, message_id, body=f"answer {number}")
        case 4 | 5:
            await office.read(one, limit=chance.randrange(1, 5))
        case 6:
            await mail.mark_read(one, thread_id, chance.choice((None, [message_id])))
        case 7 | 8:
            await mail.set_state(one, thread_id, chance.choice(STATES))
        case 9 | 10:
            await mail.delete_message(one, message_id)
        case 11:
            await mail.delete_thread(one, thread_id)
        case 12:
            await mail.expire(int(office.clock.now()) - 60, most=3)
        case 13:
            changed = await accounts.set_profile(one, display_name=f"Name {number}")
            people[people.index(one)] = changed
        case 14 if chance.random() < 0.5:
            code = await accounts.create_invite(one, f"welcome {number}")
            made = await accounts.register(f"guest_{number}", invite_code=code, also=mail.welcome)
            people.append(made.account)
        case _ if len(people) > 4:
            people.remove(one)
            await mail.delete_account(one)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.settings(synchronous="normal")
async def test_a_kept_list_is_what_the_store_has_whatever_was_done(office, seed):
    chance = random.Random(seed)
    people = await office.people("ada", "bob", "carol", "dave", "erin")
    stored = forgetful(office)
    for _ in range(ACTIONS):
        with suppress(e.FolkmootError):
            await act(office, chance, people)
        for reader in people:
            for options in ({}, {"limit": 2}, {"state": "starred"}):
                shown = (await office.mail.threads(reader, **options)).threads
                assert shown == (await stored.threads(reader, **options)).threads


@pytest.mark.skipif(ON_POSTGRES, reason="others may write to the database there")
async def test_a_list_is_read_once_until_something_in_it_changes(office):
    ada, bob, carol = await office.people("ada", "bob", "carol")
    await office.mail.send(ada, "bob", body="hello")
    first = await office.mail.threads(bob)
    reads = office.store.stats().reads
    assert await office.mail.threads(bob) is first
    await office.mail.send(carol, "ada", body="not for bob")
    assert await office.mail.threads(bob) is first
    assert office.store.stats().reads == reads
    await office.mail.send(carol, "bob", body="for bob")
    assert len((await office.mail.threads(bob)).threads) == 2


@pytest.mark.skipif(ON_POSTGRES, reason="others may write to the database there")
async def test_what_is_committed_for_a_caller_who_left_is_in_the_list(office):
    ada, bob = await office.people("ada", "bob")
    stored = forgetful(office)
    await office.mail.send(ada, "bob", body="one")
    for number in range(20):
        await office.mail.threads(bob)
        sending = asyncio.create_task(office.mail.send(ada, "bob", body=f"next {number}"))
        for _ in range(number % 4):
            await asyncio.sleep(0.0002)
        sending.cancel()
        await asyncio.wait([sending])
        await office.mail.mark_delivered(ada, (1,))  # Committed after what came before it.
        assert (await office.mail.threads(bob)).threads == (await stored.threads(bob)).threads


async def test_a_list_that_was_read_before_a_change_is_not_kept_after_it(office):
    ada, bob = await office.people("ada", "bob")
    pages = ThreadPages(office.bus)
    page = await office.mail.threads(ada)
    question = (ada.public_key, None, 0, 20)
    changes = pages.changes
    await office.mail.send(bob, "ada", body="meanwhile")
    pages.keep(ada, question, page, changes)
    assert pages.find(ada, question) is None


async def test_the_lists_in_memory_are_bounded(office):
    people = await office.people("ada", "bob", "carol")
    pages = ThreadPages(office.bus, most_readers=2)
    page = await office.mail.threads(people[0])
    for reader in people:
        for limit in range(1, MAX_LISTS_OF_READER + 2):
            pages.keep(reader, (reader.public_key, None, 0, limit), page, pages.changes)
    assert len(pages) == 2
    assert pages.find(people[0], (people[0].public_key, None, 0, 1)) is None
    last = people[2].public_key
    found = [pages.find(people[2], (last, None, 0, n)) for n in range(1, 4)]
    assert found.count(page) <= MAX_LISTS_OF_READER
