"""Every tool, as someone at an MCP client meets it: one body for both eras."""

from __future__ import annotations

import re

import pytest

from folkmoot.web.clients import CLIENTS
from tests.harness import ask
from tests.mcp_harness import INVALID, both_eras

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
KEY = "B" * 42 + "A="
HOW_TO_STAY = ["server_url", "settings", "next"]


@pytest.mark.requirement(
    "tool.register.output",
    "auth.token-format",
    "recovery.code-format",
    "mcp.result-shape",
    "auth.client-config",
    "auth.query-token",
    "auth.registration-open",
)
@both_eras
async def test_someone_registers_and_comes_back_with_the_token(hub):
    stranger = await hub.stranger()
    made = await stranger.call("msg/register", handle="@Alice", client_public_key=None)
    seed = ["handle", "token", "recovery_code", "public_key", "message"]
    assert list(made) == [*seed, *HOW_TO_STAY]
    assert made["handle"] == "alice"
    assert re.fullmatch(r"sk_[0-9a-f]{64}", made["token"])
    assert re.fullmatch(r"([A-HJ-NP-Z2-9]{4}-){2}[A-HJ-NP-Z2-9]{4}", made["recovery_code"])
    assert len(made["public_key"]) == 44
    assert made["message"] == (
        "Account created. Save the token and recovery_code to your persistent memory immediately."
    )
    me = await (await hub.returning(made["token"])).call("msg/whoami")
    assert me["handle"] == me["display_name"] == "alice"
    assert (me["bio"], me["status"], me["privacy"]) == ("", "", "public")
    assert (me["account_type"], me["public_key"]) == ("person", made["public_key"])


@pytest.mark.requirement("auth.says-what-next", "tool.recover.output")
@both_eras
async def test_whoever_registers_or_recovers_is_told_how_to_stay_signed_in(era, hub):
    stranger = await hub.stranger()
    made = await stranger.call("msg/register", handle="alice")
    given = {"handle": "alice", "recovery_code": made["recovery_code"]}
    another = await hub.stranger()
    for who, answer in (
        (stranger, made),
        (another, await another.call("msg/recover", **given)),
    ):
        token = answer["token"]
        assert answer["server_url"] == f"{hub.url}?token={token}"
        # What `folkmoot connect` writes, and the first page shows.
        assert answer["settings"] == CLIENTS["mcpservers"].settings(hub.url, token)
        assert "restart the client" in answer["next"]
        if era == "handshake":
            assert answer["next"].startswith("You are signed in as @alice")
        else:
            assert answer["next"].startswith("You are not signed in yet")
            assert await who.refused("msg/whoami") == "Authentication required."
    assert list(answer) == ["handle", "token", "message", *HOW_TO_STAY]
    assert answer["message"] == (
        "Account recovered. Save the new token to your persistent memory. The old token "
        "is now invalid."
    )
    entry = answer["settings"]["mcpServers"]["folkmoot"]
    for restarted in (
        await hub.enter(entry["url"], headers=entry["headers"]),
        await hub.enter(answer["server_url"]),
    ):
        assert (await restarted.call("msg/whoami"))["handle"] == "alice"


@pytest.mark.requirement("auth.says-what-next")
@both_eras
async def test_a_client_that_goes_on_sending_another_token_is_told_so(hub):
    alice = await hub.person("alice")
    second = await alice.call("msg/register", handle="alice2")
    assert second["next"].startswith("This client stays signed in as @alice,")
    assert (await alice.call("msg/whoami"))["handle"] == "alice"
    given = {"handle": "alice", "recovery_code": alice.recovery_code}
    recovered = await alice.call("msg/recover", **given)
    assert recovered["next"].startswith("This client still sends the old token")
    assert await alice.refused("msg/whoami") == INVALID


@pytest.mark.requirement("auth.says-what-next")
@pytest.mark.settings(public_url="https://moot.example/", registration="open")
async def test_the_address_to_stay_signed_in_at_is_the_public_one(hub):
    made = await (await hub.stranger()).call("msg/register", handle="alice")
    assert made["server_url"] == f"https://moot.example/mcp?token={made['token']}"


@pytest.mark.requirement(
    "tool.send.output",
    "tool.inbox.output",
    "tool.reply.output",
    "tool.reply.routes",
    "tool.inbox.thread",
    "message-record.ids",
    "message-record.epoch-seconds",
    "crypto.mode-indicator",
    "thread.both-sides-shown",
)
@both_eras
async def test_two_people_write_read_and_answer(hub):
    alice, bob = await hub.people("alice", "bob")
    hello = {"body": "Hello Bob!", "priority": "urgent", "idempotency_key": "letter-1"}
    sent = await alice.call("msg/send", to="@Bob@localhost", **hello)
    assert await alice.call("msg/send", to="bob", **hello) == sent
    assert list(sent) == ["message_id", "thread_id", "to", "encryption_mode", "created_at"]
    assert (sent["to"], sent["encryption_mode"]) == ("bob", "server_assisted")
    assert UUID.fullmatch(sent["message_id"])
    assert UUID.fullmatch(sent["thread_id"])
    assert type(sent["created_at"]) is int
    (message,) = (await bob.call("msg/inbox"))["messages"]
    assert message == {
        "id": sent["message_id"],
        "thread_id": sent["thread_id"],
        "from_handle": "alice",
        "to_handle": "bob",
        "body": "Hello Bob!",
        "priority": "urgent",
        "encryption_mode": "server_assisted",
        "reply_to": None,
        "created_at": sent["created_at"],
        "unread": True,
    }
    answer = await bob.call("msg/reply", message_id=message["id"], body="Hello Alice!")
    assert list(answer) == list(sent)
    assert answer["thread_id"] == sent["thread_id"]
    whole = await alice.call("msg/thread", thread_id=sent["thread_id"])
    assert [m["body"] for m in whole["messages"]] == ["Hello Alice!", "Hello Bob!"]
    assert whole["messages"][0]["reply_to"] == message["id"]
    assert whole["thread"]["subject"] == "Hello Bob!"
    same = await alice.call("msg/inbox", thread_id=sent["thread_id"], limit=1)
    assert [m["body"] for m in same["messages"]] == ["Hello Alice!"]
    older = await alice.call("msg/inbox", thread_id=sent["thread_id"], cursor=same["next_cursor"])
    assert [m["body"] for m in older["messages"]] == ["Hello Bob!"]
    assert older["next_cursor"] is None


@pytest.mark.requirement(
    "tool.mark-read.output",
    "tool.archive.output",
    "tool.archive.undo",
    "tool.star.output",
    "tool.star.undo",
    "tool.mute.output",
    "tool.mute.undo",
    "mcp.app-only-callable",
)
@both_eras
async def test_threads_are_marked_archived_starred_and_muted(hub):
    alice, bob = await hub.people("alice", "bob")
    thread_id = (await alice.call("msg/send", to="bob", body="Hello"))["thread_id"]
    assert await bob.call("msg/mark_read", thread_id=thread_id) == {
        "thread_id": thread_id,
        "message": "Thread marked as read.",
    }
    assert (await bob.call("msg/digest"))["total_unread"] == 0
    for tool, state in (("archive", "archived"), ("star", "starred"), ("mute", "muted")):
        assert await bob.call(f"msg/{tool}", thread_id=thread_id) == {
            "thread_id": thread_id,
            "state": state,
            "message": f"Thread {state}.",
        }
        assert (await bob.call("msg/threads", state=state))["threads"]
        undone = await bob.call(f"msg/{tool}", thread_id=thread_id, undo=True)
        assert (undone["state"], undone["message"]) == ("active", f"Thread un{state}.")


@pytest.mark.requirement(
    "tool.contacts.output",
    "tool.add-contact.output",
    "tool.lookup.output",
    "tool.lookup.never-secrets",
    "tool.search-users.output",
    "tool.block.output",
)
@both_eras
async def test_people_find_keep_and_block_each_other(hub):
    alice, bob = await hub.people("alice", "bob")
    added = {"contact": "bob", "nickname": "", "message": "Contact added."}
    assert await alice.call("msg/add_contact", handle="bob") == added
    await alice.call("msg/add_contact", handle="bob", nickname="Bobby")
    listed = await alice.call("msg/contacts")
    (contact,) = listed["contacts"]
    assert list(contact) == ["handle", "display_name", "nickname", "added_at"]
    assert (contact["handle"], contact["nickname"]) == ("bob", "Bobby")
    assert listed["next_cursor"] is None
    found = await alice.call("msg/lookup", handle="@Bob")
    shown = ("handle", "display_name", "bio", "status", "account_type", "public_key")
    assert [*found] == [*shown, "client_public_key", "payload_formats", "notice"]
    assert found["client_public_key"] is None
    results = (await alice.call("msg/search_users", query="BO"))["results"]
    assert [user["handle"] for user in results] == ["bob"]
    assert results[0].keys() >= {"handle", "display_name", "bio"}
    blocked = {"handle": "bob", "action": "block", "message": "User blocked."}
    assert await alice.call("msg/block", handle="bob") == blocked
    assert await alice.call("msg/blocks") == {"blocked": ["bob"], "next_cursor": None}
    sentence = await bob.refused("msg/send", to="alice", body="Hello?")
    assert sentence == "Cannot send message to this user."
    unblocked = await alice.call("msg/block", handle="bob", action="unblock")
    assert unblocked["message"] == "User unblocked."
    assert (await alice.call("msg/blocks"))["blocked"] == []
    removed = {"contact": "bob", "message": "Contact removed."}
    assert await alice.call("msg/remove_contact", handle="bob") == removed
    assert not (await alice.call("msg/contacts"))["contacts"]


@pytest.mark.requirement("tool.set-profile.output", "tool.change-handle.output")
@both_eras
async def test_a_profile_and_a_handle_change(hub):
    alice, bob = await hub.people("alice", "bob")
    changed = await alice.call(
        "msg/set_profile",
        display_name="Alice Wonderland",
        bio="Curiouser and curiouser",
        status="online",
        client_public_key=KEY,
    )
    assert (
        changed.items()
        >= {
            "handle": "alice",
            "display_name": "Alice Wonderland",
            "bio": "Curiouser and curiouser",
            "privacy": "public",
            "status": "online",
            "message": "Profile updated.",
        }.items()
    )
    moved = await alice.call("msg/change_handle", new_handle="alice_v2")
    assert (moved["old_handle"], moved["new_handle"]) == ("alice", "alice_v2")
    assert moved["message"] == "Handle changed. Old handle will redirect for 30 days."
    assert (await bob.call("msg/send", to="alice", body="Hi"))["to"] == "alice_v2"
    assert (await bob.call("msg/lookup", handle="alice"))["client_public_key"] == KEY


@pytest.mark.requirement(
    "tool.invite.output", "invite.claimed-at-registration", "auth.registration-invite"
)
@both_eras
@pytest.mark.settings(registration="invite", sign_in={"challenge": "calls"})
async def test_an_invite_opens_a_hub_that_takes_only_the_invited(hub):
    code = await hub.hub.accounts.create_invite(None)
    stranger = await hub.stranger()
    refused = await stranger.refused("msg/register", handle="alice")
    assert refused == "An invite code is required to register on this server."
    alice = await hub.person("alice", invite_code=code)
    invited = await alice.call("msg/invite", message="Welcome!")
    assert invited["invite_url"] == (f"{hub.hub.base_url}/invite/{invited['invite_code']}")
    assert invited["message"] == "Share this link with someone to invite them to MMP."
    bob = await hub.person("bob", invite_code=invited["invite_code"])
    (message,) = (await bob.call("msg/inbox"))["messages"]
    assert (message["from_handle"], message["body"]) == ("alice", "Welcome!")
    again = await stranger.refused(
        "msg/register", handle="carol", invite_code=invited["invite_code"]
    )
    assert again == "This invite has already been claimed."


@pytest.mark.requirement("privacy.invitee-answers")
@pytest.mark.parametrize("privacy", ["contacts_only", "private"])
async def test_whoever_was_invited_may_answer_an_inviter_who_hears_contacts_alone(privacy, hub):
    alice, eve = await hub.people("alice", "eve")
    await alice.call("msg/set_profile", privacy=privacy)
    invited = await alice.call("msg/invite", message="Welcome!")
    bob = await hub.person("bob", invite_code=invited["invite_code"])
    (message,) = (await bob.call("msg/inbox"))["messages"]
    await bob.call("msg/reply", message_id=message["id"], body="Thank you.")
    await bob.call("msg/send", to="alice", body="And how are you?")
    assert (await bob.call("msg/lookup", handle="alice"))["handle"] == "alice"
    (contact,) = (await alice.call("msg/contacts"))["contacts"]
    assert (contact["handle"], contact["nickname"]) == ("bob", "")
    refused = "Cannot send message to this user."
    assert await eve.refused("msg/send", to="alice", body="Hello?") == refused
    await alice.call("msg/remove_contact", handle="bob")
    assert await bob.refused("msg/send", to="alice", body="Hello?") == refused


@pytest.mark.requirement("auth.registration-closed")
@pytest.mark.settings(registration="closed", sign_in={"challenge": "calls"})
async def test_a_closed_hub_takes_nobody_and_makes_no_invites_that_open_nothing(hub):
    sentence = await (await hub.stranger()).refused("msg/register", handle="alice")
    assert sentence == "Registration is closed on this server."
    made = await hub.hub.accounts.add("alice")
    sentence = await (await hub.returning(made.token)).refused("msg/invite")
    assert sentence == (
        "Registration is closed here, so an invite would not work. Ask the operator to "
        "invite them by their handle."
    )
    bearer = {"authorization": f"Bearer {made.token}"}
    bearer["content-type"] = "application/json"
    answer = await ask(hub.port, "/v1/invites", method="POST", headers=bearer, body=b"{}")
    assert (answer.status, "registration_closed" in answer.text) == (403, True)


@both_eras
async def test_ids_in_capitals_are_found(hub):
    alice, bob = await hub.people("alice", "bob")
    sent = await alice.call("msg/send", to="bob", body="One")
    message, thread = sent["message_id"].upper(), sent["thread_id"].upper()
    assert len((await bob.call("msg/inbox", thread_id=thread, peek=True))["messages"]) == 1
    answered = await bob.call("msg/reply", message_id=message, body="Two")
    assert answered["thread_id"] == sent["thread_id"]
    again = await alice.call("msg/send", to="bob", body="Three", reply_to=message)
    page = await bob.call("msg/thread", thread_id=thread, peek=True)
    assert page["messages"][0]["reply_to"] == sent["message_id"]
    third = again["message_id"].upper()
    before = (await bob.call("msg/digest"))["total_unread"]
    await bob.call("msg/mark_read", thread_id=thread, message_ids=[third])
    assert (await bob.call("msg/digest"))["total_unread"] == before - 1
    for tool in ("msg/archive", "msg/star", "msg/mute"):
        assert (await bob.call(tool, thread_id=thread))["thread_id"] == sent["thread_id"]
    bearer = {"authorization": f"Bearer {bob.token}"}
    answer = await ask(hub.port, f"/v1/threads/{thread}", headers=bearer)
    assert answer.status == 200, answer.text
    assert (await bob.call("msg/delete_message", message_id=third))["message_id"]
    await bob.call("msg/delete_thread", thread_id=thread, confirm=True)
    assert (await bob.call("msg/inbox"))["messages"] == []


@pytest.mark.requirement("tool.open-inbox.resource", "app.uri-and-type", "app.single-file")
@both_eras
async def test_the_inbox_opens_as_an_app_and_as_text(hub):
    alice, bob = await hub.people("alice", "bob")
    await alice.call("msg/send", to="bob", body="Hello", priority="urgent")
    listed = {tool.title: tool for tool in (await bob.client.list_tools()).tools}
    assert listed["msg/open_inbox"].meta["ui"] == {"resourceUri": "ui://mmp-inbox"}
    opened = await bob.call("msg/open_inbox")
    assert opened["resource"] == "ui://mmp-inbox"
    assert opened["message"] == ("You have 1 unread message in 1 thread, from @alice; 1 urgent.")
    assert [thread["other_handle"] for thread in opened["threads"]] == ["alice"]
    assert (await bob.call("msg/digest"))["total_unread"] == 1
    (content,) = (await bob.client.read_resource("ui://mmp-inbox")).contents
    assert content.mime_type == "text/html;profile=mcp-app"
    html = getattr(content, "text", "")
    assert "ui/initialize" in html
    assert "default-src 'none'; script-src 'sha256-" in html
    assert content.meta == {
        "ui": {
            "csp": {"connectDomains": [], "resourceDomains": []},
            "permissions": {"clipboardWrite": {}},
            "prefersBorder": True,
        }
    }
    assert (await bob.client.call_tool("msg_open_inbox", {})).structured_content == opened
