"""What people try against each other: all at once, after a block, with what is not theirs."""

from __future__ import annotations

import asyncio

import pytest

from tests.mcp_harness import INVALID, Meeting, one_era

KEY = "B" * 42 + "A="
PAYLOAD = {"ciphertext": "A" * 24, "nonce": "A" * 32, "sender_public_key": KEY}

BAD_PARTS = {
    "ciphertext": ("", "A", "A" * 23, "not base64!", "QUJD\n", "QUJDRA", "\uff21" * 24, "-_-_"),
    "nonce": ("", "A" * 28, "A" * 36, "A" * 31, "!" * 32, "A" * 3200),
    "sender_public_key": ("", "A" * 44, "A" * 40, "A" * 43, KEY + KEY, "*" * 43 + "="),
}
"""No base64, or bytes of another number: a nonce has 24 and a key 32."""


@pytest.mark.requirement("crypto.bad-field-named")
@one_era
async def test_a_payload_that_is_none_is_refused_by_the_name_of_its_part(
    era: str, hub: Meeting
) -> None:
    alice, bob = await hub.people("alice", "bob")
    first = await alice.call("msg/send", to="bob", encrypted_payload=PAYLOAD)
    reply = {"message_id": first["message_id"]}
    for part, values in BAD_PARTS.items():
        for value in values:
            bad = {**PAYLOAD, part: value}
            for tool, to in (("msg/send", {"to": "bob"}), ("msg/reply", reply)):
                sentence = await alice.refused(tool, encrypted_payload=bad, **to)
                assert f"encrypted_payload.{part} " in sentence, value
    for value in filter(None, BAD_PARTS["sender_public_key"]):
        sentence = await alice.refused("msg/set_profile", client_public_key=value)
        assert sentence.startswith("client_public_key "), value
    assert len((await bob.call("msg/inbox"))["messages"]) == 1


@pytest.mark.requirement("tool.send.both", "tool.send.neither")
@one_era
async def test_a_reply_has_a_body_or_a_payload_and_never_both(era: str, hub: Meeting) -> None:
    alice, _ = await hub.people("alice", "bob")
    sent = await alice.call("msg/send", to="bob", body="x")
    reply = {"message_id": sent["message_id"]}
    assert await alice.refused("msg/reply", **reply, body="x", encrypted_payload=PAYLOAD) == (
        "Provide either body or encrypted_payload, not both."
    )
    assert await alice.refused("msg/reply", **reply) == (
        "Either body or encrypted_payload is required."
    )
    too_long = await alice.refused("msg/reply", **reply, body="x" * 1_000_000)
    assert too_long.startswith("body has 1,000,000 characters; at most 100,000 are allowed.")
    assert await alice.refused("msg/reply", **reply, body="") == "body must not be empty."


@pytest.mark.requirement("tool.block.blocks", "tool.reply.as-send", "tool.block.one-way")
@one_era
async def test_whoever_is_blocked_can_no_longer_reply_either(era: str, hub: Meeting) -> None:
    alice, bob = await hub.people("alice", "bob")
    sent = await bob.call("msg/send", to="alice", body="Hello")
    reply = {"message_id": sent["message_id"], "body": "x"}
    await alice.call("msg/reply", **reply)
    await bob.call("msg/block", handle="alice")
    sentence = "Cannot send message to this user."
    assert await alice.refused("msg/reply", **reply) == sentence
    assert await alice.refused("msg/send", to="bob", body="x") == sentence
    own = (await alice.call("msg/inbox", thread_id=sent["thread_id"]))["messages"][0]
    assert await alice.refused("msg/reply", message_id=own["id"], body="x") == sentence
    assert len((await bob.call("msg/inbox"))["messages"]) == 1
    await bob.call("msg/reply", **reply)
    await bob.call("msg/block", handle="alice", action="unblock")
    for privacy in ("contacts_only", "private"):
        await bob.call("msg/set_profile", privacy=privacy)
        assert await alice.refused("msg/reply", **reply) == sentence
    await bob.call("msg/add_contact", handle="alice")
    await alice.call("msg/reply", **reply)


@pytest.mark.requirement("tool.send.not-found", "auth.old-token-stops")
@one_era
async def test_nothing_is_sent_to_or_by_whoever_has_left(era: str, hub: Meeting) -> None:
    alice, bob = await hub.people("alice", "bob")
    sent = await alice.call("msg/send", to="bob", body="Hello")
    answer = await bob.call("msg/reply", message_id=sent["message_id"], body="Bye")
    await bob.call("msg/delete_account", confirm="bob")
    assert await alice.refused("msg/send", to="bob", body="x") == "User not found."
    for message_id, sentence in (
        (sent["message_id"], "User not found."),
        (answer["message_id"], "Message not found."),
    ):
        assert await alice.refused("msg/reply", message_id=message_id, body="x") == sentence
    refused = await bob.refused("msg/send", to="alice", body="x")
    assert refused == INVALID
    assert not (await alice.call("msg/inbox"))["messages"]


@pytest.mark.requirement("tool.reply.access-denied")
@one_era
async def test_nobody_refers_to_or_pages_through_what_is_not_theirs(era: str, hub: Meeting) -> None:
    alice, bob, mallory = await hub.people("alice", "bob", "mallory")
    sent = [await alice.call("msg/send", to="bob", body=f"{n}") for n in range(3)]
    refused = await mallory.refused("msg/send", to="bob", body="x", reply_to=sent[0]["message_id"])
    assert refused == "Message not found."
    theirs = (await bob.call("msg/inbox", limit=1, peek=True))["next_cursor"]
    assert "cursor" in await mallory.refused("msg/inbox", cursor=theirs)
    assert "cursor" in await bob.refused("msg/threads", cursor=theirs)
    assert (await bob.call("msg/digest"))["total_unread"] == 3
    assert not (await mallory.call("msg/threads"))["threads"]


@pytest.mark.requirement("recovery.five-failures")
@one_era
@pytest.mark.settings(rate_limits="on")
async def test_codes_guessed_at_the_same_moment_from_many_connections_are_counted_together(
    era: str, hub: Meeting
) -> None:
    alice = await hub.person("alice")
    guessers = [await hub.stranger() for _ in range(8)]
    guesses = [
        each.refused("msg/recover", handle=handle, recovery_code=f"AAAA-BBBB-CCC{letter}")
        for each in guessers
        for handle, letter in (("alice", "A"), ("@Alice", "B"), ("ALICE", "C"))
    ]
    told = await asyncio.gather(*guesses)
    assert told.count("Invalid recovery code.") == 5
    assert {sentence.partition(".")[0] for sentence in told} == {
        "Invalid recovery code",
        "Rate limit exceeded",
    }
    assert (await alice.call("msg/whoami"))["handle"] == "alice"


@pytest.mark.requirement("invite.claimed-once")
@one_era
@pytest.mark.settings(registration="invite")
async def test_an_invite_claimed_at_the_same_moment_from_several_connections_is_claimed_once(
    era: str, hub: Meeting
) -> None:
    code = await hub.hub.accounts.create_invite(None)
    alice = await hub.person("alice", invite_code=code)
    invited = await alice.call("msg/invite", message="Welcome")
    strangers = [await hub.stranger() for _ in range(4)]
    calls = [
        each.result(
            "msg/register",
            {"handle": f"guest_{number}", "invite_code": invited["invite_code"]},
        )
        for number, each in enumerate(strangers)
    ]
    results = await asyncio.gather(*calls)
    made = [payload for payload, is_error in results if not is_error]
    assert len(made) == 1
    assert {payload["error"] for payload, is_error in results if is_error} == {
        "This invite has already been claimed."
    }
    assert await hub.hub.accounts.count() == 2
    guest = await hub.returning(made[0]["token"])
    (welcome,) = (await guest.call("msg/inbox"))["messages"]
    assert welcome["body"] == "Welcome"


@pytest.mark.requirement("thread.first-messages-race")
@one_era
async def test_first_messages_that_cross_at_the_same_moment_make_one_thread(
    era: str, hub: Meeting
) -> None:
    alice, bob = await hub.people("alice", "bob")
    again = await hub.returning(alice.token)
    sent = await asyncio.gather(
        alice.call("msg/send", to="bob", body="From Alice"),
        bob.call("msg/send", to="alice", body="From Bob"),
        again.call("msg/send", to="bob", body="From her other device"),
    )
    assert len({each["thread_id"] for each in sent}) == 1
    for each, unread in ((alice, 1), (bob, 2)):
        (thread,) = (await each.call("msg/threads"))["threads"]
        assert thread["unread_count"] == unread
        shown = await each.call("msg/thread", thread_id=thread["id"])
        assert len(shown["messages"]) == 3


@pytest.mark.requirement("tool.search-users.literal")
@one_era
async def test_percent_and_underscore_in_a_search_are_themselves(era: str, hub: Meeting) -> None:
    alice, _, _ = await hub.people("alice", "bob", "b_b")
    carol = await hub.person("carol")
    await carol.call("msg/set_profile", display_name="100% Carol")

    async def found(query: str) -> list[str]:
        results = (await alice.call("msg/search_users", query=query))["results"]
        return sorted(result["handle"] for result in results)

    for query in ("%", "0%", "100%"):
        assert await found(query) == ["carol"]
    for query in ("_", "b_b"):
        assert await found(query) == ["b_b"]
    for query in ("%%", "a%e", "___", "*", "'", '"', "\\", "' OR 1=1 --", "NEAR(", "\x00"):
        assert await found(query) == [], query
