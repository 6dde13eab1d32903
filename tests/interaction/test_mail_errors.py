"""Every error of the tools, in the words of the specification: one body for both eras."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp_harness import INVALID, both_eras, one_era

NOWHERE = "00000000-0000-4000-8000-000000000000"
SPECIFICATION = json.loads(
    (Path(__file__).parents[1] / "operations/specification.json").read_text()
)
WITHOUT_TOKEN = {name: tool for name, tool in SPECIFICATION.items() if tool["authentication"]}
BEYOND = (
    *("msg/delete_message", "msg/delete_thread", "msg/delete_account"),
    *("msg/remove_contact", "msg/whoami", "msg/thread"),
)
NEEDS_A_TOKEN = [
    *("send", "inbox", "reply", "threads", "digest", "contacts", "add-contact", "lookup"),
    *("search-users", "block", "invite", "set-profile", "change-handle", "open-inbox"),
]


@pytest.mark.requirement(
    "auth.unauthenticated-tools",
    "mcp.error-shape",
    *(f"tool.{name}.unauthenticated" for name in NEEDS_A_TOKEN),
)
@both_eras
async def test_without_a_token_every_tool_but_two_wants_one(hub):
    for query in ("", "?token=", "?token=nonsense", f"?token=sk_{'0' * 64}"):
        stranger = await hub.stranger(query)
        said = INVALID if query.partition("=")[2] else "Authentication required."
        for name in (*WITHOUT_TOKEN, *BEYOND):
            assert await stranger.refused(name, nonsense=1) == said, name
    assert await stranger.refused("msg/register") == "Missing argument: handle."
    assert await stranger.refused("msg/recover") == "Missing argument: handle."


TOO_LONG = "body has 1,000,000 characters; at most 100,000 are allowed."
WRONG_CODE = {"recovery_code": "AAAA-BBBB-CCCC"}
KEY = "B" * 42 + "A="
ZEROS = "A" * 43 + "="
BOX = {"ciphertext": "A" * 24, "nonce": "A" * 32, "sender_public_key": KEY}
# What alice is told of each mistake: the whole sentence, or how it begins.
REFUSALS: list[tuple[str, dict[str, Any], str]] = [
    ("msg/register", {"handle": "1abc"}, "Invalid handle. Must be 3-20 characters, lowercase "),
    ("msg/register", {"handle": "@ALICE"}, "Handle already taken."),
    ("msg/register", {"handle": "gateway"}, "Handle already taken."),
    ("msg/register", {"handle": "eve", "client_public_key": ZEROS}, "client_public_key must "),
    ("msg/recover", {"handle": "nobody", **WRONG_CODE}, "Handle not found."),
    ("msg/recover", {"handle": "alice", **WRONG_CODE}, "Invalid recovery code."),
    ("msg/send", {"to": "bob"}, "Either body or encrypted_payload is required."),
    (
        "msg/send",
        {"to": "bob", "body": "x", "encrypted_payload": BOX},
        "Provide either body or encrypted_payload, not both.",
    ),
    ("msg/send", {"to": "no body", "body": "x"}, "User not found."),
    ("msg/send", {"to": "alice", "body": "x"}, "Cannot send a message to yourself."),
    ("msg/send", {"to": "carol", "body": "x"}, "Cannot send message to this user."),
    ("msg/send", {"to": "bob", "body": ""}, "body must not be empty."),
    ("msg/send", {"to": "bob", "body": "x" * 1_000_000}, TOO_LONG),
    ("msg/send", {"to": "bob", "text": "x"}, "Unknown argument: text."),
    ("msg/lookup", {"handle": "nobody"}, "User not found."),
    ("msg/lookup", {"handle": "carol"}, "User not found."),
    ("msg/add_contact", {"handle": "nobody"}, "User not found."),
    ("msg/add_contact", {"handle": "@Alice"}, "Cannot add yourself as a contact."),
    ("msg/remove_contact", {"handle": "bob"}, "Contact not found."),
    ("msg/block", {"handle": "nobody"}, "User not found."),
    ("msg/block", {"handle": "bob", "action": "kick"}, "action must be block or unblock."),
    ("msg/set_profile", {}, "No fields to update."),
    ("msg/set_profile", {"privacy": "secret"}, "Invalid privacy level."),
    ("msg/set_profile", {"client_public_key": ZEROS}, "client_public_key must "),
    ("msg/change_handle", {"new_handle": "x"}, "Invalid handle format."),
    ("msg/change_handle", {"new_handle": "bob"}, "Handle already taken."),
    ("msg/inbox", {"limit": 101}, "limit must be an integer from 1 to 100."),
    ("msg/inbox", {"cursor": "nonsense"}, "cursor must be the next_cursor of "),
    ("msg/contacts", {"cursor": "nonsense"}, "cursor must be one that an earlier page gave."),
]


@pytest.mark.requirement("mcp.argument-errors", "mcp.unknown-arguments", "crypto.no-box")
@one_era
async def test_each_mistake_is_told_in_the_words_of_the_specification(hub):
    alice, _, carol = await hub.people("alice", "bob", "carol")
    await carol.call("msg/set_profile", privacy="private")
    for tool, arguments, sentence in REFUSALS:
        told, is_error = await alice.result(tool, arguments)
        assert is_error, tool
        assert told["error"].startswith(sentence), told
    for part, value in {"ciphertext": "AA==", "nonce": "AAAA", "sender_public_key": ZEROS}.items():
        told = await alice.refused("msg/send", to="bob", encrypted_payload={**BOX, part: value})
        assert told.startswith(f"encrypted_payload.{part} must ")
    for before in (10**30, -(10**30)):
        assert (await alice.call("msg/inbox", before=before))["messages"] == []


@one_era
async def test_threads_and_messages_of_others_stay_theirs(hub):
    alice, bob, mallory = await hub.people("alice", "bob", "mallory")
    sent = await alice.call("msg/send", to="bob", body="For Bob alone")
    for tool in ("inbox", "thread", "mark_read", "archive", "star", "mute", "delete_thread"):
        for id_, sentence in (
            (NOWHERE, "Thread not found."),
            ("'; --\x00" * 1_000, "Thread not found."),
            (sent["thread_id"], "Access denied."),
        ):
            assert await mallory.refused(f"msg/{tool}", thread_id=id_) == sentence, tool
    for tool, more in (("reply", {"body": "x"}), ("delete_message", {})):
        for id_, sentence in (
            (NOWHERE, "Message not found."),
            (sent["message_id"], "Access denied."),
        ):
            assert await mallory.refused(f"msg/{tool}", message_id=id_, **more) == sentence
    refused = await mallory.refused("msg/send", to="bob", body="x", reply_to=sent["message_id"])
    assert refused == "Message not found."
    await alice.call("msg/send", to="bob", body="Another")
    theirs = (await bob.call("msg/inbox", limit=1, peek=True))["next_cursor"]
    assert "cursor" in await mallory.refused("msg/inbox", cursor=theirs)


@both_eras
async def test_an_unknown_tool_is_an_error_of_the_protocol(hub):
    alice = await hub.person("alice")
    for name in ("msg/nothing", "msg", "", "msg:send", "MSG_SEND", "x" * 10_000):
        with pytest.raises(MCPError) as refused:
            await alice.client.call_tool(name, {})
        assert refused.value.error.code == -32602
        assert refused.value.error.message.startswith("Unknown tool: ")
        assert len(refused.value.error.message) < 80
