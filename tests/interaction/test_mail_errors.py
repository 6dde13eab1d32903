"""Every error of the tools, in the words of the specification: one body for both eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp_harness import INVALID, Meeting, both_eras, one_era

NOWHERE = "00000000-0000-4000-8000-000000000000"
SPECIFICATION = json.loads(
    (Path(__file__).parents[1] / "operations/specification.json").read_text()
)
WITHOUT_TOKEN = {name: tool for name, tool in SPECIFICATION.items() if tool["authentication"]}
BEYOND = (
    "msg/delete_message",
    "msg/delete_thread",
    "msg/delete_account",
    "msg/remove_contact",
    "msg/whoami",
    "msg/thread",
)


@pytest.mark.requirement(
    "auth.unauthenticated-tools",
    "mcp.error-shape",
    *(
        f"tool.{name}.unauthenticated"
        for name in (
            "send",
            "inbox",
            "reply",
            "threads",
            "digest",
            "contacts",
            "add-contact",
            "lookup",
            "search-users",
            "block",
            "invite",
            "set-profile",
            "change-handle",
            "open-inbox",
        )
    ),
)
@both_eras
async def test_without_a_token_every_tool_but_two_wants_one(era: str, hub: Meeting) -> None:
    for query in ("", "?token=", "?token=nonsense", f"?token=sk_{'0' * 64}"):
        stranger = await hub.stranger(query)
        said = INVALID if query.partition("=")[2] else "Authentication required."
        for name in (*WITHOUT_TOKEN, *BEYOND):
            assert await stranger.refused(name, nonsense=1) == said, name
    assert await stranger.refused("msg/register") == "Missing argument: handle."
    assert await stranger.refused("msg/recover") == "Missing argument: handle."


@pytest.mark.requirement(
    "tool.register.invalid-handle",
    "tool.register.taken",
    "tool.recover.not-found",
    "tool.recover.wrong-code",
    "handle.reserved",
)
@one_era
async def test_registration_and_recovery_say_what_is_wrong(era: str, hub: Meeting) -> None:
    await hub.person("alice")
    stranger = await hub.stranger()
    for bad in ("ab", "1abc", "a" * 21, "a-b-c", "alice\n", "", "älice", "@@abc"):
        assert await stranger.refused("msg/register", handle=bad) == (
            "Invalid handle. Must be 3-20 characters, lowercase alphanumeric and "
            "underscores, starting with a letter."
        )
    for taken in ("alice", "@ALICE", "msg", "gateway", "http"):
        sentence = await stranger.refused("msg/register", handle=taken)
        assert sentence == "Handle already taken."
    wrong = {"recovery_code": "AAAA-BBBB-CCCC"}
    assert await stranger.refused("msg/recover", handle="nobody", **wrong) == ("Handle not found.")
    for code in ("AAAA-BBBB-CCCC", "", "x" * 1000, "\N{KELVIN SIGN}"):
        sentence = await stranger.refused("msg/recover", handle="alice", recovery_code=code)
        assert sentence == "Invalid recovery code."


@pytest.mark.requirement(
    "tool.send.neither",
    "tool.send.both",
    "tool.send.not-found",
    "tool.send.blocked",
    "tool.send.privacy",
    "tool.send.self",
    "crypto.bad-field-named",
)
@one_era
async def test_sending_says_what_is_wrong(era: str, hub: Meeting) -> None:
    alice, bob, carol = await hub.people("alice", "bob", "carol")
    key = "B" * 42 + "A="
    payload = {"ciphertext": "A" * 24, "nonce": "A" * 32, "sender_public_key": key}

    async def refused(**arguments: Any) -> str:
        return await alice.refused("msg/send", **arguments)

    assert await refused(to="bob") == "Either body or encrypted_payload is required."
    assert await refused(to="bob", body="x", encrypted_payload=payload) == (
        "Provide either body or encrypted_payload, not both."
    )
    assert await refused(to="nobody", body="x") == "User not found."
    assert await refused(to="no body", body="x") == "User not found."
    assert await refused(to="alice", body="x") == "Cannot send a message to yourself."
    await bob.call("msg/block", handle="alice")
    assert await refused(to="bob", body="x") == "Cannot send message to this user."
    for privacy in ("contacts_only", "private"):
        await carol.call("msg/set_profile", privacy=privacy)
        assert await refused(to="carol", body="x") == "Cannot send message to this user."
    for field in payload:
        bad = {**payload, field: "not base64!"}
        assert field in await refused(to="bob", encrypted_payload=bad)
    assert "nonce" in await refused(to="bob", encrypted_payload={**payload, "nonce": "AAAA"})


@pytest.mark.requirement(
    "tool.inbox.thread-not-found",
    "tool.inbox.access-denied",
    "tool.reply.not-found",
    "tool.reply.access-denied",
    "tool.mark-read.errors",
    "tool.archive.errors",
    "tool.star.errors",
    "tool.mute.errors",
)
@one_era
async def test_threads_and_messages_of_others_stay_theirs(era: str, hub: Meeting) -> None:
    alice, _, mallory = await hub.people("alice", "bob", "mallory")
    sent = await alice.call("msg/send", to="bob", body="For Bob alone")
    threads = (
        *("inbox", "thread", "mark_read", "archive", "star", "mute"),
        "delete_thread",
    )
    for tool in threads:
        for unknown in (NOWHERE, "", "x" * 10_000, "\x00", "'; --"):
            sentence = await mallory.refused(f"msg/{tool}", thread_id=unknown)
            assert sentence == "Thread not found.", tool
        sentence = await mallory.refused(f"msg/{tool}", thread_id=sent["thread_id"])
        assert sentence == "Access denied.", tool
    for tool, more in (("reply", {"body": "x"}), ("delete_message", {})):
        arguments: dict[str, Any] = {"message_id": NOWHERE, **more}
        assert await mallory.refused(f"msg/{tool}", **arguments) == "Message not found."
        arguments["message_id"] = sent["message_id"]
        assert await mallory.refused(f"msg/{tool}", **arguments) == "Access denied."
    stranger = await hub.stranger()
    for tool in ("mark_read", "archive", "star", "mute"):
        sentence = await stranger.refused(f"msg/{tool}", thread_id=sent["thread_id"])
        assert sentence == "Authentication required."


@pytest.mark.requirement(
    "tool.add-contact.not-found",
    "tool.add-contact.self",
    "tool.lookup.not-found",
    "tool.lookup.privacy",
    "tool.block.not-found",
    "tool.set-profile.nothing",
    "tool.set-profile.invalid-privacy",
    "tool.change-handle.invalid",
    "tool.change-handle.taken",
)
@one_era
async def test_people_and_profiles_say_what_is_wrong(era: str, hub: Meeting) -> None:
    alice, bob = await hub.people("alice", "bob")
    await bob.call("msg/set_profile", privacy="private")
    for handle in ("nobody", "bob", "%", ""):
        assert await alice.refused("msg/lookup", handle=handle) == "User not found."
    assert await alice.refused("msg/add_contact", handle="nobody") == "User not found."
    assert await alice.refused("msg/remove_contact", handle="bob") == "Contact not found."
    assert await alice.refused("msg/block", handle="nobody") == "User not found."
    assert await alice.refused("msg/add_contact", handle="@Alice") == (
        "Cannot add yourself as a contact."
    )
    assert await alice.refused("msg/set_profile") == "No fields to update."
    sentence = await alice.refused("msg/set_profile", privacy="secret")
    assert sentence == "Invalid privacy level."
    refused = await alice.refused("msg/change_handle", new_handle="x")
    assert refused == "Invalid handle format."
    refused = await alice.refused("msg/change_handle", new_handle="bob")
    assert refused == "Handle already taken."


@pytest.mark.requirement("mcp.argument-errors", "mcp.unknown-arguments", "tool.inbox.limit")
@one_era
async def test_bad_arguments_are_named_in_a_tool_error(era: str, hub: Meeting) -> None:
    alice = await hub.person("alice")
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("msg/send", {}, "Missing argument: to."),
        ("msg/send", {"to": 7, "body": "x"}, "to must be a string."),
        ("msg/send", {"to": "bob", "body": ["x"]}, "body must be a string."),
        (
            "msg/send",
            {"to": "bob", "body": "x", "priority": "high"},
            "priority must be urgent, normal, low or fyi.",
        ),
        (
            "msg/send",
            {"to": "bob", "encrypted_payload": "x"},
            "encrypted_payload must be an object.",
        ),
        (
            "msg/send",
            {"to": "bob", "encrypted_payload": {"nonce": "x"}},
            "Missing argument: encrypted_payload.ciphertext.",
        ),
        (
            "msg/send",
            {
                "to": "bob",
                "encrypted_payload": {
                    "ciphertext": "",
                    "nonce": "",
                    "sender_public_key": "",
                    "extra": 1,
                },
            },
            "Unknown argument: encrypted_payload.extra.",
        ),
        ("msg/send", {"to": "bob", "text": "x"}, "Unknown argument: text."),
        ("msg/whoami", {"b": 1, "a": 2}, "Unknown arguments: b, a."),
        ("msg/inbox", {"limit": 0}, "limit must be an integer from 1 to 100."),
        ("msg/inbox", {"limit": 101}, "limit must be an integer from 1 to 100."),
        ("msg/inbox", {"limit": True}, "limit must be an integer from 1 to 100."),
        ("msg/inbox", {"limit": "5"}, "limit must be an integer from 1 to 100."),
        ("msg/inbox", {"limit": 1.5}, "limit must be an integer from 1 to 100."),
        ("msg/inbox", {"before": "now"}, "before must be an integer."),
        ("msg/inbox", {"wait": 56}, "wait must be an integer from 0 to 55."),
        ("msg/inbox", {"peek": "yes"}, "peek must be true or false."),
        (
            "msg/block",
            {"handle": "bob", "action": "kick"},
            "action must be block or unblock.",
        ),
        (
            "msg/threads",
            {"state": "lost"},
            "state must be active, archived, muted or starred.",
        ),
    ]
    for tool, arguments, sentence in cases:
        assert await alice.result(tool, arguments) == ({"error": sentence}, True)
    assert "cursor" in await alice.refused("msg/inbox", cursor="nonsense")
    assert "cursor" in await alice.refused("msg/contacts", cursor="nonsense")


@one_era
async def test_what_means_the_same_is_taken(era: str, hub: Meeting) -> None:
    alice = await hub.person("alice")
    for arguments in (None, {}, {"limit": 50.0, "thread_id": None}, {"before": 10**30}):
        payload, is_error = await alice.result("msg/inbox", arguments)
        assert (payload["messages"], is_error) == ([], False)
    assert not (await alice.call("msg/inbox", before=-(10**30)))["messages"]


@both_eras
async def test_an_unknown_tool_is_an_error_of_the_protocol(era: str, hub: Meeting) -> None:
    alice = await hub.person("alice")
    for name in ("msg/nothing", "msg", "", "msg:send", "MSG_SEND", "x" * 10_000):
        with pytest.raises(MCPError) as refused:
            await alice.client.call_tool(name, {})
        assert refused.value.error.code == -32602
        assert refused.value.error.message.startswith("Unknown tool: ")
        assert len(refused.value.error.message) < 80


@pytest.mark.requirement("crypto.no-box")
@one_era
async def test_what_is_no_box_and_what_is_no_key_is_refused_wherever_it_is_given(
    era: str, hub: Meeting
) -> None:
    alice, bob = await hub.people("alice", "bob")
    stranger = await hub.stranger()
    sent = await bob.call("msg/send", to="alice", body="hello")
    zeros, key = "A" * 43 + "=", "B" * 42 + "A="
    whole = {"ciphertext": "A" * 24, "nonce": "A" * 32, "sender_public_key": key}
    bad = {"ciphertext": "AA==", "nonce": "AAAA", "sender_public_key": zeros}
    for field, value in bad.items():
        payload = {**whole, field: value}
        for tool, to in (
            ("msg/send", {"to": "bob"}),
            ("msg/reply", {"message_id": sent["message_id"]}),
        ):
            said = await alice.refused(tool, **to, encrypted_payload=payload)
            assert said.startswith(f"encrypted_payload.{field} must ")
    said = await alice.refused("msg/set_profile", client_public_key=zeros)
    assert said.startswith("client_public_key must ")
    said = await stranger.refused("msg/register", handle="eve", client_public_key=zeros)
    assert said.startswith("client_public_key must ")
    assert (await bob.call("msg/digest"))["total_unread"] == 0
