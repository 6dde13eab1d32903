"""Waiting for news."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.ports import Event
from folkmoot.mail import MailPage, subject_of_mailbox
from folkmoot.store import look_up
from tests.mail.support import PostOffice, refused, waiting

LONG = 55
SHORT = 0.05


async def bodies(task: asyncio.Task[MailPage]) -> list[str | None]:
    return [message.body for message in (await task).messages]


@asynccontextmanager
async def waiter(
    office: PostOffice, reader: Account, *, wait: float = LONG, thread_id: str | None = None
) -> AsyncIterator[asyncio.Task[MailPage]]:
    before = office.bus.subscriptions
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(office.mail.inbox(reader, wait=wait, thread_id=thread_id))
        await waiting(office, before + 1)
        yield task


@pytest.mark.requirement("tool.inbox.wait")
async def test_a_wait_ends_with_the_new_message_alone(office, alice, bob):
    await office.mail.send(alice, "bob", body="old")
    await office.read(bob)
    async with waiter(office, bob) as waiting_bob:
        await office.mail.send(alice, "bob", body="new")
        assert await bodies(waiting_bob) == ["new"]
    assert office.bus.subscriptions == 0


@pytest.mark.requirement("tool.inbox.wait")
async def test_a_wait_ends_empty_when_nothing_comes(office, alice, bob):
    await office.mail.send(alice, "bob", body="old")
    await office.read(bob)
    assert await office.mail.inbox(bob, wait=SHORT) == MailPage([])
    assert office.bus.subscriptions == 0


@pytest.mark.requirement("tool.inbox.wait")
async def test_what_came_before_and_is_unread_ends_a_wait_at_once(office, alice, bob, carol):
    await office.mail.send(alice, "bob", body="unread and old")
    newer = await office.write_some(carol, bob, 60)
    await office.mail.mark_read(bob, newer[0].thread_id)
    page = await office.mail.inbox(bob, wait=LONG)
    assert [message.body for message in page.messages] == ["unread and old"]
    await office.mail.mark_delivered(bob, page.seqs)
    assert await office.mail.inbox(bob, wait=SHORT) == MailPage([])


@pytest.mark.parametrize("wait", [-1, 55.5, 1e9, float("nan"), float("inf")])
async def test_nobody_waits_longer_than_fifty_five_seconds(office, bob, wait):
    with pytest.raises(e.ArgumentInvalid, match="wait must be from 0 to 55 seconds"):
        await office.mail.inbox(bob, wait=wait)


@pytest.mark.requirement("tool.inbox.vanished-client")
async def test_a_wait_that_is_cancelled_marks_nothing_and_leaves_nothing_behind(office, alice, bob):
    async with waiter(office, bob) as waiting_bob:
        waiting_bob.cancel()
    async with waiter(office, bob) as waiting_bob:
        await office.mail.send(alice, "bob", body="new")
        await bodies(waiting_bob)
    assert office.bus.subscriptions == 0
    assert (await office.mail.digest(bob)).total_unread == 1


@pytest.mark.requirement("thread.muted-no-notice")
async def test_a_muted_thread_ends_no_wait(office, alice, bob, carol):
    sent = await office.mail.send(alice, "bob", body="old")
    await office.mail.set_state(bob, sent.thread_id, "muted")
    assert await office.mail.inbox(bob, wait=SHORT) == MailPage([])
    async with (
        waiter(office, bob) as anywhere,
        waiter(office, bob, wait=SHORT * 4, thread_id=sent.thread_id) as there,
    ):
        await office.mail.send(alice, "bob", body="muted")
        assert await bodies(there) == []
        assert not anywhere.done()
        await office.mail.send(carol, "bob", body="loud")
        assert await bodies(anywhere) == ["loud", "muted", "old"]


async def test_a_wait_for_one_thread_is_not_ended_by_another(office, alice, bob, carol):
    sent = await office.mail.send(alice, "bob", body="old")
    await office.read(bob)
    async with waiter(office, bob, thread_id=sent.thread_id) as there:
        await office.mail.send(carol, "bob", body="elsewhere")
        await office.mail.set_state(bob, sent.thread_id, "starred")
        await office.mail.send(bob, "alice", body="my own")
        await office.mail.send(alice, "bob", body="here")
        assert await bodies(there) == ["here"]
    await refused(office.mail.inbox(bob, wait=LONG, thread_id="nowhere"), e.ThreadNotFound)


@pytest.mark.requirement("notice.own-only")
async def test_news_goes_to_the_recipient_alone_and_tells_no_content(office, alice, bob):
    everything = await office.bus.subscribe("mail.*")
    sent = await office.mail.send(alice, "bob", body="secret")
    await office.mail.set_state(bob, sent.thread_id, "muted")
    last = await office.mail.send(alice, "bob", body="secret", priority="urgent")
    thread = {"thread_id": sent.thread_id}
    heard = []
    async for event in everything:
        heard.append(event)
        if len(heard) == 3:
            await everything.close()
    assert {event.subject for event in heard} == {subject_of_mailbox(bob.id)}
    assert [event.data for event in heard] == [
        {"seq": 1, "id": sent.message_id, **thread, "muted": False, "urgent": False},
        {"change": "state", **thread},
        {"seq": 2, "id": last.message_id, **thread, "muted": True, "urgent": True},
    ]


@pytest.mark.requirement("notice.changes")
async def test_a_change_is_announced_to_everyone_whose_mailbox_it_changed(office, alice, bob):
    one, two, three, old = [
        await office.mail.send(alice, "bob", body=f"number {number}") for number in range(4)
    ]
    thread, mail = one.thread_id, office.mail
    page = await mail.inbox(bob, limit=1)
    changes = [
        (mail.mark_delivered(bob, page.seqs), {bob}),
        (mail.mark_delivered(bob, page.seqs), set()),
        (mail.mark_read(bob, thread, [one.message_id]), {bob}),
        (mail.mark_read(bob, thread, [one.message_id]), set()),
        (mail.mark_read(bob, thread), {bob}),
        (mail.mark_read(bob, thread), set()),
        (mail.set_state(bob, thread, "starred"), {bob}),
        (mail.set_state(bob, thread, "starred"), set()),
        (mail.delete_message(bob, two.message_id), {bob}),
        (mail.delete_message(alice, three.message_id), {alice}),
        (mail.expire(old.created_at + 1, most=1), {alice, bob}),
        (mail.delete_thread(bob, thread), {bob}),
        (mail.send(bob, "alice", body="yes"), {alice}),
        (mail.delete_account(bob), {alice}),
    ]
    for change, mailboxes in changes:
        everything = await office.bus.subscribe("mail.*")
        await change
        await office.bus.publish("mail.end", {})
        heard = set()
        async for event in everything:
            if event.subject == "mail.end":
                await everything.close()
            else:
                heard.add(event.subject)
        assert heard == {subject_of_mailbox(each.id) for each in mailboxes}


async def test_a_message_is_sent_and_waits_end_when_the_bus_is_closed(office, alice, bob):
    async with waiter(office, bob) as waiting_bob:
        await office.bus.close()
        assert await bodies(waiting_bob) == []
    await office.mail.send(alice, "bob", body="kept")
    assert await office.bodies(bob) == ["kept"]


async def test_whoever_missed_the_news_looks_again(office, alice, bob):
    async with waiter(office, bob) as waiting_bob:
        for _ in range(2_000):  # more than a subscription holds
            await office.bus.publish(
                subject_of_mailbox(bob.id), {"seq": 0, "thread_id": "", "muted": True}
            )
        await office.mail.send(alice, "bob", body="new")
        assert await bodies(waiting_bob) == ["new"]


async def test_many_wait_at_once_and_each_gets_their_own(office):
    alice, *others = await office.people("alice", *(f"user_{n}" for n in range(10)))
    async with asyncio.TaskGroup() as tasks:
        pages = {
            other.handle: tasks.create_task(office.mail.inbox(other, wait=LONG)) for other in others
        }
        await waiting(office, len(others))
        for other in others:
            await office.mail.send(alice, other.handle, body=f"to {other.handle}")
    for handle, page in pages.items():
        assert [message.body for message in page.result().messages] == [f"to {handle}"]


@pytest.mark.sqlite("reads its file")
async def test_what_is_published_is_committed_already(office, alice, bob):
    stored: list[Any] = []

    def looked_up(_: Event) -> None:
        count = "SELECT COUNT(*) FROM messages"
        stored.append(look_up(office.store.path, lambda tx: tx.fetch_one(count)))

    for subject in ("mail.*", "sent.*"):
        office.bus.listen(subject, looked_up)
    await office.mail.send(alice, "bob", body="news")
    # Published to the recipient, and to the sender's other devices.
    assert stored == [(1,), (1,)]
