"""What lies in the boxes, how refusals look, and what a key is called that nobody has compared."""

from __future__ import annotations

from typing import Any

import pytest
from nacl.public import Box, PrivateKey, PublicKey

from folkmoot.bridge.calls import SideHub
from folkmoot.bridge.crypto import (
    VERSION,
    decode,
    encode,
    fingerprint,
)
from folkmoot.bridge.serve import BridgeAccount
from folkmoot.proxy.chain import Chain
from tests.bridge.support import Desk, Town, in_messages


class App:
    """Someone with another MMP v0.1 client: keys and boxes as the specification has them."""

    def __init__(self, there: Town, handle: str, token: str) -> None:
        self.key = PrivateKey.generate()
        self.handle = handle
        self.token = token
        self.hub = SideHub(there.url, token)

    @classmethod
    async def joining(cls, there: Town, handle: str) -> App:
        made = await there.hub.accounts.register(handle, also=there.hub.mail.welcome)
        app = cls(there, handle, made.token)
        await there._stack.enter_async_context(app.hub)
        await app.hub.call("msg/set_profile", client_public_key=encode(bytes(app.key.public_key)))
        return app

    async def read(self) -> list[str]:
        """What is in the boxes of the inbox, the newest first (specification, section 8.4.3)."""
        page = await self.hub.call("msg/inbox")
        return [self.opened(it["encrypted_payload"]) for it in page["messages"]]

    async def send(self, to: str, body: str) -> None:
        """Send a box (specification, section 8.4.2)."""
        profile = await self.hub.call("msg/lookup", handle=to)
        box = Box(self.key, PublicKey(decode(profile["client_public_key"])))
        sealed = box.encrypt(body.encode())
        payload = {
            "ciphertext": encode(sealed.ciphertext),
            "nonce": encode(sealed.nonce),
            "sender_public_key": encode(bytes(self.key.public_key)),
        }
        await self.hub.call("msg/send", to=to, encrypted_payload=payload)

    def opened(self, payload: dict[str, str]) -> str:
        sender = PublicKey(decode(payload["sender_public_key"]))
        box = Box(self.key, sender)
        return box.decrypt(decode(payload["ciphertext"]), decode(payload["nonce"])).decode()


def inside(reader: Desk, payload: dict[str, str]) -> bytes:
    """What is in a box for someone at a bridge."""
    key = PrivateKey(decode(reader.bridge.device.keys.current.written()))
    box = Box(key, PublicKey(decode(payload["sender_public_key"])))
    return box.decrypt(decode(payload["ciphertext"]), decode(payload["nonce"]))


def sent_boxes(there: Town) -> list[dict[str, str]]:
    return [told["encrypted_payload"] for tool, told in there.calls if "encrypted_payload" in told]


@pytest.mark.requirement("bridge.plain-boxes")
async def test_any_other_client_reads_what_the_bridge_sends(town, ada):
    app = await App.joining(town, "bob")
    sent = await ada.call("msg/send", to="bob", body="Grüße 🛶\n{}")
    assert sent["bridge"]["mode"] == "e2e"
    await ada.call("msg/send", to="bob", body="Again.", reply_to=sent["message_id"])
    assert await app.read() == ["Again.", "Grüße 🛶\n{}"]
    page = await ada.call("msg/thread", thread_id=sent["thread_id"])
    assert [it["body"] for it in page["messages"]] == ["Again.", "Grüße 🛶\n{}"]
    assert [it["bridge"] for it in page["messages"]] == [
        {"mode": "e2e", "verified": False, "key": "pinned", "bound": False}
    ] * 2


@pytest.mark.requirement("bridge.plain-boxes", "bridge.first-key")
async def test_a_plain_box_is_not_taken_for_more_than_it_proves(town, ada):
    app = await App.joining(town, "bob")
    sent = await ada.call("msg/send", to="bob", body="Shall I pay? Yes.")
    me, bob = ada.bridge.device.owner, encode(bytes(app.key.public_key))
    ada.bridge.ledger.note_verified(me, "bob", bob)

    async def shown() -> dict[str, Any]:
        page = await ada.call("msg/thread", thread_id=sent["thread_id"])
        message: dict[str, Any] = page["messages"][0]
        return message

    # What left from here is known, though the box does not say so.
    own = await shown()
    assert (own["bridge"]["verified"], own["bridge"]["bound"]) == (True, False)

    def reflect(message: dict[str, Any]) -> dict[str, Any]:
        box = {**message["encrypted_payload"], "sender_public_key": bob}
        both = {"from_handle": "bob", "to_handle": "ada", "id": "reflected"}
        return {**message, **both, "encrypted_payload": box}

    town.lie = in_messages(reflect)
    assert "your own words" in (await shown())["error"]
    town.lie = None
    await app.send("ada", "Mine.")
    theirs = await shown()
    assert (theirs["body"], theirs["bridge"]["key"]) == ("Mine.", "verified")
    assert theirs["bridge"]["verified"] is False
    assert "the hub's word" in theirs["bridge"]["note"]


@pytest.mark.requirement("bridge.plain-boxes")
async def test_a_letter_goes_only_to_whoever_is_known_to_read_letters(town, ada, bob):
    assert (await ada.call("msg/lookup", handle="bob"))["payload_formats"] == [VERSION]

    def silent(tool: str, _: Any, answer: dict[str, Any]) -> dict[str, Any]:
        return {name: it for name, it in answer.items() if name != "payload_formats"}

    town.lie = silent
    await ada.call("msg/send", to="bob", body="Plain.")
    [shown] = (await bob.call("msg/inbox"))["messages"]
    assert (shown["body"], shown["bridge"]["bound"]) == ("Plain.", False)
    town.lie = None
    await ada.call("msg/send", to="bob", body="A letter.")
    town.lie = silent
    # What was once known of a key a hub cannot take back: neither its owner's word ...
    await ada.call("msg/send", to="bob", body="Still a letter.")
    page = await bob.call("msg/inbox")
    # ... nor a letter that came from there.
    await bob.call("msg/reply", message_id=page["messages"][0]["id"], body="As are mine.")
    contents = [inside(bob, it) for it in sent_boxes(town)[:3]]
    assert contents[0] == b"Plain."
    assert all(VERSION.encode() in content for content in contents[1:])
    assert VERSION.encode() in inside(ada, sent_boxes(town)[3])
    assert [it["bridge"]["bound"] for it in page["messages"]] == [True, True, False]


@pytest.mark.requirement("bridge.plain-boxes")
async def test_another_clients_key_says_nothing_of_letters_until_a_bridge_does(town, ada):
    hub = ada.bridge.device.hub
    assert (await hub.call("msg/whoami"))["payload_formats"] == [VERSION]
    own = ada.bridge.device.owner
    kept = await hub.call("msg/set_profile", client_public_key=own, bio="Here.")
    assert kept["payload_formats"] == [VERSION]
    other = encode(bytes(PrivateKey.generate().public_key))
    assert (await hub.call("msg/set_profile", client_public_key=other))["payload_formats"] == []
    # A device of an earlier version has published its key and said nothing of formats.
    await hub.call("msg/set_profile", client_public_key=own, payload_formats=[])
    again = await town.desk(ada.account, "ada")
    await again.bridge.device.ready()
    assert (await hub.call("msg/whoami"))["payload_formats"] == [VERSION]


async def test_a_hub_that_knows_nothing_of_formats_is_told_nothing_of_them(town):
    town.lie = lambda tool, _, answer: {
        name: it for name, it in answer.items() if name != "payload_formats"
    }
    ada, _ = await town.people("ada", "bob")
    [first, _] = [told for tool, told in town.calls if tool == "msg/set_profile"]
    assert first == {"client_public_key": ada.bridge.device.owner}
    assert (await ada.call("msg/send", to="bob", body="x"))["bridge"]["mode"] == "e2e"


PRIORITY = "priority must be urgent, normal, low or fyi."
SPECIFIED = [
    ("msg/send", {"to": "nobody", "body": "x"}, "User not found."),
    ("msg_send", {"to": "bob"}, "Either body or encrypted_payload is required."),
    ("msg/reply", {"message_id": "x"}, "Either body or encrypted_payload is required."),
    ("msg/send", {"to": "bob", "body": ""}, "body must not be empty."),
    ("msg/send", {"body": "x"}, "Missing argument: to."),
    ("msg/reply", {"body": "x"}, "Missing argument: message_id."),
    ("msg/send", {"to": "bob", "body": "x", "subject": "y"}, "Unknown argument: subject."),
    ("msg/send", {"to": "bob", "body": "x", "a": 1, "b": None}, "Unknown arguments: a, b."),
    ("msg/send", {"to": "bob", "body": 7}, "body must be a string."),
    ("msg/send", {"to": "@ADA", "body": "x"}, "Cannot send a message to yourself."),
    ("msg/send", {"to": "bob", "body": "x", "priority": "now"}, PRIORITY),
    ("msg/reply", {"message_id": "x", "body": "y"}, "Message not found."),
    ("msg/reply", {"message_id": "0123456789", "body": "y"}, "Message not found."),
    ("msg/thread", {"thread_id": "x"}, "Thread not found."),
]  # fmt: skip


@pytest.mark.requirement("bridge.errors")
async def test_refusals_have_the_specifications_shape_and_words(town, ada, bob):
    town.calls.clear()
    for tool, told, sentence in SPECIFIED:
        assert await ada.refused(tool, **told) == {"error": sentence}, told
    assert not [told for _, told in town.calls if "body" in told]
    # The same words as without the bridge.
    direct = Desk(ada.account, ada.places)
    direct.chain, direct.hands_over = Chain(), False
    for tool, told, sentence in SPECIFIED:
        assert await direct.refused(tool, **told) == {"error": sentence}, told


@pytest.mark.requirement("bridge.errors")
async def test_someone_who_takes_mail_from_contacts_only_is_not_called_absent(town, ada, bob):
    for privacy, sentence in (
        ("contacts_only", "Cannot send message to this user."),
        ("private", "User not found."),
    ):
        await bob.call("msg/set_profile", privacy=privacy)
        assert await ada.refused("msg/send", to="bob", body="x") == {"error": sentence}
    assert not [tool for tool, _ in town.calls if tool == "msg/send"]


@pytest.mark.requirement("bridge.errors")
async def test_what_the_hub_refuses_is_told_as_it_is(town, ada, bob):
    await bob.call("msg/block", handle="ada")
    told = await ada.refused("msg/send", to="bob", body="x")
    assert told == {"error": "Cannot send message to this user."}
    assert [tool for tool, _ in town.calls if tool == "msg/send"]
    told = await ada.refused("msg/inbox", limit=0)
    assert told == {"error": "limit must be an integer from 1 to 100."}


@pytest.mark.requirement("bridge.errors")
async def test_a_dead_token_and_a_dead_hub_are_results_that_say_what_to_do(town):
    account = BridgeAccount(town.url, "ada", f"sk_{'0' * 64}")
    lost = await town.desk(account, "lost")
    told = await lost.refused("msg/send", to="bob", body="x")
    assert told["error"].startswith("Authentication required. ")
    assert "folkmoot account recover" in told["error"]
    away = await town.desk(BridgeAccount("http://127.0.0.1:9", "ada", account.token), "away")
    assert "no hub answers" in (await away.refused("msg_inbox"))["error"]


@pytest.mark.requirement("bridge.first-key")
async def test_a_key_is_called_verified_once_it_was_compared(town, ada, bob):
    first = await ada.call("msg/send", to="bob", body="One.")
    assert (first["bridge"]["verified"], first["bridge"]["key"]) == (False, "new")
    assert fingerprint(bob.bridge.device.owner) in first["bridge"]["note"]
    assert "nobody has verified it" in first["bridge"]["note"]
    second = await ada.call("msg/send", to="bob", body="Two.")
    assert (second["bridge"]["verified"], second["bridge"]["key"]) == (False, "pinned")
    [_, one] = (await bob.call("msg/inbox"))["messages"]
    assert (one["bridge"]["verified"], one["bridge"]["key"]) == (False, "pinned")
    ada.bridge.ledger.note_verified(ada.bridge.device.owner, "bob", bob.bridge.device.owner)
    third = await ada.call("msg/send", to="bob", body="Three.")
    assert third["bridge"] == {"mode": "e2e", "verified": True, "key": "verified"}
    await bob.call("msg/change_handle", new_handle="robert")
    assert (await ada.call("msg/send", to="bob", body="Four."))["bridge"]["verified"] is True
    page = await ada.call("msg/thread", thread_id=first["thread_id"])
    assert [it["bridge"]["verified"] for it in page["messages"]] == [True] * 4
    assert (await ada.call("msg/lookup", handle="bob"))["bridge"]["verified"] is True


async def test_a_message_is_answered_by_the_beginning_of_its_id(town, ada, bob):
    name = (await bob.call("msg/send", to="ada", body="Well?"))["message_id"]
    for known in (False, True):
        again = await ada.call("msg/reply", message_id=name[:8].upper(), body="Yes.")
        assert again["bridge"]["mode"] == "e2e"
        [shown, *_] = (await bob.call("msg/inbox"))["messages"]
        assert (shown["body"], shown["reply_to"]) == ("Yes.", name)
        if not known:
            await ada.call("msg/inbox")


async def test_an_idempotency_key_is_passed_on_and_an_earlier_readable_message_told(town, ada, bob):
    town.calls.clear()
    given = {"to": "bob", "body": "Once.", "idempotency_key": "k"}
    await ada.request("tools/call", name="msg_send", arguments=given)
    [told] = [told for tool, told in town.calls if tool == "msg/send"]
    assert told["idempotency_key"] == "k"
    assert "body" not in told
    content = {"message_id": "m", "thread_id": "t", "to": "bob",
               "encryption_mode": "server_assisted", "created_at": 0}  # fmt: skip

    def repeat(tool: str, _: Any, answer: dict[str, Any]) -> dict[str, Any] | None:
        return content if tool == "msg/send" else None

    town.lie = repeat
    sent = await ada.call("msg/send", **given)
    assert sent["bridge"]["mode"] == "server_assisted"
    assert "sent before" in sent["bridge"]["note"]
