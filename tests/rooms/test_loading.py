"""Loading a room costs little however long its history is; what it needs later is looked up."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from benchmarks.steps import metered
from folkmoot.core import errors as e
from folkmoot.rooms import Visitor, queries_messages
from folkmoot.rooms.machine import Append
from tests.rooms.gathering import Gathering, chat, envelope, gathering

NOON = 1_800_000_000.0


async def long_room(hub: Gathering, owner: Visitor, name: str, messages: int) -> None:
    """A room with so many stored messages, which is not loaded."""
    await hub.create(owner, name)
    record, _ = await hub.rooms.find(owner, name)
    said = [
        Append(n, f"m{n}", NOON, "chat.message", b'{"seq":%d}' % n, owner.principal.account_id)
        for n in range(1, messages + 1)
    ]
    await hub.store.write(lambda tx: queries_messages.insert(tx, record.id, said))


async def unloaded(hub: Gathering, owner: Visitor, name: str) -> None:
    """Let a room go, with a snapshot."""
    record, _ = await hub.rooms.find(owner, name)
    live = await hub.rooms._live.load(record)
    await live.save()
    hub.rooms._live.end(record.id, e.RoomUnavailable("unloaded"))


async def test_a_room_loads_with_the_same_steps_however_long_it_is(tmp_path):
    with metered() as meter:
        async with gathering(tmp_path) as hub:
            (ann,) = await hub.people("ann")
            steps, statements = [], []
            for name, messages in (("short", 200), ("long", 9_000)):
                await long_room(hub, ann, name, messages)
                await unloaded(hub, ann, name)
                hub.rooms._live.budget.forget()
                meter.statements.clear()
                before = meter.steps
                live, _ = await hub.rooms.enter(ann, name)
                steps.append(meter.steps - before)
                statements.append(len(meter.statements))
                assert live.machine.seq == messages
                await unloaded(hub, ann, name)
            assert statements[0] == statements[1]
            assert steps[1] <= steps[0] * 1.2


async def test_chat_after_the_last_snapshot_is_not_read_again(hub):
    await long_room(hub, hub.ann, "square", 1_500)
    record, _ = await hub.rooms.find(hub.ann, "square")
    read = await hub.store.read(
        lambda tx: queries_messages.replayed_since(tx, record.id, 0), long=True
    )
    assert read == []
    live, _ = await hub.rooms.enter(hub.ann, "square")
    assert (live.machine.seq, live.delivered) == (1_500, 1_500)


async def test_ids_of_a_loaded_room_are_looked_up_and_messages_keep_their_order(hub):
    await long_room(hub, hub.ann, "square", 50)
    ear, live = await hub.join(hub.ann)
    other, _ = await hub.join(hub.bob)
    before = hub.store.stats().reads
    live.receive(ear, chat("plain"), chat("one", id="a1"), chat("two"))
    live.receive(ear, chat("again", id="m7"), chat("three", id="a1"))
    live.receive(other, chat("other's", id="m8"), chat("four", id="b1"))
    assert ear.held
    assert other.held
    live.receive(ear, chat("last"))
    live.left(ear)
    await other.until_kind("system.presence.leave")
    assert other.texts == ["plain", "one", "two", "four", "last"]
    assert not ear.held
    assert not other.held
    seq = next(one["seq"] for one in other.heard if one.get("id") == "a1")
    refused = [one["payload"] for one in ear.heard if one["kind"] == "system.error"]
    assert [(one["error"], one["seq"]) for one in refused] == [("id_used", 7), ("id_used", seq)]
    told = await other.until_kind("system.error")
    assert (told["payload"]["error"], "seq" in told["payload"]) == ("id_used", False)
    assert hub.store.stats().reads - before <= 3


@pytest.mark.parametrize("error", [e.StoreError("The disk is away."), RuntimeError("a mistake")])
async def test_what_cannot_be_looked_up_is_refused_and_the_room_goes_on(hub, monkeypatch, error):
    await long_room(hub, hub.ann, "square", 5)
    ear, live = await hub.join(hub.ann)

    async def fails(*_: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(queries_messages, "used", fails)
        live.receive(ear, chat("one", id="a1"))
        told = await ear.until_kind("system.error")
        assert told["correlation_id"] == ["a1"]
        with pytest.raises(type(error)):
            await hub.rooms.post(hub.ann, "square", chat("two", id="a2"))
    live.receive(ear, chat("one", id="a1"))
    await ear.until_kind("chat.message")
    assert ear.texts == ["one"]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
async def test_someone_who_is_away_can_be_kicked_on_a_connection_and_without(hub, durable):
    (cat,) = await hub.people("cat")
    await hub.create(hub.ann, durable=durable)
    for one in (hub.bob, cat):
        ear, live = await hub.join(one)
        live.left(ear)
    ear, live = await hub.join(hub.ann)
    kick = [envelope("room.kick", {"participant": name}) for name in ("bob", "nobody")]
    live.receive(ear, *kick)
    await ear.until_kind("system.error")
    assert ear.heard[-1]["payload"]["error"] == "recipient_unknown"
    raw = await hub.rooms.post(hub.ann, "square", envelope("room.kick", {"participant": "cat"}))
    assert json.loads(raw)["payload"] == {"participant": "cat"}
    assert live._expelled == {one.principal.account_id for one in (hub.bob, cat)}


async def test_a_message_waits_until_it_is_known_what_its_sender_has_stored(hub):
    live, ear = await hub.meet(hub.ann)
    quotas = hub.rooms._quotas
    quotas.limits = msgspec.structs.replace(quotas.limits, room_bytes_per_account=2_000)
    hub.rooms._live.budget.forget()
    live.receive(ear, chat("one"), chat("two"))
    assert not live.knows(hub.ann.principal.account_id)
    await ear.until_seq(3)
    hub.rooms._live.budget.forget()
    live.receive(ear, chat("x" * 1_500), chat("three"))
    told = await ear.until_kind("system.error")
    assert told["payload"]["error"] == "quota_exceeded"
    await ear.until_seq(4)
    assert ear.texts == ["one", "two", "three"]


async def test_a_connection_that_ends_while_it_waits_says_what_it_said(hub):
    await long_room(hub, hub.ann, "square", 5)
    one, live = await hub.join(hub.ann)
    ear, _ = await hub.join(hub.bob)
    live.receive(ear, chat("bye", id="b1"))
    live.left(ear)
    await one.until_kind("system.presence.leave")
    page = await hub.rooms.messages(hub.ann, "square", limit=2)
    said, left = (json.loads(bytes(one)) for one in page.messages)
    assert (said["id"], left["kind"]) == ("b1", "system.presence.leave")
