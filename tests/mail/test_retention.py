"""Mail that is too old goes by itself, where the hub was told so."""

from __future__ import annotations

import asyncio
import logging

import pytest

from folkmoot.mail import Retention
from folkmoot.mail.limits import MAX_OLD_REMOVED
from folkmoot.mail.retention import DAY
from tests.mail.support import NOON, StillClock, check_books, opened
from tests.mcp_harness import Person, meeting, until


@pytest.mark.requirement("delete.retention")
async def test_what_is_older_than_so_many_days_goes_and_nothing_else(office, alice, bob):
    for day in range(10):
        office.clock.seconds = NOON + day * DAY
        await office.mail.send(alice, "bob", body=f"day {day}")
    retention = Retention(office.mail, office.clock, keep_days=7)
    assert await retention.tidy() == 2
    assert (await office.bodies(bob))[-1] == "day 2"
    office.clock.seconds += 1
    assert await retention.tidy() == 1
    assert await retention.tidy() == 0
    assert len(await office.bodies(bob)) == 7
    await check_books(office)


@pytest.mark.requirement("delete.retention", "paging.clock-set-back")
async def test_messages_of_a_clock_that_was_ahead_keep_no_others_from_going(office, alice, bob):
    for days in (365, 0, 1):
        office.clock.seconds = NOON + days * DAY
        letters = [f"day {days}, {number}" for number in range(MAX_OLD_REMOVED + 1)]
        await asyncio.gather(*(office.mail.send(alice, "bob", body=it) for it in letters))
    retention = Retention(office.mail, office.clock, keep_days=1)
    assert await retention.tidy() == 0
    office.clock.seconds += 1
    assert await retention.tidy() == MAX_OLD_REMOVED + 1
    office.clock.seconds += DAY
    assert await retention.tidy() == MAX_OLD_REMOVED + 1
    left = await office.bodies(bob, limit=100)
    assert {text.split(",")[0] for text in left if text} == {"day 365"}
    await check_books(office)


@pytest.mark.requirement("delete.retention")
async def test_without_days_everything_is_kept(office, alice, bob):
    await office.write_some(alice, bob, 3)
    office.clock.seconds += 10**10
    retention = Retention(office.mail, office.clock, keep_days=0)
    assert await retention.tidy() == 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await retention.run()
    assert len(await office.bodies(bob)) == 3


async def test_much_of_it_goes_in_small_transactions(office, alice, bob):
    numbers = range(2 * MAX_OLD_REMOVED + 1)
    await asyncio.gather(*(office.mail.send(alice, "bob", body=f"{number}") for number in numbers))
    office.clock.seconds += 2 * DAY
    commits = office.store.stats().commits
    assert await Retention(office.mail, office.clock, keep_days=1).tidy() == 2 * MAX_OLD_REMOVED + 1
    assert office.store.stats().commits == commits + 3
    assert await office.rows("SELECT seq FROM messages") == []
    await check_books(office)


async def test_a_look_that_fails_is_told_and_the_next_one_is_made(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        async with opened(tmp_path) as office:
            alice, bob = await office.people("alice", "bob")
            await office.write_some(alice, bob, 1)
            office.clock.seconds += 2 * DAY
            await office.change("ALTER TABLE copies RENAME TO lost")
            retention = Retention(office.mail, office.clock, keep_days=1, pause_seconds=0)

            async def is_told() -> bool:
                return "Old mail was not removed" in caplog.text

            async def is_gone() -> bool:
                return not await office.rows("SELECT seq FROM messages")

            async with asyncio.TaskGroup() as tasks:
                looking = tasks.create_task(retention.run())
                await until(is_told)
                await office.change("ALTER TABLE lost RENAME TO copies")
                await until(is_gone)
                looking.cancel()


@pytest.mark.requirement("delete.retention")
async def test_a_hub_removes_old_mail_when_it_starts(tmp_path):
    clock = StillClock()

    async def has_none(bob: Person) -> bool:
        return not (await bob.call("msg/inbox", peek=True))["messages"]

    async with meeting(tmp_path, clock=clock) as there:
        alice, bob = await there.people("alice", "bob")
        await alice.call("msg/send", to="bob", body="Old")
    clock.seconds += 31 * DAY
    async with meeting(tmp_path, clock=clock) as there:
        again = await there.returning(bob.token)
        assert not await has_none(again)
    async with meeting(tmp_path, clock=clock, mail={"keep_days": 30}) as there:
        again = await there.returning(bob.token)
        await until(lambda: has_none(again))


async def test_the_longest_body_is_a_setting_for_messages_and_invites(tmp_path):
    async with meeting(tmp_path, mail={"max_body_characters": 10}) as there:
        alice, _ = await there.people("alice", "bob")
        await alice.call("msg/send", to="bob", body="\N{GRINNING FACE}" * 10)
        sentence = await alice.refused("msg/send", to="bob", body="x" * 11)
        assert sentence.startswith("body has 11 characters; at most 10 are allowed.")
        await alice.call("msg/invite", message="x" * 10)
        assert "10" in await alice.refused("msg/invite", message="x" * 11)
