"""Deleting messages, threads and accounts, and mail that expires."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from folkmoot.core import errors as e
from folkmoot.mail import GONE_HANDLE
from tests.mail.support import NOON, PostOffice, check_books, refused

TABLES = ("messages", "copies", "threads", "members")


async def counts(office: PostOffice) -> dict[str, int]:
    return {it: (await office.rows(f"SELECT COUNT(*) FROM {it}"))[0][0] for it in TABLES}


@pytest.mark.requirement("delete.message")
async def test_a_deleted_message_stays_with_the_other_side(office, alice, bob):
    sent = await office.write_some(alice, bob, 3)
    await office.mail.delete_message(bob, sent[1].message_id)
    assert await office.bodies(bob) == ["number 2", "number 0"]
    everything = ["number 2", "number 1", "number 0"]
    assert await office.bodies(alice, thread_id=sent[0].thread_id) == everything
    assert (await office.mail.digest(bob)).total_unread == 2
    await check_books(office)


@pytest.mark.requirement("delete.message")
async def test_a_message_that_both_deleted_is_gone(office, alice, bob):
    sent = await office.write_some(alice, bob, 2)
    for reader in (alice, bob):
        await office.mail.delete_message(reader, sent[0].message_id)
    assert (await counts(office))["messages"] == 1
    await check_books(office)


async def test_the_preview_and_place_of_a_thread_follow_what_is_left(office, alice, bob, carol):
    await office.mail.send(alice, "bob", body="one")
    await office.mail.send(carol, "bob", body="between")
    office.clock.seconds += 5
    last = await office.mail.send(alice, "bob", body="two")
    await office.mail.delete_message(bob, last.message_id)
    threads = (await office.mail.threads(bob)).threads
    assert [thread.last_message_body for thread in threads] == ["between", "one"]
    assert threads[1].last_message_at == NOON
    assert (await office.mail.threads(alice)).threads[0].last_message_body == "two"


async def test_an_urgent_message_that_is_deleted_unread_counts_no_more(office, alice, bob):
    sent = await office.mail.send(alice, "bob", body="now!", priority="urgent")
    await office.mail.delete_message(bob, sent.message_id)
    digest = await office.mail.digest(bob)
    assert (digest.total_unread, digest.urgent_count, digest.recent_senders) == (0, 0, [])


async def test_nobody_deletes_what_is_not_theirs_or_not_there(office, alice, bob, carol):
    sent = await office.mail.send(alice, "bob", body="one")
    await refused(office.mail.delete_message(carol, sent.message_id), e.AccessDenied)
    await refused(office.mail.delete_message(carol, str(uuid.uuid4())), e.MessageNotFound)
    await office.mail.delete_message(bob, sent.message_id)
    await refused(office.mail.delete_message(bob, sent.message_id), e.MessageNotFound)
    assert await office.bodies(alice, thread_id=sent.thread_id) == ["one"]


async def test_the_subject_goes_with_the_message_it_is_part_of(office, alice, bob):
    first = await office.mail.send(alice, "bob", body="the subject")
    await office.mail.send(alice, "bob", body="more")
    await office.mail.delete_message(bob, first.message_id)
    assert (await office.mail.threads(bob)).threads[0].subject == ""
    assert (await office.mail.threads(alice)).threads[0].subject == "the subject"
    [[before]] = await office.rows("SELECT subject FROM threads")
    await office.mail.delete_message(alice, first.message_id)
    assert (await office.mail.threads(alice)).threads[0].subject == ""
    [[after]] = await office.rows("SELECT subject FROM threads")
    assert len(after) < len(before)


@pytest.mark.requirement("delete.thread")
async def test_a_deleted_thread_stays_with_the_other_side(office, alice, bob):
    sent = await office.write_some(alice, bob, 3)
    await office.mail.send(bob, "alice", body="an answer")
    await office.mail.delete_thread(bob, sent[0].thread_id)
    assert (await office.mail.threads(bob)).threads == []
    assert await office.bodies(bob) == []
    assert (await office.mail.digest(bob)).total_unread == 0
    for reading in (
        office.mail.thread(bob, sent[0].thread_id),
        office.mail.inbox(bob, thread_id=sent[0].thread_id),
        office.mail.delete_thread(bob, sent[0].thread_id),
        office.mail.set_state(bob, sent[0].thread_id, "starred"),
    ):
        await refused(reading, e.ThreadNotFound)
    await refused(office.mail.reply(bob, sent[0].message_id, body="hm"), e.MessageNotFound)
    assert len(await office.bodies(alice, thread_id=sent[0].thread_id)) == 4
    [thread] = (await office.mail.threads(alice)).threads
    assert (thread.subject, thread.unread_count) == ("number 0", 1)
    await check_books(office)


@pytest.mark.requirement("delete.thread-then-message")
@pytest.mark.parametrize("writer", ["alice", "bob"])
async def test_a_new_message_brings_the_thread_back_without_its_history(office, alice, bob, writer):
    sent = await office.write_some(alice, bob, 3)
    await office.mail.set_state(bob, sent[0].thread_id, "muted")
    await office.mail.delete_thread(bob, sent[0].thread_id)
    sender, to = (alice, "bob") if writer == "alice" else (bob, "alice")
    again = await office.mail.send(sender, to, body="again")
    assert again.thread_id == sent[0].thread_id
    assert await office.bodies(bob, thread_id=again.thread_id) == ["again"]
    [thread] = (await office.mail.threads(bob)).threads
    assert (thread.subject, thread.last_message_body) == ("", "again")
    assert (thread.member_state, thread.last_read_at) == ("active", 0)
    assert thread.unread_count == (1 if writer == "alice" else 0)
    [other] = (await office.mail.threads(alice)).threads
    assert other.subject == "number 0"
    assert len(await office.bodies(alice, thread_id=again.thread_id)) == 4
    await check_books(office)


async def test_a_thread_that_both_deleted_is_gone_and_a_new_one_begins(office, alice, bob):
    sent = await office.write_some(alice, bob, 3)
    for reader in (alice, bob):
        await office.mail.delete_thread(reader, sent[0].thread_id)
    assert set((await counts(office)).values()) == {0}
    assert (await office.mail.send(bob, "alice", body="anew")).thread_id != sent[0].thread_id
    assert (await office.mail.threads(alice)).threads[0].subject == "anew"


async def test_what_the_one_left_behind_and_the_other_deleted_piece_by_piece_is_gone(office):
    alice, bob = await office.people("alice", "bob")
    sent = await office.write_some(alice, bob, 2)
    await office.mail.delete_thread(bob, sent[0].thread_id)
    for one in sent:
        await office.mail.delete_message(alice, one.message_id)
    assert (await counts(office))["messages"] == 0
    [thread] = (await office.mail.threads(alice)).threads
    assert (thread.subject, thread.last_message_body) == ("", None)
    await office.mail.send(bob, "alice", body="again")
    assert (await office.mail.threads(alice)).threads[0].last_message_body == "again"
    await check_books(office)


@pytest.mark.requirement("delete.account")
async def test_with_an_account_goes_all_it_sent_and_had(office, alice, bob, carol):
    sent = await office.write_some(alice, bob, 2)
    answer = await office.mail.send(bob, "alice", body="from bob")
    await office.mail.send(alice, "carol", body="only alice wrote here")
    forgotten = await office.mail.send(alice, "bob", body="deleted by alice", priority="urgent")
    await office.mail.delete_message(alice, forgotten.message_id)
    await office.mail.delete_account(alice)
    assert await office.bodies(bob) == []
    digest = await office.mail.digest(bob)
    assert (digest.total_unread, digest.urgent_count, digest.recent_senders) == (0, 0, [])
    [thread] = (await office.mail.threads(bob)).threads
    assert (thread.other_handle, thread.subject) == (GONE_HANDLE, "")
    assert (thread.last_message_body, thread.unread_count) == ("from bob", 0)
    [message] = (await office.mail.inbox(bob, thread_id=sent[0].thread_id)).messages
    assert (message.body, message.to_handle) == ("from bob", GONE_HANDLE)
    assert (await office.mail.threads(carol)).threads == []
    await refused(office.mail.reply(bob, answer.message_id, body="still there?"), e.UserNotFound)
    assert await counts(office) == {"messages": 1, "copies": 1, "threads": 1, "members": 1}
    await check_books(office)


@pytest.mark.requirement("delete.account")
async def test_with_an_account_goes_what_it_sent_in_threads_it_had_deleted(office, alice, bob):
    sent = await office.write_some(alice, bob, 2)
    await office.mail.delete_thread(alice, sent[0].thread_id)
    assert len(await office.bodies(bob)) == 2
    await office.mail.delete_account(alice)
    assert await office.bodies(bob) == []
    assert (await counts(office))["messages"] == 0


async def test_when_both_accounts_are_deleted_nothing_is_left(office, alice, bob):
    await office.write_some(alice, bob, 2)
    await office.write_some(bob, alice, 2)
    for account in (alice, bob):
        await office.mail.delete_account(account)
    assert set((await counts(office)).values()) == {0}


async def test_the_books_are_right_after_everything_at_once(office, alice, bob, carol):
    sent = await office.write_some(alice, bob, 30)
    pages = [await office.mail.inbox(bob, limit=n) for n in (5, 20, 10)]
    await asyncio.gather(
        *(office.mail.mark_delivered(bob, page.seqs) for page in pages),
        *(office.mail.delete_message(bob, one.message_id) for one in sent[::3]),
        *(office.mail.delete_message(alice, one.message_id) for one in sent[::2]),
        *(office.mail.send(alice, "bob", body="more") for _ in range(10)),
        *(office.mail.send(carol, "bob", body="more") for _ in range(10)),
        office.mail.mark_read(bob, sent[0].thread_id),
        office.mail.set_state(bob, sent[0].thread_id, "archived"),
        office.mail.delete_thread(alice, sent[0].thread_id),
        office.mail.delete_account(carol),
        return_exceptions=True,
    )
    await check_books(office)


@pytest.mark.requirement("delete.retention")
async def test_mail_expires_for_both_sides_only_when_it_is_told_to(office, alice, bob):
    for second in range(6):
        office.clock.seconds = NOON + second
        sent = await office.mail.send(alice, "bob", body=f"at {second}", priority="urgent")
    office.clock.seconds = NOON + 10**9
    assert len(await office.bodies(bob)) == 6
    assert await office.mail.expire(NOON + 4, most=3) == 3
    assert await office.mail.expire(NOON + 4, most=3) == 1
    assert await office.mail.expire(NOON + 4, most=3) == 0
    for reader in (alice, bob):
        assert await office.bodies(reader, thread_id=sent.thread_id) == ["at 5", "at 4"]
        assert (await office.mail.threads(reader)).threads[0].subject == ""
    digest = await office.mail.digest(bob)
    assert (digest.total_unread, digest.urgent_count) == (2, 2)
    assert await office.mail.expire(NOON + 100) == 2
    assert (await office.mail.threads(bob)).threads[0].last_message_body is None
    await check_books(office)
