"""Two people at bridges write to each other, and the hub does what it should."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

import pytest

from folkmoot.bridge.crypto import (
    VERSION,
    DeviceKey,
    fingerprint,
    seal,
)
from folkmoot.bridge.identity import MODES
from folkmoot.bridge.limits import MAX_LOOKUPS_PER_PAGE
from folkmoot.bridge.tools import HIDDEN, KNOWN, SENDING
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import Notification
from folkmoot.mail import EncryptedPayload
from folkmoot.operations import CATALOGUE
from tests.bridge.support import Desk, Town, in_messages


async def unread(desk: Desk) -> int:
    total: int = (await desk.call("msg/digest"))["total_unread"]
    return total


async def test_what_is_sent_through_bridges_is_sealed_on_the_way_and_open_at_both_ends(town):
    ada, bob = await town.people("ada", "bob")
    town.calls.clear()
    sent = await ada.call("msg_send", to="@Bob", body="The boat is ready.")
    assert "first message sealed for @bob" in sent["bridge"].pop("note")
    assert (sent["encryption_mode"], sent["bridge"]) == (
        "e2e", {"mode": "e2e", "key": "new", "verified": False},
    )  # fmt: skip
    [(_, told)] = [it for it in town.calls if it[0] == "msg/send"]
    assert told.keys() == {"to", "encrypted_payload"}
    [shown] = (await bob.call("msg/inbox"))["messages"]
    assert shown["body"] == "The boat is ready."
    assert shown["bridge"] == {
        "mode": "e2e", "verified": False, "key": "pinned", "bound": True,
    }  # fmt: skip
    assert "encrypted_payload" not in shown
    again = await bob.call("msg/reply", message_id=shown["id"].upper(), body="I am coming.")
    assert again["bridge"]["mode"] == "e2e"
    newest, oldest = (await ada.call("msg_thread", thread_id=sent["thread_id"]))["messages"]
    assert (newest["body"], newest["reply_to"]) == ("I am coming.", shown["id"])
    assert (oldest["body"], oldest["from_handle"]) == ("The boat is ready.", "ada")
    assert oldest["bridge"]["bound"]
    assert "boat" not in str(town.calls)
    second = await ada.call("msg/send", to="bob", body="Again.", reply_to=newest["id"])
    assert second["bridge"] == {"mode": "e2e", "verified": False, "key": "pinned"}
    assert (await bob.call("msg/inbox"))["messages"][0]["body"] == "Again."


async def test_who_has_no_key_is_written_to_readably_and_the_answer_says_so(town, ada):
    bob = await town.person("bob")
    sent = await ada.call("msg/send", to="bob", body="Hello.")
    assert sent["encryption_mode"] == sent["bridge"]["mode"] == "server_assisted"
    assert sent["bridge"]["verified"] is False
    assert "@bob has no key" in sent["bridge"]["note"]
    [shown] = (await bob.call("msg/inbox"))["messages"]
    assert (shown["body"], shown["bridge"]["mode"]) == ("Hello.", "server_assisted")
    assert "could read" in shown["bridge"]["note"]
    sent = await ada.call("msg/send", to="bob", body="Now sealed.")
    assert sent["bridge"]["mode"] == "e2e"


async def test_mail_counts_as_read_only_once_it_was_opened_and_handed_over(town, ada, bob):
    await ada.call("msg/send", to="bob", body="One.")
    bob.hands_over = False
    await bob.call("msg/inbox")
    assert await unread(bob) == 1
    bob.hands_over = True
    await bob.call("msg/inbox", peek=True)
    assert await unread(bob) == 1
    town.calls.clear()
    await bob.call("msg/inbox")
    assert await unread(bob) == 0
    assert [told["peek"] for tool, told in town.calls if tool == "msg/inbox"] == [True]
    sent = await ada.call("msg/send", to="bob", body="Two.")
    await bob.call("msg_thread", thread_id=sent["thread_id"])
    assert await unread(bob) == 0
    await ada.call("msg/send", to="bob", body="Three.")
    waited = await bob.call("msg/inbox", wait=5)
    assert [it["body"] for it in waited["messages"]] == ["Three."]
    assert (await bob.call("msg/inbox", wait=1))["messages"] == []


@pytest.mark.requirement("bridge.unreadable-once")
async def test_what_does_not_open_comes_once_and_what_was_not_handed_over_again(town, ada, bob):
    await ada.call("msg/send", to="bob", body="Spoilt.")
    await ada.call("msg/send", to="bob", body="Whole.")

    def spoil(message: dict[str, Any]) -> dict[str, Any]:
        if message["id"] == spoilt:
            message["encrypted_payload"] |= {"ciphertext": "A" * 64}
        return message

    whole, first = (await bob.call("msg/inbox", peek=True))["messages"]
    spoilt = first["id"]
    town.lie = in_messages(spoil)
    bob.hands_over = False
    page = await bob.call("msg/inbox")
    assert [it["body"] for it in page["messages"]] == ["Whole.", None]
    assert "count as read" in page["bridge"]["note"]
    await ada.call("msg/send", to="bob", body="Late.")
    bob.hands_over = True
    page = await bob.call("msg/inbox")
    assert [it["body"] for it in page["messages"]] == ["Late.", "Whole.", None]
    assert await unread(bob) == 0
    assert whole["body"] == "Whole."


def junk() -> EncryptedPayload:
    """A box that nobody closed, with a key that nobody has."""
    parts = (os.urandom(48), os.urandom(24), os.urandom(32))
    return EncryptedPayload(*(base64.b64encode(part).decode() for part in parts))


@pytest.mark.requirement("bridge.unreadable-once")
async def test_a_strangers_junk_does_not_make_waiting_spin(town, bob):
    eve = (await town.hub.accounts.register("eve")).account
    await town.hub.mail.send(eve, "bob", encrypted_payload=junk())
    [message] = (await bob.call("msg/inbox", wait=5))["messages"]
    assert (message["from_handle"], message["body"]) == ("eve", None)
    assert message["bridge"]["mode"] == "not_verified"
    assert message["error"]
    assert (await bob.call("msg/inbox", wait=1))["messages"] == []
    assert await unread(bob) == 0


@pytest.mark.requirement("bridge.unreadable-once")
async def test_the_junk_of_a_crowd_of_strangers_is_delivered_once_too(town, bob):
    for number in range(MAX_LOOKUPS_PER_PAGE + 3):
        eve = (await town.hub.accounts.register(f"eve_{number}")).account
        await town.hub.mail.send(eve, "bob", encrypted_payload=junk())
    await bob.call("msg/inbox", wait=1, limit=100)
    # Those who could not be asked about yet have another chance; others are marked in turn.
    while (left := await unread(bob)) > 3:  # noqa: ASYNC110 - the hub tells nobody
        await asyncio.sleep(0.01)
    assert left == 3
    await bob.call("msg/inbox", wait=1, limit=100)
    while await unread(bob):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_a_second_device_does_not_take_the_place_of_the_first(town, ada, bob):
    await bob.call("msg/send", to="ada", body="For the first.")
    second = await town.desk(ada.account, "second")
    page = await second.call("msg/inbox")
    [shown] = page["messages"]
    assert (shown["body"], shown["bridge"]["mode"]) == (None, "not_verified")
    assert "key publish --replace" in page["bridge"]["problem"]
    assert any("another key for @ada" in said for said in second.said)
    error = await second.refused("msg/send", to="bob", body="From the second.")
    assert error["code"] == "device_key_unusable"
    assert "another key for @ada" in (await second.call("msg_whoami"))["bridge"]["problem"]
    assert not [it for it in town.calls if it[0] == "msg/set_profile"][2:]
    assert (await ada.call("msg/inbox"))["messages"][0]["body"] == "For the first."


async def test_a_key_that_the_hub_lost_is_published_again_and_said_to_be(town, ada):
    assert any("made a device key" in said for said in ada.said)
    await ada.bridge.device.hub.call("msg/set_profile", client_public_key="")
    again = await town.desk(ada.account, "ada")
    told = await again.call("msg/whoami")
    assert told["bridge"] == {"device_key": fingerprint(ada.bridge.device.owner)}
    assert "no longer named this device's key" in again.said[0]
    named = await again.bridge.device.hub.call("msg/whoami")
    assert named["client_public_key"] == ada.bridge.device.owner


async def test_a_correspondent_with_another_handle_and_the_same_key_is_the_same(town, ada, bob):
    sent = await ada.call("msg/send", to="bob", body="Before.")
    await bob.call("msg/send", to="ada", body="So.")
    await bob.call("msg/inbox")
    await ada.call("msg/change_handle", new_handle="countess")
    await ada.call("msg/send", to="bob", body="After.")
    page = await bob.call("msg/thread", thread_id=sent["thread_id"])
    assert [it["body"] for it in page["messages"]] == ["After.", "So.", "Before."]
    assert page["messages"][2]["from_handle"] == "countess"
    assert "It names @ada, who is @countess now." in page["messages"][2]["bridge"]["note"]
    sent = await bob.call("msg/send", to="ada", body="To the old handle.")
    assert sent["bridge"]["mode"] == "e2e"
    assert (await ada.call("msg/inbox"))["messages"][0]["body"] == "To the old handle."
    later = await town.desk(ada.account, "ada")
    assert (await later.call("msg/inbox"))["messages"][1]["body"] == "So."


async def deliver(there: Town, sender: Desk, to: str, content: bytes, key: DeviceKey) -> str:
    """Send a box that another program made."""
    hub = sender.bridge.device.hub
    profile = await hub.call("msg/lookup", handle=to)
    payload = seal(key, profile["client_public_key"], content)
    box = {name: getattr(payload, name) for name in payload.__struct_fields__}
    sent = await hub.call("msg/send", to=to, encrypted_payload=box)
    message_id: str = sent["message_id"]
    return message_id


async def test_plain_text_in_a_box_of_another_program_is_shown_as_bound_to_nothing(town, ada, bob):
    key = ada.bridge.device.keys.current
    plain = {
        b"Hello from the app.": "Hello from the app.",
        b'{"v": 1, "body": "x"}': '{"v": 1, "body": "x"}',
        b"[1, 2]": "[1, 2]",
    }
    for content, text in plain.items():
        await deliver(town, ada, "bob", content, key)
        shown = (await bob.call("msg/inbox"))["messages"][0]
        assert (shown["body"], shown["bridge"]["bound"]) == (text, False)
        assert "the box does not say" in shown["bridge"]["note"]
    refused = {
        b"\xff\xfe": "not text",
        b'{"v": "folkmoot-mail-2", "body": "x"}': "newer bridge",
        f'{{"v": "{VERSION}", "body": "x"}}'.encode(): "not a whole letter",
    }
    for content, why in refused.items():
        await deliver(town, ada, "bob", content, key)
        shown = (await bob.call("msg/inbox"))["messages"][0]
        assert shown["body"] is None
        assert why in shown["error"]
    for _ in range(2):
        mine = (await ada.call("msg/thread", thread_id=shown["thread_id"]))["messages"][-1]
        assert mine["body"] == "Hello from the app."
        assert "the box does not say" in mine["bridge"]["note"]


async def test_the_client_gets_no_way_around_the_bridge(town, ada, bob):
    town.calls.clear()
    box = {"ciphertext": "", "nonce": "", "sender_public_key": ""}
    for tool, told, why in (
        ("msg_send", {"to": "bob", "encrypted_payload": box}, "The bridge encrypts"),
        ("msg/send", {"to": "bob", "body": "x", "encrypted_payload": box}, "The bridge"),
        ("msg/send", {"to": "bob", "body": "x", "text": "Secret."}, "Unknown argument: te"),
        ("msg/send", {"to": "bob", "body": ["Secret."]}, "body must be a string."),
    ):
        assert (await ada.refused(tool, **told))["error"].startswith(why)
    key = DeviceKey.fresh().public
    for tool, told in (
        ("msg_set_profile", {"client_public_key": key}),
        ("msg/set_profile", {"client_public_key": ""}),
        ("msg/set_profile", {"payload_formats": []}),
        ("msg/register", {"handle": "eve", "client_public_key": key}),
        ("msg_whisper", {"body": "Secret."}),
        ("folkmoot_call_tool", {"name": "msg_send", "arguments": {"body": "Secret."}}),
    ):
        assert "bridge" in (await ada.refused(tool, **told))["error"]
    with pytest.raises(e.BlockedByInterceptor):
        await ada.request("tools/call", arguments={"body": "Secret."})
    silent = Notification(
        method="tools/call", params={"name": "msg_send", "arguments": {"body": "Secret."}}
    )
    with pytest.raises(e.BlockedByInterceptor):
        await ada.pass_through(silent, MessageDirection.CLIENT_TO_SERVER)
    error = await ada.refused("msg/reply", message_id="unknown", body="Secret.")
    assert error == {"error": "Message not found."}
    assert not [it for it in town.calls if it[0] not in ("msg/inbox", "msg/whoami")]
    profile = await ada.call("msg/set_profile", bio="Here.")
    assert profile["client_public_key"] == ada.bridge.device.owner
    sent = await bob.call("msg/send", to="ada", body="Answer me.")
    fresh = await town.desk(ada.account, "ada")
    answer = await fresh.call("msg/reply", message_id=sent["message_id"], body="Yes.")
    assert answer["bridge"]["mode"] == "e2e"


async def test_tools_are_described_as_they_are_through_the_bridge(town, ada, bob):
    tools = {it["name"]: it for it in (await ada.request("tools/list"))["tools"]}
    for name in ("msg_send", "msg_reply"):
        schema = tools[name]["inputSchema"]
        assert "encrypted_payload" not in schema["properties"]
        assert "body" in schema["required"]
        assert "bridge" in tools[name]["description"]
    for name in ("msg_set_profile", "msg_register"):
        assert "client_public_key" not in tools[name]["inputSchema"]["properties"]
    assert "room_say" in tools
    assert (await ada.call("msg/lookup", handle="bob"))["bridge"] == {"key": "never met"}
    await ada.call("msg/send", to="bob", body="x")
    told = (await ada.call("msg/lookup", handle="bob"))["bridge"]
    pinned = fingerprint(bob.bridge.device.owner)
    assert told == {"key": "as pinned", "pinned": pinned, "verified": False}
    assert "come from the hub" in (await ada.call("msg/threads"))["bridge"]["note"]
    assert "can read" in (await ada.call("msg/invite", message="Come."))["bridge"]["note"]


def test_the_bridge_knows_every_tool_of_mail_and_what_it_may_send_with():
    mail = {tool.name: tool for tool in CATALOGUE.tools if tool.name.startswith("msg/")}
    assert mail.keys() == KNOWN
    for name, allowed in SENDING.items():
        assert set(mail[name].schema["properties"]) - {*HIDDEN[name]} <= allowed


def test_the_modes_are_documented_as_they_are():
    page = (Path(__file__).parents[2] / "docs/tutorials/bridge.md").read_text(encoding="utf-8")
    for mode, meaning in MODES.items():
        assert f"| `{mode}` | {meaning} |" in page
