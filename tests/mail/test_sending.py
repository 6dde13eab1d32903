"""Sending and answering."""

from __future__ import annotations

import asyncio
import base64
import uuid

import pytest
from nacl.public import Box, PublicKey

from folkmoot.core import errors as e
from folkmoot.mail import PRIORITIES
from tests.mail.support import NOON, opened, payload, private_key_of, refused
from tests.stores import ON_POSTGRES

EVERY_PLANE = "".join(chr(plane * 0x10000 + 0x1234) for plane in range(17)) + "\0\x01\u202e\uffff"


@pytest.mark.requirement("tool.send.output", "message-record.ids", "message-record.epoch-seconds")
async def test_a_sent_message_tells_its_ids_recipient_mode_and_time(office, alice, bob):
    sent = await office.mail.send(alice, "@BOB", body="hello")
    assert (sent.to, sent.encryption_mode, sent.created_at) == ("bob", "server_assisted", NOON)
    assert uuid.UUID(sent.message_id).version == uuid.UUID(sent.thread_id).version == 4


@pytest.mark.requirement("message-record.fields", "message-record.payload-fields")
async def test_a_message_is_stored_with_envelope_and_encrypted_part(office, alice, bob):
    sent = await office.mail.send(alice, "bob", body="hello", priority="low")
    [row] = await office.rows(
        "SELECT id, thread_id, from_id, to_id, reply_to, priority, mode, created_at, "
        "ciphertext, nonce, sender_key FROM messages"
    )
    assert row[:4] == (sent.message_id, sent.thread_id, alice.id, bob.id)
    assert row[4:8] == (None, "low", "server_assisted", NOON)
    assert [len(base64.b64decode(part)) for part in row[8:]] == [16 + 5, 24, 32]


@pytest.mark.requirement("crypto.nacl-box", "crypto.nonce", "crypto.private-key-sealed")
async def test_any_nacl_implementation_opens_a_stored_message(office, alice, bob):
    for _ in range(2):
        await office.mail.send(alice, "bob", body="hello")
    [[sealed]] = await office.rows("SELECT private_key FROM users WHERE handle = 'bob'")
    private = private_key_of(office, bob, sealed)
    assert bytes(private) not in base64.b64decode(sealed)
    rows = await office.rows("SELECT ciphertext, nonce, sender_key FROM messages")
    for row in rows:
        ciphertext, nonce, sender_key = map(base64.b64decode, row)
        assert Box(private, PublicKey(sender_key)).decrypt(ciphertext, nonce) == b"hello"
    assert rows[0][0] != rows[1][0]
    assert rows[0][1] != rows[1][1]


@pytest.mark.requirement("crypto.body-is-utf8", "crypto.assisted-returned")
@pytest.mark.parametrize("text", ["x", EVERY_PLANE, "\U0010ffff" * 100_000], ids=len)
async def test_every_character_comes_back_unchanged(office, alice, bob, text):
    await office.mail.send(alice, "bob", body=text)
    [message] = (await office.mail.inbox(bob)).messages
    assert message.body == text
    assert not message.encrypted_payload


@pytest.mark.requirement("crypto.e2e-as-given", "crypto.e2e-returned", "crypto.mode-indicator")
async def test_an_encrypted_payload_comes_back_exactly_as_given(tmp_path):
    async with opened(tmp_path) as office:
        alice, bob = await office.people("alice", "bob")
        given = payload()
        sent = await office.mail.send(alice, "bob", encrypted_payload=given)
        assert sent.encryption_mode == "e2e"
        for reader in (alice, bob):
            [message] = (await office.mail.inbox(reader, thread_id=sent.thread_id)).messages
            assert (message.body, message.encryption_mode) == (None, "e2e")
            assert message.encrypted_payload == given


@pytest.mark.requirement("priority.levels", "priority.advisory")
async def test_every_priority_is_sent_and_shown_and_normal_is_the_default(office, alice, bob):
    await office.mail.send(alice, "bob", body="plain")
    for priority in PRIORITIES:
        await office.mail.send(alice, "bob", body="x", priority=priority)
    page = await office.mail.inbox(bob)
    assert [m.priority for m in page.messages] == ["fyi", "low", "normal", "urgent", "normal"]
    with pytest.raises(e.ArgumentInvalid, match="priority must be one of"):
        await office.mail.send(alice, "bob", body="x", priority="asap")


@pytest.mark.requirement("tool.send.self")
async def test_nobody_writes_to_themselves(office, alice):
    with pytest.raises(e.CannotSendToSelf, match=r"^Cannot send a message to yourself\.$"):
        await office.mail.send(alice, "@Alice", body="hello me")


@pytest.mark.requirement("tool.send.not-found")
@pytest.mark.parametrize("handle", ["nobody", "", "%", "a" * 1000, "bob\0"])
async def test_nothing_is_sent_to_someone_who_is_not_there(office, alice, bob, handle):
    with pytest.raises(e.UserNotFound, match=r"^User not found\.$"):
        await office.mail.send(alice, handle, body="hello")
    assert await office.rows("SELECT * FROM threads") == []


@pytest.mark.requirement("tool.send.blocked", "tool.block.blocks", "tool.reply.as-send")
@pytest.mark.requirement("tool.block.one-way")
async def test_a_blocked_sender_can_neither_send_nor_reply(office, alice, bob):
    got = await office.mail.send(bob, "alice", body="write to me")
    await office.accounts.block(bob, "alice")
    with pytest.raises(e.CannotSend, match=r"^Cannot send message to this user\.$"):
        await office.mail.send(alice, "bob", body="hello")
    await refused(office.mail.reply(alice, got.message_id, body="hello"), e.CannotSend)
    assert await office.bodies(bob) == []
    # Whom one has blocked, one can still write to.
    await office.mail.reply(bob, got.message_id, body="farewell")
    assert await office.bodies(alice) == ["farewell", "write to me"]


@pytest.mark.requirement("tool.send.redirect", "tool.inbox.current-handles")
async def test_mail_to_an_old_handle_reaches_its_owner_under_the_new_one(office, alice, bob):
    await office.mail.send(alice, "bob", body="one")
    bob = (await office.accounts.change_handle(bob, "robert")).account
    sent = await office.mail.send(alice, "bob", body="two")
    assert sent.to == "robert"
    page = await office.mail.inbox(alice, thread_id=sent.thread_id)
    assert {message.to_handle for message in page.messages} == {"robert"}
    alice = (await office.accounts.change_handle(alice, "alicia")).account
    assert [m.from_handle for m in (await office.mail.inbox(bob)).messages] == ["alicia"] * 2


@pytest.mark.requirement("thread.one-per-pair", "tool.send.updates-thread")
async def test_two_people_have_one_thread_whoever_writes(office, alice, bob, carol):
    first = await office.mail.send(alice, "bob", body="one")
    office.clock.seconds += 7
    second = await office.mail.send(bob, "alice", body="two")
    third = await office.mail.send(carol, "alice", body="three")
    assert first.thread_id == second.thread_id != third.thread_id
    thread = (await office.mail.thread(bob, first.thread_id)).thread
    assert (thread.created_at, thread.updated_at) == (NOON, NOON + 7)


@pytest.mark.requirement("thread.first-messages-race", "message-record.sequence")
async def test_first_messages_that_cross_make_one_thread(office, alice, bob):
    sent = await asyncio.gather(
        *(
            office.mail.send(sender, to, body=f"{sender.handle} {number}")
            for number in range(20)
            for sender, to in ((alice, "bob"), (bob, "alice"))
        )
    )
    assert len({one.thread_id for one in sent}) == 1
    [thread] = (await office.mail.threads(alice)).threads
    assert thread.unread_count == 20
    rows = await office.rows("SELECT seq, id FROM messages ORDER BY seq")
    ids = [one.message_id for one in sent]
    assert sorted(row[1] for row in rows) == sorted(ids)
    if not ON_POSTGRES:
        assert thread.subject == "alice 0"
        assert rows == list(enumerate(ids, start=1))


@pytest.mark.requirement("tool.send.reply-to")
async def test_a_reference_to_a_message_of_the_thread_is_kept_and_shown(office, alice, bob):
    first = await office.mail.send(alice, "bob", body="one")
    await office.mail.send(bob, "alice", body="two", reply_to=first.message_id)
    [message] = (await office.mail.inbox(alice)).messages
    assert message.reply_to == first.message_id


async def test_a_reference_to_anything_else_is_refused_and_nothing_is_sent(office):
    alice, bob, _ = await office.people("alice", "bob", "carol")
    foreign = await office.mail.send(bob, "carol", body="not for alice")
    elsewhere = await office.mail.send(alice, "carol", body="another thread")
    deleted = await office.mail.send(alice, "bob", body="gone")
    await office.mail.delete_message(alice, deleted.message_id)
    others = [foreign.message_id, elsewhere.message_id, deleted.message_id, "x", ""]
    for message_id in others:
        with pytest.raises(e.MessageNotFound):
            await office.mail.send(alice, "bob", body="re", reply_to=message_id)
    assert await office.bodies(bob) == ["gone"]


@pytest.mark.requirement("tool.reply.routes", "tool.reply.output")
async def test_a_reply_goes_to_the_other_side_of_the_messages_thread(office, alice, bob):
    first = await office.mail.send(alice, "bob", body="one")
    answer = await office.mail.reply(bob, first.message_id, body="two")
    assert (answer.thread_id, answer.to) == (first.thread_id, "alice")
    more = await office.mail.reply(alice, first.message_id, encrypted_payload=payload())
    assert (more.to, more.encryption_mode) == ("bob", "e2e")
    [message] = (await office.mail.inbox(alice)).messages
    assert (message.body, message.reply_to) == ("two", first.message_id)


@pytest.mark.requirement("tool.reply.not-found", "tool.reply.access-denied")
async def test_nobody_replies_to_what_is_not_theirs(office, alice, bob, carol):
    sent = await office.mail.send(alice, "bob", body="one")
    with pytest.raises(e.AccessDenied, match=r"^Access denied\.$"):
        await office.mail.reply(carol, sent.message_id, body="hello")
    with pytest.raises(e.MessageNotFound, match=r"^Message not found\.$"):
        await office.mail.reply(bob, str(uuid.uuid4()), body="hello")
    await office.mail.delete_message(bob, sent.message_id)
    await refused(office.mail.reply(bob, sent.message_id, body="hello"), e.MessageNotFound)


@pytest.mark.requirement("tool.reply.as-send", "tool.send.both", "tool.send.neither")
@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({}, e.ContentMissing),
        ({"body": "x", "encrypted_payload": payload()}, e.ContentTwice),
        ({"body": ""}, e.ArgumentInvalid),
        ({"body": "x" * 100_001}, e.ArgumentInvalid),
        ({"encrypted_payload": payload(nonce="AAAA")}, e.ArgumentInvalid),
    ],
    ids=["neither", "both", "empty", "too long", "no box"],
)
async def test_a_reply_holds_no_more_than_a_message_may(office, alice, bob, content, error):
    sent = await office.mail.send(alice, "bob", body="one")
    with pytest.raises(error):
        await office.mail.reply(bob, sent.message_id, **content)
    assert await office.bodies(alice) == []


async def test_an_account_that_is_gone_sends_nothing(office, alice, bob, carol):
    await office.mail.send(alice, "bob", body="one")
    await office.mail.delete_account(alice)
    for handle in ("bob", "carol"):
        await refused(office.mail.send(alice, handle, body="from beyond"), e.TokenInvalid)
        await refused(office.mail.send(alice, handle, encrypted_payload=payload()), e.TokenInvalid)
    assert await office.bodies(bob) == []
    assert await office.bodies(carol) == []


async def test_times_stand_still_when_the_clock_is_set_back(office, alice, bob):
    await office.mail.send(alice, "bob", body="one")
    office.clock.seconds -= 30
    await office.mail.send(alice, "bob", body="two")
    page = await office.mail.inbox(bob)
    assert [message.created_at for message in page.messages] == [NOON, NOON]
    assert await office.bodies(bob, before=NOON + 1) == ["two", "one"]
    # Further back it is a correction, and holds.
    office.clock.seconds = NOON - 86_400
    assert (await office.mail.send(alice, "bob", body="three")).created_at == NOON - 86_400


@pytest.mark.requirement("invite.pending-message")
async def test_an_invites_message_arrives_with_the_registration(office, alice):
    code = await office.accounts.create_invite(alice, "welcome \N{WAVING HAND SIGN}")
    registered = await office.accounts.register("bob", invite_code=code, also=office.mail.welcome)
    [message] = (await office.mail.inbox(registered.account)).messages
    assert (message.from_handle, message.body) == ("alice", "welcome \N{WAVING HAND SIGN}")
    assert (await office.mail.digest(registered.account)).total_unread == 1
    await office.mail.reply(registered.account, message.id, body="thank you")
    assert await office.bodies(alice) == ["thank you"]


@pytest.mark.requirement("invite.pending-message")
async def test_a_registration_that_fails_delivers_nothing(office, alice, bob):
    code = await office.accounts.create_invite(alice, "welcome")
    outcomes = await asyncio.gather(
        *(
            office.accounts.register(name, invite_code=code, also=office.mail.welcome)
            for name in ("bob", "carol", "dave")
        ),
        return_exceptions=True,
    )
    # The handle is taken, and one of the others claims the invite.
    bob, *others = [isinstance(outcome, Exception) for outcome in outcomes]
    assert (bob, sorted(others)) == (True, [False, True])
    assert await office.rows("SELECT COUNT(*) FROM messages") == [(1,)]


async def test_an_invite_without_a_message_or_inviter_delivers_nothing(office, alice):
    for inviter, name in ((alice, "bob"), (None, "carol")):
        code = await office.accounts.create_invite(inviter)
        registered = await office.accounts.register(
            name, invite_code=code, also=office.mail.welcome
        )
        assert (await office.mail.threads(registered.account)).threads == []
