"""Reading: pages, their order, and what counts as read."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import msgspec
import pytest

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.mail import MailPage
from tests.mail.support import NOON, PostOffice, pages, payload, refused


async def all_pages(office: PostOffice, reader: Account, **options: Any) -> list[str | None]:
    ask = partial(office.mail.inbox, reader, peek=True, **options)
    return [message.body async for page in pages(ask) for message in page.messages]


@pytest.mark.requirement("tool.inbox.output")
async def test_a_message_is_shown_with_the_members_of_the_specification(office, alice, bob):
    sent = await office.mail.send(alice, "bob", body="hello")
    sealed = await office.mail.send(alice, "bob", encrypted_payload=payload())
    page = await office.mail.inbox(bob)
    plain = {
        "id": sent.message_id,
        "thread_id": sent.thread_id,
        "from_handle": "alice",
        "to_handle": "bob",
        "body": "hello",
        "priority": "normal",
        "encryption_mode": "server_assisted",
        "reply_to": None,
        "created_at": NOON,
        "unread": True,
    }
    changed = {"id": sealed.message_id, "body": None, "encryption_mode": "e2e"}
    e2e = {**plain, **changed, "encrypted_payload": msgspec.to_builtins(payload())}
    assert msgspec.to_builtins(page.messages) == [e2e, plain]


@pytest.mark.requirement("tool.inbox.addressed-to-me", "tool.inbox.newest-first")
async def test_the_inbox_has_what_others_sent_to_the_reader_newest_first(office, alice, bob, carol):
    await office.mail.send(alice, "bob", body="one")
    await office.mail.send(bob, "alice", body="my own")
    await office.mail.send(carol, "bob", body="two")
    await office.mail.send(alice, "carol", body="not mine")
    assert await office.bodies(bob) == ["two", "one"]


@pytest.mark.requirement("tool.inbox.thread", "thread.both-sides-shown", "crypto.sender-reads-own")
async def test_a_thread_shows_both_sides_to_both(office, alice, bob, carol):
    sent = await office.mail.send(alice, "bob", body="one")
    await office.mail.send(carol, "bob", body="elsewhere")
    await office.mail.reply(bob, sent.message_id, body="two")
    for reader in (alice, bob):
        page = await office.mail.inbox(reader, thread_id=sent.thread_id)
        shown = [(m.from_handle, m.to_handle, m.body) for m in page.messages]
        assert shown == [("bob", "alice", "two"), ("alice", "bob", "one")]


@pytest.mark.requirement("crypto.sender-reads-own")
async def test_a_sender_reads_their_own_after_the_recipients_keys_changed(office, alice, bob):
    sent = await office.mail.send(alice, "bob", body="one")
    await office.change("UPDATE users SET public_key = ? WHERE id = ?", alice.public_key, bob.id)
    assert await office.bodies(alice, thread_id=sent.thread_id) == ["one"]


@pytest.mark.requirement("tool.inbox.limit")
async def test_fifty_are_returned_unless_told_and_never_more_than_a_hundred(office, alice, bob):
    await office.write_some(alice, bob, 103)
    assert len(await office.bodies(bob)) == 50
    assert len(await office.bodies(bob, limit=100)) == 100
    assert await office.bodies(bob, limit=1) == ["number 102"]
    for limit in (0, 101, -1):
        with pytest.raises(e.ArgumentInvalid, match="limit must be from 1 to 100"):
            await office.mail.inbox(bob, limit=limit)


@pytest.mark.requirement("paging.cursor")
async def test_pages_by_cursor_lose_and_repeat_nothing_of_one_second(office, alice, bob, carol):
    sent = await office.write_some(alice, bob, 10)
    await office.write_some(carol, bob, 5)
    newest_first = [f"number {n}" for n in (4, 3, 2, 1, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)]
    for limit in (1, 4, 15, 100):
        assert await all_pages(office, bob, limit=limit) == newest_first
    assert (await all_pages(office, bob, limit=3, thread_id=sent[0].thread_id)) == newest_first[5:]


async def test_what_arrives_or_goes_between_two_pages_moves_none_of_the_rest(office, alice, bob):
    sent = await office.write_some(alice, bob, 6)
    page = await office.mail.inbox(bob, limit=2)
    await office.mail.send(alice, "bob", body="new")
    await office.mail.delete_message(bob, sent[4].message_id)
    assert await office.bodies(bob, cursor=page.next_cursor, limit=2) == ["number 3", "number 2"]


async def test_a_cursor_works_for_its_reader_and_its_list_alone_and_tells_nothing(office):
    alice, bob, carol = await office.people("alice", "bob", "carol")
    sent = await office.write_some(alice, bob, 3)
    await office.write_some(alice, carol, 3)
    cursor = (await office.mail.inbox(bob, limit=1)).next_cursor
    assert cursor != (await office.mail.inbox(bob, limit=1)).next_cursor
    wrong = "cursor must be the next_cursor of an earlier answer"
    for reader, asked in ((carol, {}), (bob, {"thread_id": sent[0].thread_id})):
        await refused(office.mail.inbox(reader, cursor=cursor, **asked), e.ArgumentInvalid, wrong)
    await refused(office.mail.threads(bob, cursor=cursor), e.ArgumentInvalid, wrong)
    for made_up in ("", "1", "x" * 1_000_000, "\ud800", cursor[:-4] + "AAA="):
        await refused(office.mail.inbox(bob, cursor=made_up), e.ArgumentInvalid, wrong)


@pytest.mark.requirement("tool.inbox.before")
async def test_before_returns_what_is_older_than_that_second(office, alice, bob):
    assert await office.bodies(bob, before=NOON) == []
    for second in (0, 0, 1, 3, 3, 7):
        office.clock.seconds = NOON + second
        await office.mail.send(alice, "bob", body=f"at {second}")
    everything = ["at 7", "at 3", "at 3", "at 1", "at 0", "at 0"]
    for second in range(-1, 10):
        older = [text for text in everything if int(text[3:]) < second]
        assert await office.bodies(bob, before=NOON + second) == older
    for far in (-(2**63), -1, 0, 1):
        assert await office.bodies(bob, before=far) == []
    assert await office.bodies(bob, before=2**63 - 1) == everything


HOUR = 3_600
# Seconds after noon at which messages are sent, by what happens to the clock meanwhile.
SWINGS = {
    "ten minutes": (0, 1, -600, -599, 2),
    "two hours": (0, 1, 2, -2 * HOUR, 1 - 2 * HOUR, 3),
    "a year ahead, and corrected": (0, 365 * 24 * HOUR, 1 + 365 * 24 * HOUR, 2, 3, 4),
    "again and again": tuple(
        -2 * HOUR * number + second for number in range(6) for second in (0, 9)
    ),
}


@pytest.mark.requirement("paging.clock-set-back")
@pytest.mark.parametrize("swing", SWINGS)
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "with gaps"])
async def test_a_clock_that_goes_back_hides_no_message_from_before(office, alice, bob, swing, gaps):
    sent = []
    for seconds in SWINGS[swing]:
        office.clock.seconds = NOON + seconds
        for number in range(3):
            message = await office.mail.send(alice, "bob", body=f"{seconds} {number}")
            if gaps and number == 0:
                await office.mail.delete_message(alice, message.message_id)
                await office.mail.delete_message(bob, message.message_id)
            else:
                sent.insert(0, (message.created_at, f"{seconds} {number}"))
    times = {time for time, _ in sent}
    for before in {time + step for time in times for step in (0, 1)}:
        older = [words for time, words in sent if time < before]
        assert await office.bodies(bob, before=before) == older
        assert await all_pages(office, bob, before=before, limit=2) == older
    assert await office.bodies(bob) == [words for _, words in sent]


@pytest.mark.requirement("tool.inbox.marks-read", "thread.unread-per-message")
async def test_what_was_returned_is_read_and_only_that(office, alice, bob, carol):
    await office.write_some(alice, bob, 5)
    await office.write_some(carol, bob, 1)
    await office.read(bob, limit=3)
    digest = await office.mail.digest(bob)
    assert (digest.total_unread, digest.threads_with_unread) == (3, 1)
    assert [t.unread_count for t in (await office.mail.threads(bob)).threads] == [0, 3]
    await office.read(bob, limit=3)
    assert (await office.mail.digest(bob)).total_unread == 3
    await office.read(bob)
    assert (await office.mail.digest(bob)).total_unread == 0


@pytest.mark.requirement("tool.inbox.peek", "tool.inbox.vanished-client")
async def test_nothing_is_read_after_a_peek_or_before_the_answer_was_handed_over(office):
    alice, bob = await office.people("alice", "bob")
    await office.write_some(alice, bob, 2)
    assert (await office.mail.inbox(bob, peek=True)).seqs == ()
    page = await office.mail.inbox(bob)
    assert (await office.mail.digest(bob)).total_unread == 2
    await office.mail.mark_delivered(bob, page.seqs)
    await office.mail.mark_delivered(bob, page.seqs)
    assert (await office.mail.digest(bob)).total_unread == 0


async def test_nobody_marks_what_is_not_theirs(office, alice, bob, carol):
    await office.write_some(alice, bob, 2)
    page = await office.mail.inbox(bob)
    for stranger in (alice, carol):
        await office.mail.mark_delivered(stranger, (*page.seqs, 99, -1))
    assert (await office.mail.digest(bob)).total_unread == 2


@pytest.mark.requirement("thread.last-read-at")
async def test_reading_sets_last_read_at_of_the_threads_returned(office, alice, bob, carol):
    await office.mail.send(alice, "bob", body="one")
    await office.mail.send(carol, "bob", body="two")
    for seconds, reading in enumerate(({"limit": 1}, {"limit": 2}, {"limit": 1}), start=1):
        office.clock.seconds = NOON + seconds
        await office.read(bob, **reading)
    threads = (await office.mail.threads(bob)).threads
    assert [t.last_read_at for t in threads] == [NOON + 3, NOON + 2]


async def test_reading_again_within_the_second_has_nothing_to_mark(office, alice, bob):
    await office.mail.send(alice, "bob", body="one")
    assert (await office.read(bob)).seqs == (1,)
    assert (await office.read(bob)).seqs == ()
    assert (await office.mail.inbox(alice)) == MailPage([])


@pytest.mark.requirement("tool.inbox.thread-not-found", "tool.inbox.access-denied")
async def test_threads_of_others_and_of_nobody_are_refused(office, alice, bob, carol):
    sent = await office.mail.send(alice, "bob", body="one")
    with pytest.raises(e.AccessDenied, match=r"^Access denied\.$"):
        await office.mail.inbox(carol, thread_id=sent.thread_id)
    for unknown in (str(uuid.uuid4()), "", "x" * 100_000, "\0"):
        with pytest.raises(e.ThreadNotFound, match=r"^Thread not found\.$"):
            await office.mail.inbox(alice, thread_id=unknown)


@pytest.mark.requirement("crypto.tampering-detected")
async def test_a_message_changed_at_rest_is_not_shown_and_hides_no_other(office, alice, bob, carol):
    sent = await office.write_some(alice, bob, 4)
    other = await office.mail.send(carol, "bob", body="swapped in")
    await office.change(
        "UPDATE messages SET ciphertext = (SELECT ciphertext FROM messages WHERE id = ?), "
        "nonce = (SELECT nonce FROM messages WHERE id = ?) WHERE id = ?",
        *(other.message_id, other.message_id, sent[1].message_id),
    )
    for column, value, message in (("ciphertext", "AAAA", sent[2]), ("sender_key", "no", sent[3])):
        changed = f"UPDATE messages SET {column} = ? WHERE id = ?"
        await office.change(changed, value, message.message_id)
    page = await office.mail.inbox(bob)
    assert [m.body for m in page.messages] == ["swapped in", None, None, None, "number 0"]
    assert [bool(m.error) for m in page.messages] == [False, True, True, True, False]
    assert (await office.mail.threads(bob)).threads[1].last_message_body is None


@pytest.mark.requirement("crypto.tampering-detected")
@pytest.mark.settings(most_pairs=1)
async def test_a_copy_smuggled_into_another_mailbox_opens_nothing(office):
    alice, bob, mallory = await office.people("alice", "bob", "mallory")
    sent = await office.mail.send(alice, "bob", body="secret")
    await office.read(bob)
    own = await office.mail.send(alice, "mallory", body="for mallory")
    await office.change(
        "INSERT INTO copies (user_id, seq, created_at, thread_id, incoming, unread, urgent) "
        "SELECT ?, seq, created_at, ?, 1, 1, 0 FROM messages WHERE id = ?",
        *(mallory.id, own.thread_id, sent.message_id),
    )
    assert await office.bodies(mallory) == ["for mallory", None]
    stolen = "(SELECT private_key FROM users WHERE handle = 'bob')"
    await office.change(f"UPDATE users SET private_key = {stolen} WHERE handle = 'mallory'")
    assert None in await office.bodies(mallory)
    assert "secret" not in await office.bodies(mallory)


@pytest.mark.settings(most_pairs=3)
async def test_the_keys_that_are_kept_are_bounded(office):
    alice, *others = await office.people("alice", *(f"user_{n}" for n in range(6)))
    for _ in range(2):
        for other in others:
            await office.mail.send(alice, other.handle, body=f"to {other.handle}")
    for other in others:
        assert await office.bodies(other) == [f"to {other.handle}"] * 2
