"""Editing and deleting what one said in chat: here and in the store, for everyone who reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.chat import METHOD
from folkmoot.quotas import ROOM_BYTES
from folkmoot.rooms import Visitor
from folkmoot.rooms.limits import MAX_EDITS
from tests.rooms.gathering import Gathering, chat, envelope
from tests.store.support import row, rows

NOTICE = f"mcp.notification.{METHOD}"


async def say(hub: Gathering, visitor: Visitor, text: str, **body: Any) -> Any:
    raw = envelope(payload={"text": text, **body})
    return json.loads(await hub.rooms.post(visitor, "square", raw))


async def delete(hub: Gathering, visitor: Visitor, said: Any) -> Any:
    return await say(hub, visitor, "Deleted.", replaces=said["id"], deleted=True)


async def history(hub: Gathering, **place: Any) -> dict[int, Any]:
    page = await hub.rooms.messages(hub.ann, "square", limit=100, **{"before": None, **place})
    found = (json.loads(bytes(raw)) for raw in page.messages)
    return {it["seq"]: it for it in found if it["kind"].startswith(("chat", NOTICE))}


@pytest.fixture(params=[True, False], ids=["durable", "memory"])
async def room(hub, request):
    await hub.meet(hub.bob, durable=request.param)
    return hub


async def test_an_edit_changes_what_is_read_and_is_part_of_the_history_itself(room):
    said = await say(room, room.bob, "seven", format="plain", thread_id="t")
    edit = await say(room, room.bob, "**eight**", format="markdown", replaces=said["id"])
    found = await history(room)
    assert found[said["seq"]] == {
        **said,
        "payload": {"text": "**eight**", "format": "markdown", "thread_id": "t"},
        "edits": [edit["seq"]],
    }
    assert found[edit["seq"]] == edit


@pytest.mark.parametrize("kind", ["chat.message.markdown", NOTICE])
async def test_an_edit_may_be_spelled_otherwise_than_what_it_changes(room, kind):
    body = {"text": "one"}
    payload = {"jsonrpc": "2.0", "method": METHOD, "params": body} if kind == NOTICE else body
    said = json.loads(await room.rooms.post(room.bob, "square", envelope(kind, payload)))
    await say(room, room.bob, "two", format="plain", replaces=said["id"])
    found = (await history(room))[said["seq"]]
    changed = found["payload"]["params"] if kind == NOTICE else found["payload"]
    assert changed == {"text": "two", "format": "plain"}
    assert found["kind"] == (NOTICE if kind == NOTICE else "chat.message")


async def test_what_is_deleted_is_gone_with_all_its_edits(room):
    said = await say(room, room.bob, "secret one")
    first = await say(room, room.bob, "secret two @ann", replaces=said["id"])
    gone = await delete(room, room.bob, said)
    late = await say(room, room.bob, "secret?", replaces=said["id"])
    found = await history(room)
    assert found[said["seq"]]["payload"] == {"text": "Deleted.", "deleted": True}
    assert found[first["seq"]]["payload"] == gone["payload"]
    assert found[said["seq"]]["edits"] == [first["seq"], gone["seq"]]
    # It stays deleted, whatever comes later; that is a message of its own.
    assert found[late["seq"]] == late
    assert (await room.rooms.get(room.ann, "square")).mentions == 0
    kept = await room.store.read(rows("SELECT data FROM room_messages"))
    assert not [1 for (data,) in kept if b"secret one" in data or b"secret two" in data]


async def test_one_changes_only_chat_and_only_ones_own(room):
    said = await say(room, room.bob, "one")
    edit = await say(room, room.bob, "two", replaces=said["id"])
    status = await room.rooms.post(
        room.bob, "square", envelope("participant.status", {"status": "busy"})
    )
    for visitor, about in ((room.ann, said), (room.bob, edit), (room.bob, json.loads(status))):
        with pytest.raises(e.NotRequester):
            await say(room, visitor, "three", replaces=about["id"])
    with pytest.raises(e.MessageUnknown):
        await say(room, room.bob, "three", replaces="nothing")
    before = await history(room)
    assert before[said["seq"]]["payload"] == {"text": "two"}


@pytest.mark.parametrize(
    "body",
    [{"replaces": 7}, {"deleted": True}, {"deleted": False, "replaces": "x"}, {"deleted": 1}],
)
async def test_a_body_that_says_it_wrongly_is_refused(room, body):
    with pytest.raises(e.PayloadInvalid):
        await say(room, room.bob, "one", **body)


async def test_a_guest_edits_with_the_right_to_chat(room):
    guest, _ = await room.guest("gus")
    said = await say(room, guest, "one")
    await say(room, guest, "two", replaces=said["id"])
    assert (await history(room))[said["seq"]]["payload"]["text"] == "two"


async def test_edits_are_nothing_new_to_read_and_are_folded(room):
    said = await say(room, room.bob, "one")
    await room.rooms.mark_read(room.ann, "square")
    await say(room, room.bob, "two", replaces=said["id"])
    assert (await room.rooms.get(room.ann, "square")).unread == 0
    page = await room.rooms.messages(
        room.ann, "square", after=said["seq"] - 1, limit=10, before=None, fold=True
    )
    assert [json.loads(bytes(raw))["seq"] for raw in page.messages] == [said["seq"]]
    assert page.folded[-1].protocol == 1


async def test_a_message_is_edited_so_often_and_can_still_be_deleted(room):
    said = await say(room, room.bob, "0")
    for number in range(MAX_EDITS + 2):
        await say(room, room.bob, str(number), replaces=said["id"])
    found = (await history(room, before=said["seq"] + 1))[said["seq"]]
    assert found["payload"]["text"] == str(MAX_EDITS - 1)
    await delete(room, room.bob, said)
    found = (await history(room, before=said["seq"] + 1))[said["seq"]]
    assert found["payload"]["deleted"]


async def test_what_authors_store_is_counted_as_it_is_then(hub):
    await hub.meet(hub.bob)
    said = await say(hub, hub.bob, "x" * 500)
    await say(hub, hub.bob, "y" * 5000, replaces=said["id"])
    live, _ = await hub.rooms.enter(hub.bob, "square")
    for _ in range(2):
        sizes = "SELECT SUM(length(data)) + ? * COUNT(*), COUNT(*) FROM room_messages"
        kept = await hub.store.read(row(sizes, ROOM_BYTES))
        shares = await hub.store.read(row("SELECT SUM(bytes), SUM(messages) FROM room_shares"))
        assert kept == shares == (live.journal.stored.bytes, live.journal.stored.messages)
        await delete(hub, hub.bob, said)


async def test_a_message_from_before_a_restart_is_edited(hub):
    await hub.meet(hub.bob)
    said = json.loads(await hub.rooms.post(hub.bob, "square", chat("one", id="mine")))
    live, _ = await hub.rooms.enter(hub.bob, "square")
    hub.rooms._live.end(live.room_id, e.RoomUnavailable("unloaded"))
    await say(hub, hub.bob, "two", replaces="mine")
    assert (await history(hub))[said["seq"]]["payload"]["text"] == "two"
