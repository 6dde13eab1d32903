"""Idempotency keys: what is sent again under the same key is sent once."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from folkmoot.core import errors as e
from folkmoot.mail import Sent
from folkmoot.mail.limits import IDEMPOTENCY_SECONDS
from tests.mail.support import check_books, opened, payload, refused, waiting

once = pytest.mark.requirement("message.idempotency-key")


@once
async def test_the_same_key_is_answered_with_the_first_message(office, alice, bob):
    first = await office.mail.send(alice, "bob", body="hello", idempotency_key="k1")
    office.clock.seconds += 60
    assert (await office.mail.send(alice, "@Bob", body="hello", idempotency_key="k1")) == first
    other = await office.mail.send(alice, "bob", body="hello", idempotency_key="k2")
    assert other.message_id != first.message_id
    plain = await office.mail.send(alice, "bob", body="hello")
    assert plain.message_id not in {first.message_id, other.message_id}
    assert await office.bodies(bob) == ["hello"] * 3
    await check_books(office)


@once
async def test_a_key_is_known_after_a_restart(tmp_path):
    sent: list[Sent] = []
    for _ in range(2):
        async with opened(tmp_path) as office:
            if not sent:
                await office.people("alice", "bob")
            alice, bob = [
                await office.store.read(partial(office.accounts.resolve, handle=handle))
                for handle in ("alice", "bob")
            ]
            sent.append(await office.mail.send(alice, "bob", body="hello", idempotency_key="k"))
            assert await office.bodies(bob) == ["hello"]
    assert sent[0] == sent[1]


@once
async def test_attempts_at_the_same_moment_send_one_message(office, alice, bob):
    attempts = [
        office.mail.send(alice, "bob", body="hello", idempotency_key="k") for _ in range(20)
    ]
    answers = await asyncio.gather(*attempts)
    assert len({answer.message_id for answer in answers}) == 1
    assert await office.bodies(bob) == ["hello"]
    await check_books(office)


@once
async def test_whoever_waits_hears_of_a_repeated_message_once(office, alice, bob):
    await office.mail.send(alice, "bob", body="hello", idempotency_key="k")
    await office.read(bob)
    hearing = asyncio.create_task(office.mail.inbox(bob, wait=50))
    await waiting(office)
    await office.mail.send(alice, "bob", body="hello", idempotency_key="k")
    await office.mail.send(alice, "bob", body="goodbye", idempotency_key="k2")
    assert [message.body for message in (await hearing).messages] == ["goodbye"]


@once
async def test_a_key_ends_after_a_day_and_is_forgotten(office, alice, bob):
    first = await office.mail.send(alice, "bob", body="hello", idempotency_key="k")
    for number in range(40):
        await office.mail.send(alice, "bob", body="hello", idempotency_key=f"k{number}")
    office.clock.seconds += IDEMPOTENCY_SECONDS - 1
    assert (await office.mail.send(alice, "bob", body="hello", idempotency_key="k")) == first
    office.clock.seconds += 1
    for number in range(3):
        fresh = await office.mail.send(alice, "bob", body="another", idempotency_key=f"k{number}")
        assert fresh.message_id != first.message_id
    assert await office.rows("SELECT COUNT(*) FROM sent_keys") == [(3,)]


@once
async def test_a_clock_that_is_set_back_forgets_no_key(office, alice, bob):
    first = await office.mail.send(alice, "bob", body="hello", idempotency_key="k")
    office.clock.seconds -= 7 * IDEMPOTENCY_SECONDS
    assert (await office.mail.send(alice, "bob", body="hello", idempotency_key="k")) == first
    assert await office.bodies(bob) == ["hello"]


@once
async def test_a_key_is_its_senders_own(office, alice, bob, carol):
    first = await office.mail.send(alice, "bob", body="hello", idempotency_key="k")
    other = await office.mail.send(carol, "bob", body="hello", idempotency_key="k")
    assert first.message_id != other.message_id
    assert await office.bodies(bob) == ["hello", "hello"]


@once
async def test_a_key_that_comes_with_another_message_is_refused(office, alice, bob, carol):
    first = await office.mail.send(alice, "bob", body="hello", idempotency_key="k")
    for to, words in (("bob", "goodbye"), ("carol", "hello")):
        with pytest.raises(e.ArgumentInvalid, match="was used for another message") as caught:
            await office.mail.send(alice, to, body=words, idempotency_key="k")
        assert caught.value.data["field"] == "idempotency_key"
    with pytest.raises(e.ArgumentInvalid, match="was used for another message"):
        await office.mail.reply(alice, first.message_id, body="hello", idempotency_key="k")
    assert await office.bodies(bob) == ["hello"]
    assert await office.bodies(carol) == []


@once
@pytest.mark.parametrize("key", ["", "k" * 256], ids=["empty", "too long"])
async def test_a_key_has_1_to_255_characters(office, alice, bob, key):
    sent = await office.mail.send(alice, "bob", body="hello", idempotency_key="k" * 255)
    with pytest.raises(e.ArgumentInvalid, match="idempotency_key must have 1 to 255 characters"):
        await office.mail.send(alice, "bob", body="hello", idempotency_key=key)
    with pytest.raises(e.ArgumentInvalid, match="idempotency_key must have 1 to 255 characters"):
        await office.mail.reply(alice, sent.message_id, body="hello", idempotency_key=key)
    assert await office.bodies(bob) == ["hello"]


@once
async def test_a_reply_has_its_key_too(office, alice, bob):
    sent = await office.mail.send(alice, "bob", body="hello")
    first = await office.mail.reply(bob, sent.message_id, body="yes", idempotency_key="k")
    assert (await office.mail.reply(bob, sent.message_id, body="yes", idempotency_key="k")) == first
    assert await office.bodies(alice) == ["yes"]


@once
async def test_a_client_that_encrypts_may_make_a_new_box_for_each_attempt(office, alice, bob):
    boxes = [payload(nonce=letter * 31 + "A") for letter in "AB"]
    answers = [
        await office.mail.send(alice, "bob", encrypted_payload=box, idempotency_key="k")
        for box in boxes
    ]
    assert answers[0] == answers[1]
    [message] = (await office.mail.inbox(bob)).messages
    assert message.encrypted_payload == boxes[0]


@once
async def test_a_repeated_message_is_answered_whatever_has_changed_since(office, monkeypatch):
    alice, bob = await office.people("alice", "bob")
    first = await office.mail.send(alice, "bob", body="hello", idempotency_key="k")
    await office.mail.delete_message(alice, first.message_id)
    await office.mail.delete_message(bob, first.message_id)
    await office.accounts.block(bob, "alice")

    def full() -> None:
        raise e.QuotaExceeded("The disk is full.")

    with pytest.raises(e.CannotSend):
        await office.mail.send(alice, "bob", body="hello", idempotency_key="another")
    monkeypatch.setattr(office.mail.quotas, "check_disk", full)
    assert (await office.mail.send(alice, "bob", body="hello", idempotency_key="k")) == first
    assert await office.bodies(bob) == []


@once
async def test_what_was_refused_can_be_tried_again_under_its_key(office, alice, bob):
    await office.accounts.block(bob, "alice")
    await refused(office.mail.send(alice, "bob", body="hello", idempotency_key="k"), e.CannotSend)
    await office.accounts.unblock(bob, "alice")
    await office.mail.send(alice, "bob", body="hello", idempotency_key="k")
    assert await office.bodies(bob) == ["hello"]


@once
async def test_nothing_of_a_message_is_readable_beside_its_key_and_it_goes_with_the_account(office):
    alice, bob = await office.people("alice", "bob")
    sent = await office.mail.send(alice, "bob", body="a secret", idempotency_key="a secret key")
    [row] = await office.rows("SELECT * FROM sent_keys")
    stored = " ".join(map(str, row))
    for word in ("secret", "bob", bob.id, sent.message_id, sent.thread_id):
        assert word not in stored
    await office.mail.delete_account(alice)
    assert await office.rows("SELECT * FROM sent_keys") == []
