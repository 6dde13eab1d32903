"""Threads: what each side makes of one, and the digest."""

from __future__ import annotations

import uuid
from functools import partial

import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.mail import STATES
from tests.mail.support import NOON, payload, refused


@pytest.mark.requirement("tool.threads.output", "thread.new-members")
async def test_a_thread_is_shown_with_the_members_of_the_specification(office, alice, bob):
    await office.accounts.set_profile(alice, display_name="Alice Liddell")
    sent = await office.mail.send(alice, "bob", body="hello")
    [thread] = (await office.mail.threads(bob)).threads
    assert msgspec.to_builtins(thread) == {
        "id": sent.thread_id,
        "subject": "hello",
        "other_handle": "alice",
        "other_display_name": "Alice Liddell",
        "last_message_body": "hello",
        "last_message_at": NOON,
        "unread_count": 1,
        "member_state": "active",
        "last_read_at": 0,
        "created_at": NOON,
        "updated_at": NOON,
    }
    [own] = (await office.mail.threads(alice)).threads
    assert (own.other_handle, own.unread_count, own.last_read_at) == ("bob", 0, 0)
    assert own.last_message_own


@pytest.mark.requirement("thread.subject")
async def test_the_subject_is_the_first_fifty_characters_and_stays(office, alice, bob):
    text = "\N{GRINNING FACE}" * 49 + "xyz"
    await office.mail.send(alice, "bob", body=text)
    await office.mail.send(bob, "alice", body="an answer")
    for reader in (alice, bob):
        [thread] = (await office.mail.threads(reader)).threads
        assert thread.subject == text[:50]


@pytest.mark.requirement("thread.subject", "thread.preview")
async def test_a_thread_that_begins_end_to_end_has_neither_subject_nor_preview(office, alice, bob):
    await office.mail.send(alice, "bob", encrypted_payload=payload())
    [thread] = (await office.mail.threads(bob)).threads
    assert (thread.subject, thread.last_message_body) == ("", None)
    await office.mail.send(alice, "bob", body="now readable")
    [thread] = (await office.mail.threads(bob)).threads
    assert (thread.subject, thread.last_message_body) == ("", "now readable")


@pytest.mark.requirement("thread.preview")
async def test_the_preview_is_the_last_body_to_both_sides_and_a_long_one_is_cut(office, alice, bob):
    await office.mail.send(alice, "bob", body="one")
    await office.mail.send(bob, "alice", body="two")
    for reader in (alice, bob):
        assert (await office.mail.threads(reader)).threads[0].last_message_body == "two"
    await office.mail.send(bob, "alice", body="x" * 10_000)
    assert (await office.mail.threads(alice)).threads[0].last_message_body == "x" * 499 + "…"


@pytest.mark.requirement("thread.order", "tool.threads.order")
async def test_the_thread_with_the_newest_message_comes_first(office, alice, bob, carol, dave):
    for sender in (bob, carol, dave):
        await office.mail.send(sender, "alice", body="hello")
    await office.mail.send(alice, "bob", body="you first")
    threads = (await office.mail.threads(alice)).threads
    assert [thread.other_handle for thread in threads] == ["bob", "dave", "carol"]


@pytest.mark.requirement("thread.order")
async def test_a_thread_without_messages_stands_where_it_began(office, alice, bob, carol, dave):
    first = await office.mail.send(bob, "alice", body="one")
    office.clock.seconds += 1
    for sender in (carol, dave):
        await office.mail.send(sender, "alice", body="hello")
    office.clock.seconds += 1
    for message in (first, (await office.mail.send(bob, "alice", body="two"))):
        await office.mail.delete_message(alice, message.message_id)
    threads = (await office.mail.threads(alice)).threads
    assert [thread.other_handle for thread in threads] == ["dave", "carol", "bob"]
    assert (threads[2].last_message_at, threads[2].last_message_body) == (NOON, None)
    pages = await office.mail.threads(alice, limit=2)
    rest = await office.mail.threads(alice, limit=2, cursor=pages.next_cursor)
    assert [thread.other_handle for thread in rest.threads] == ["bob"]


@pytest.mark.requirement("paging.unbounded-lists", "paging.cursor")
async def test_threads_come_in_pages_of_a_hundred_unless_told(office):
    alice, *others = await office.people("alice", *(f"user_{n}" for n in range(105)))
    for other in others:
        await office.mail.send(other, "alice", body="hello")
    page = await office.mail.threads(alice)
    assert len(page.threads) == 100
    rest = await office.mail.threads(alice, cursor=page.next_cursor)
    seen = [thread.other_handle for thread in (*page.threads, *rest.threads)]
    assert seen == [f"user_{n}" for n in reversed(range(105))]
    assert rest.next_cursor is None
    await refused(office.mail.threads(alice, limit=101), e.ArgumentInvalid)


@pytest.mark.requirement("thread.states", "tool.archive.undo", "tool.star.undo", "tool.mute.undo")
@pytest.mark.parametrize("state", STATES[1:])
async def test_a_state_is_set_and_undone_for_one_side_alone(office, alice, bob, state):
    sent = await office.mail.send(alice, "bob", body="hello")
    await office.mail.set_state(bob, sent.thread_id, state)
    assert (await office.mail.threads(bob)).threads[0].member_state == state
    assert (await office.mail.threads(alice)).threads[0].member_state == "active"
    await office.mail.set_state(bob, sent.thread_id, "active")
    assert (await office.mail.threads(bob)).threads[0].member_state == "active"


@pytest.mark.requirement("tool.threads.filter")
async def test_threads_are_filtered_by_state(office):
    alice, *others = await office.people("alice", "bob", "carol", "dave", "erin")
    for other in others:
        sent = await office.mail.send(other, "alice", body="hello")
        state = {"carol": "archived", "dave": "muted", "erin": "starred"}.get(other.handle)
        if state:
            await office.mail.set_state(alice, sent.thread_id, state)
    for state, handle in zip(STATES, ("bob", "carol", "dave", "erin"), strict=True):
        threads = (await office.mail.threads(alice, state=state)).threads
        assert [thread.other_handle for thread in threads] == [handle]
    assert len((await office.mail.threads(alice)).threads) == 4
    with pytest.raises(e.ArgumentInvalid, match="state must be one of"):
        await office.mail.threads(alice, state="gone")  # type: ignore[arg-type]


@pytest.mark.requirement("thread.archived-returns", "thread.state-never-blocks")
@pytest.mark.parametrize("sender", ["alice", "bob"])
async def test_a_new_message_from_either_side_returns_an_archived_thread_and_no_other(
    office, alice, bob, sender
):
    sent = await office.mail.send(alice, "bob", body="one")
    for given, state in (("archived", "active"), ("starred", "starred"), ("muted", "muted")):
        await office.mail.set_state(bob, sent.thread_id, given)
        writer, to = (alice, "bob") if sender == "alice" else (bob, "alice")
        await office.mail.send(writer, to, body=given)
        [thread] = (await office.mail.threads(bob)).threads
        assert (thread.member_state, thread.last_message_body) == (state, given)


@pytest.mark.requirement("thread.unread")
async def test_unread_counts_what_the_other_side_sent(office, alice, bob):
    await office.write_some(alice, bob, 3)
    await office.write_some(bob, alice, 2)
    assert (await office.mail.threads(bob)).threads[0].unread_count == 3
    assert (await office.mail.threads(alice)).threads[0].unread_count == 2


@pytest.mark.requirement("tool.mark-read.marks-all", "thread.last-read-at")
async def test_marking_a_thread_read_leaves_nothing_of_it_unread(office, alice, bob, carol):
    sent = await office.write_some(alice, bob, 5)
    await office.write_some(carol, bob, 2)
    await office.read(bob, limit=4)
    office.clock.seconds += 9
    await office.mail.mark_read(bob, sent[0].thread_id)
    threads = {t.other_handle: t for t in (await office.mail.threads(bob)).threads}
    assert (threads["alice"].unread_count, threads["alice"].last_read_at) == (0, NOON + 9)
    assert (await office.mail.digest(bob)).total_unread == 0
    assert await office.rows("SELECT COUNT(*) FROM copies WHERE unread = 1") == [(0,)]
    await office.mail.send(alice, "bob", body="new")
    await office.mail.mark_read(alice, sent[0].thread_id)
    assert (await office.mail.digest(bob)).total_unread == 1


async def test_marking_some_messages_read_leaves_the_rest_and_other_threads_unread(office):
    alice, bob, carol = await office.people("alice", "bob", "carol")
    sent = await office.write_some(alice, bob, 3)
    other = await office.write_some(carol, bob, 1)
    named = [sent[0].message_id, sent[2].message_id, other[0].message_id, "unknown"]
    for _ in range(2):
        await office.mail.mark_read(bob, sent[0].thread_id, named)
        threads = {t.other_handle: t for t in (await office.mail.threads(bob)).threads}
        assert (threads["alice"].unread_count, threads["carol"].unread_count) == (1, 1)
    await office.mail.mark_read(bob, sent[0].thread_id, [])
    await office.mail.mark_read(alice, sent[0].thread_id, named)
    assert (await office.mail.digest(bob)).total_unread == 2


@pytest.mark.requirement(
    "tool.mark-read.errors", "tool.archive.errors", "tool.star.errors", "tool.mute.errors"
)
@pytest.mark.parametrize("action", ["mark_read", *STATES[1:], "delete_thread", "thread"])
async def test_threads_of_others_and_of_nobody_are_left_alone(office, alice, bob, carol, action):
    sent = await office.mail.send(alice, "bob", body="hello")
    act = partial(office.mail.set_state, state=action)
    if action not in STATES:
        act = getattr(office.mail, action)
    await refused(act(carol, sent.thread_id), e.AccessDenied, r"^Access denied\.$")
    await refused(act(carol, str(uuid.uuid4())), e.ThreadNotFound, r"^Thread not found\.$")


@pytest.mark.requirement("tool.digest.output", "tool.digest.marks-nothing")
async def test_the_digest_counts_what_is_unread(office, alice, bob, carol, dave):
    await office.mail.send(bob, "alice", body="one", priority="urgent")
    await office.mail.send(carol, "alice", body="two")
    await office.mail.send(bob, "alice", body="three", priority="urgent")
    read = await office.mail.send(dave, "alice", body="four", priority="urgent")
    await office.mail.mark_read(alice, read.thread_id)
    for _ in range(2):
        assert msgspec.to_builtins(await office.mail.digest(alice)) == {
            "total_unread": 3,
            "threads_with_unread": 2,
            "recent_senders": ["bob", "carol"],
            "urgent_count": 2,
        }
    await office.mail.send(alice, "bob", body="urgent", priority="urgent")
    assert (await office.mail.digest(alice)).urgent_count == 2


@pytest.mark.requirement("tool.digest.senders-cut")
async def test_the_digest_says_how_many_senders_it_leaves_out(office):
    alice, *others = await office.people("alice", *(f"user_{n}" for n in range(53)))
    for other in others[:50]:
        await office.mail.send(other, "alice", body="hello")
    whole = msgspec.to_builtins(await office.mail.digest(alice))
    assert len(whole["recent_senders"]) == 50
    assert "more_senders" not in whole
    for other in others[50:]:
        await office.mail.send(other, "alice", body="hello")
    await office.mail.delete_account(others[0])
    digest = await office.mail.digest(alice)
    assert digest.recent_senders == [each.handle for each in reversed(others[3:])]
    assert digest.more_senders == 2


async def test_a_subject_changed_at_rest_is_empty_and_its_thread_stays_usable(office, alice, bob):
    one = await office.mail.send(alice, "bob", body="one")
    await office.change("UPDATE threads SET subject = 'AAAA'")
    [thread] = (await office.mail.threads(bob)).threads
    assert (thread.subject, thread.last_message_body) == ("", "one")
    await office.mail.delete_message(bob, one.message_id)
    assert (await office.mail.threads(bob)).threads[0].last_message_body is None


async def test_a_thread_is_read_page_by_page_with_its_summary(office, alice, bob):
    sent = await office.write_some(alice, bob, 3)
    first = await office.mail.thread(bob, sent[0].thread_id, limit=2)
    assert first.thread.subject == "number 0"
    assert [m.body for m in first.page.messages] == ["number 2", "number 1"]
    cursor = first.page.next_cursor
    rest = await office.mail.thread(bob, sent[0].thread_id, cursor=cursor, peek=True)
    assert [m.body for m in rest.page.messages] == ["number 0"]
    assert rest.page.seqs == ()
    await office.mail.mark_delivered(bob, first.page.seqs)
    assert (await office.mail.digest(bob)).total_unread == 1
