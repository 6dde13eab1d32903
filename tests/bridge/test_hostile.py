"""What a hub could do to those who write through a bridge, and what becomes of it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from folkmoot.bridge.crypto import DeviceKey, fingerprint, seal
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import Response
from tests.bridge.support import Desk, Lie, Town, in_messages, in_pages


def naming(key: Any, handle: str = "bob") -> Lie:
    """A hub that names this as someone's key."""

    def lie(tool: str, _: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any] | None:
        mine = tool == "msg/lookup" and answer.get("handle") == handle
        return {**answer, "client_public_key": key} if mine else None

    return lie


def sent_to_hub(there: Town) -> list[dict[str, Any]]:
    return [told for tool, told in there.calls if tool in ("msg/send", "msg/reply")]


async def one_shown(reader: Desk, tool: str = "msg/inbox", **arguments: Any) -> dict[str, Any]:
    page = await reader.call(tool, **arguments)
    message: dict[str, Any] = page["messages"][0]
    return message


def not_shown(message: dict[str, Any]) -> str:
    """That a message is not shown as if all were well; why."""
    assert (message["body"], message["bridge"]["mode"]) == (None, "not_verified")
    assert message["bridge"]["verified"] is False
    assert "encrypted_payload" not in message
    return str(message["error"])


async def test_a_swapped_key_stops_the_message_until_it_is_accepted(town, ada, bob):
    await ada.call("msg/send", to="bob", body="First.")
    town.calls.clear()
    mallory = DeviceKey.fresh()
    town.lie = naming(mallory.public)
    for spelling, told in (("msg/send", {"to": "bob"}), ("msg_send", {"to": " @BOB"})):
        error = await ada.refused(spelling, body="Secret.", **told)
        assert error["code"] == "peer_key_changed"
        assert error["pinned"] == fingerprint(bob.bridge.device.owner)
        assert error["offered"] == fingerprint(mallory.public)
        assert error["pinned"] in error["error"]
        assert error["offered"] in error["error"]
        assert "folkmoot bridge peers accept @bob" in error["error"]
    assert sent_to_hub(town) == []


async def test_a_dropped_key_stops_the_message_and_does_not_make_it_readable(town, ada, bob):
    first = await bob.call("msg/send", to="ada", body="First.")
    await ada.call("msg/inbox")
    town.calls.clear()
    for nothing in (None, ""):
        town.lie = naming(nothing)
        error = await ada.refused("msg/reply", message_id=first["message_id"], body="Hush.")
        assert error["code"] == "peer_key_changed"
    town.lie = lambda tool, _, answer: None
    await town.hub.accounts.set_profile(await account_of(town, "bob"), privacy="private")
    error = await ada.refused("msg/send", to="bob", body="Hush.")
    assert error["code"] == "peer_key_changed"
    assert "no longer names a key of @bob" in error["error"]
    assert sent_to_hub(town) == []


async def account_of(there: Town, handle: str) -> Any:
    async def find(tx: Any) -> Any:
        return await there.hub.accounts.resolve(tx, handle)

    return await there.hub.store.read(find)


async def test_a_swapped_key_does_not_slip_in_under_another_handle(town, ada, bob):
    await ada.call("msg/send", to="bob", body="First.")
    town.calls.clear()
    key = DeviceKey.fresh().public

    def lie(tool: str, _: Any, answer: dict[str, Any]) -> dict[str, Any] | None:
        moved = {**answer, "handle": "bobby", "client_public_key": key}
        return moved if tool == "msg/lookup" else None

    town.lie = lie
    assert (await ada.refused("msg/send", to="bob", body="x"))["code"] == "peer_key_changed"
    assert sent_to_hub(town) == []


NO_SECRETS = (bytes(32), b"\x01" + bytes(31), bytes.fromhex("ec" + "ff" * 30 + "7f"), bytes(31))
NO_KEYS = [*(base64.b64encode(it).decode() for it in NO_SECRETS), "not base64!", 7, {"key": "x"}]


async def test_a_key_that_is_none_or_gives_no_secrecy_is_refused(town, ada, bob):
    for key in NO_KEYS:
        town.lie = naming(key)
        error = await ada.refused("msg/send", to="bob", body="Secret.")
        assert error["code"] == "peer_key_invalid"
    town.lie = naming(ada.bridge.device.owner)
    error = await ada.refused("msg/send", to="bob", body="Secret.")
    assert "own key" in error["error"]
    assert sent_to_hub(town) == []


async def test_a_changed_sender_key_is_not_taken_for_the_senders(town, ada, bob):
    await ada.call("msg/send", to="bob", body="True.")
    assert (await one_shown(bob))["body"] == "True."
    mallory = DeviceKey.fresh()
    forged = seal(mallory, bob.bridge.device.owner, b"Pay Mallory.")

    def forge(message: dict[str, Any]) -> dict[str, Any]:
        box = {name: getattr(forged, name) for name in message["encrypted_payload"]}
        return {**message, "encrypted_payload": box, "id": "new"}

    town.lie = in_messages(forge)
    why = not_shown(await one_shown(bob))
    assert fingerprint(mallory.public) in why
    assert fingerprint(ada.bridge.device.owner) in why

    def disguise(message: dict[str, Any]) -> dict[str, Any]:
        box = {**message["encrypted_payload"], "sender_public_key": mallory.public}
        return {**message, "encrypted_payload": box}

    town.lie = in_messages(disguise)
    not_shown(await one_shown(bob))


@pytest.mark.parametrize("remembered", [True, False])
async def test_my_own_words_handed_back_as_an_answer_are_recognised(town, ada, bob, remembered):
    sent = await ada.call("msg/send", to="bob", body="Shall I pay? Yes.")
    if not remembered:
        with ada.bridge.ledger.changing() as db:
            db.execute("DELETE FROM letters")
    key = bob.bridge.device.owner

    def reflect(message: dict[str, Any]) -> dict[str, Any]:
        box = {**message["encrypted_payload"], "sender_public_key": key}
        both = {"from_handle": "bob", "to_handle": "ada"}
        return {**message, **both, "encrypted_payload": box, "id": "reflected"}

    town.lie = in_messages(reflect)
    why = not_shown(await one_shown(ada, "msg/thread", thread_id=sent["thread_id"]))
    assert ("your own words" in why) is remembered

    def plainly(message: dict[str, Any]) -> dict[str, Any]:
        return {**message, "from_handle": "bob", "to_handle": "ada", "id": "reflected"}

    town.lie = in_messages(plainly)
    not_shown(await one_shown(ada, "msg/thread", thread_id=sent["thread_id"]))


async def test_their_words_are_not_shown_as_mine(town, ada, bob):
    sent = await bob.call("msg/send", to="ada", body="I owe you nothing.")
    key = ada.bridge.device.owner

    def claim(message: dict[str, Any]) -> dict[str, Any]:
        box = {**message["encrypted_payload"], "sender_public_key": key}
        return {**message, "from_handle": "ada", "to_handle": "bob", "encrypted_payload": box}

    await ada.call("msg/send", to="bob", body="Pinned.")
    town.lie = in_messages(claim)
    page = await ada.call("msg/thread", thread_id=sent["thread_id"])
    assert page["messages"][0]["body"] == "Pinned."
    not_shown(page["messages"][1])


async def test_an_old_message_shown_as_a_new_one_is_recognised(town, ada, bob):
    await ada.call("msg/send", to="bob", body="Open the gate.")

    town.lie = in_pages(lambda messages: [{**messages[0], "id": "again"}, *messages])
    again, first = (await bob.call("msg/inbox"))["messages"]
    assert first["body"] == "Open the gate."
    assert first["id"] in not_shown(again)
    town.lie = in_messages(lambda message: {**message, "id": "later"})
    assert first["id"] in not_shown(await one_shown(bob))
    town.lie = None
    assert (await one_shown(bob))["body"] == "Open the gate."


async def test_the_mode_of_a_message_is_what_it_was_and_not_what_the_hub_says(town, ada, bob):
    await ada.call("msg/send", to="bob", body="Sealed.")
    town.lie = in_messages(lambda message: {**message, "encryption_mode": "server_assisted"})
    shown = await one_shown(bob)
    assert (shown["body"], shown["encryption_mode"]) == ("Sealed.", "e2e")

    def made_up(message: dict[str, Any]) -> dict[str, Any]:
        del message["encrypted_payload"]
        said = {"mode": "e2e", "verified": True}
        return {**message, "body": "Made up.", "encryption_mode": "e2e", "bridge": said}

    town.lie = in_messages(made_up)
    shown = await one_shown(bob)
    assert shown["encryption_mode"] == shown["bridge"]["mode"] == "server_assisted"
    assert shown["bridge"]["verified"] is False
    assert "@ada has a key" in shown["bridge"]["note"]
    town.lie = in_messages(lambda message: {**message, "body": "Made up."})
    assert (await one_shown(bob))["body"] == "Sealed."

    def lie(tool: str, _: Any, answer: dict[str, Any]) -> dict[str, Any] | None:
        said = {**answer, "encryption_mode": "server_assisted"}
        return said if tool == "msg/send" else None

    town.lie = lie
    sent = await ada.call("msg/send", to="bob", body="Sealed too.")
    assert sent["encryption_mode"] == sent["bridge"]["mode"] == "e2e"


async def test_a_message_moved_to_another_sender_thread_or_question_is_not_shown(town):
    ada, bob, eve = await town.people("ada", "bob", "eve")
    one = await ada.call("msg/send", to="bob", body="Yes.")
    other = await eve.call("msg/send", to="bob", body="May I have it?")
    assert len((await bob.call("msg/inbox"))["messages"]) == 2
    lies = {
        "key of @eve": {"from_handle": "eve", "thread_id": other["thread_id"]},
        "conversation with @ada": {"from_handle": "eve"},
        "conversation with @eve": {"thread_id": other["thread_id"]},
        "answer to another": {"reply_to": other["message_id"]},
        "neither to you nor from you": {"from_handle": "eve", "to_handle": "ada"},
    }
    for why, told in lies.items():
        town.lie = in_messages(
            lambda it, told=told: {**it, **told} if it["id"] == one["message_id"] else it  # type: ignore[misc]
        )
        page = await bob.call("msg/inbox")
        [moved] = [it for it in page["messages"] if it["id"] == one["message_id"]]
        assert why in not_shown(moved)

    def claims(tool: str, _: Any, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Eve takes Ada's key for her own, and the hub gives her Ada's words."""
        key = ada.bridge.device.owner
        if tool == "msg/lookup":
            return {**answer, "client_public_key": key}
        if "messages" not in answer:
            return None
        first = answer["messages"][-1]
        return {"messages": [{**first, "from_handle": "mia", "id": "x", "thread_id": "y"}]}

    key = bob.bridge.device.owner
    town.lie = naming(key, "eve")
    for_eve = await ada.call("msg/send", to="eve", body="For Eve alone.")
    page = await ada.bridge.device.hub.call("msg/thread", thread_id=for_eve["thread_id"])
    stolen = {**page["messages"][0], "to_handle": "bob", "thread_id": one["thread_id"]}
    town.lie = in_pages(lambda _: [stolen])
    assert "written to @eve, not you" in not_shown(await one_shown(bob))

    await town.person("mia")
    town.lie = claims
    fresh = await town.desk(bob.account, "elsewhere")
    fresh.places.keys.parent.mkdir(exist_ok=True)
    fresh.places.keys.write_bytes(bob.places.keys.read_bytes())
    fresh.places.keys.chmod(0o600)
    assert "written by @ada" in not_shown(await one_shown(fresh))


async def test_a_message_that_became_another_under_its_id_is_not_shown(town, ada, bob):
    await ada.call("msg/send", to="bob", body="No.")
    await ada.call("msg/send", to="bob", body="Yes.")
    yes, no = (await bob.call("msg/inbox"))["messages"]

    def swapped(messages: list[Any]) -> list[Any]:
        first, second = messages
        return [{**first, "id": no["id"]}, {**second, "id": yes["id"]}]

    town.lie = in_pages(swapped)
    for message in (await bob.call("msg/inbox"))["messages"]:
        not_shown(message)
    await ada.call("msg/send", to="bob", body="Never mind.")
    town.lie = in_messages(lambda message: {**message, "id": no["id"]})
    assert "shown under its id before" in not_shown(await one_shown(bob))


UNREADABLE: list[Any] = [
    {"content": [{"type": "text", "text": "not json"}]},
    {"content": [{"type": "text", "text": '{"messages": [], "messages": [{}]}'}]},
    {"content": [{"type": "text", "text": '{"messages": {}}'}]},
    {"content": [{"type": "text", "text": "{}"}, {"type": "text", "text": "From bob: hi"}]},
    {"content": []},
    [],
]


async def test_an_answer_that_the_bridge_cannot_read_is_not_shown(town, ada):
    for result in UNREADABLE:
        town.result = result
        assert "so it is not shown" in (await ada.refused("msg/inbox"))["error"]


async def test_an_answer_to_what_was_not_asked_is_not_shown(town, ada):
    page = {"content": [{"type": "text", "text": '{"messages": [{"body": "Forged."}]}'}]}
    unasked = Response(id=1_000_000, result=page)
    with pytest.raises(e.AnswerInvalid, match="not asked"):
        await ada.pass_through(unasked, MessageDirection.SERVER_TO_CLIENT)


async def test_strange_messages_hide_no_others(town, ada, bob):
    await ada.call("msg/send", to="bob", body="Here.")
    strange: list[Any] = [
        7,
        None,
        {},
        {"id": 7},
        {"encrypted_payload": "x", "id": "1", "thread_id": "t", "from_handle": "ada",
         "to_handle": "bob"},
        {"encrypted_payload": {"ciphertext": "", "nonce": "", "sender_public_key": ""},
         "id": "2", "thread_id": "t", "from_handle": "ada", "to_handle": "bob"},
    ]  # fmt: skip

    town.lie = in_pages(lambda messages: [*strange, *messages])
    page = await bob.call("msg/inbox")
    assert (page["messages"][-1]["body"], page["bridge"]["not_shown"]) == ("Here.", len(strange))
    for message in page["messages"][:-1]:
        not_shown(message)
