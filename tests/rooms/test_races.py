"""Rooms at bad moments: things that happen at once, fail half-way, or come when all is over."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import read_patch, upkeep
from folkmoot.rooms.live import LiveRoom
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import RoomRecord
from tests.harness import reached
from tests.rooms.gathering import Ear, chat, envelope, gathering
from tests.stores import held_writes

BOTH = pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])


@BOTH
async def test_nobody_stays_in_a_room_they_entered_while_it_was_removed(hub, durable):
    _, first = await hub.meet(hub.bob, durable=durable)
    async with held_writes(hub.store):
        removing = asyncio.ensure_future(hub.rooms.delete(hub.ann, "square"))
        await first.until_closed()
        again = Ear()
        live, role = await hub.rooms.enter(hub.bob, "square")
        live.join(again, hub.bob, role)
    await removing
    await again.until_closed()
    assert hub.rooms.live_rooms == 0
    with pytest.raises(e.FolkmootError):
        await live.post(hub.bob.principal, role, chat("is anybody here?"))


@pytest.mark.requirement("room.close-no-room")
@BOTH
async def test_a_room_that_is_removed_amid_a_burst_is_gone_and_that_is_no_failure(
    hub, durable, caplog
):
    live, ear = await hub.meet(hub.bob, durable=durable)
    for number in range(100):
        live.receive(ear, chat(f"{number}"))
    await hub.rooms.delete(hub.ann, "square")
    assert await ear.until_closed() is CloseCode.NO_SUCH_ROOM
    await hub.create(hub.bob)
    _, anew = await hub.join(hub.ann)
    assert anew.machine.settings.epoch != live.machine.settings.epoch
    page = await hub.rooms.messages(hub.ann, "square")
    assert [json.loads(bytes(it))["kind"] for it in page.messages] == ["system.presence.join"]
    assert (await hub.rooms.get(hub.ann, "square")).role == "member"
    assert not [line for line in caplog.records if line.levelno >= logging.WARNING]


async def test_who_waits_for_a_room_to_load_gets_it_though_the_one_who_began_gave_up(hub):
    await hub.create(hub.ann)
    record, _ = await hub.rooms.find(hub.ann, "square")
    rooms, taken, begun = hub.rooms._live, [], asyncio.Event()
    take = rooms._take

    def counted(record: RoomRecord) -> Awaitable[LiveRoom]:
        taken.append(record.id)
        begun.set()
        return take(record)

    rooms._take = counted
    began = asyncio.ensure_future(rooms.load(record))
    waits = asyncio.ensure_future(rooms.load(record))
    await begun.wait()
    began.cancel()
    live = await waits
    assert began.cancelled()
    # The first take-over may be stored late, and would fence off one that a second made.
    assert taken == [record.id]
    assert (await hub.join(hub.bob))[1] is live


async def test_whoever_waits_is_told_when_delivery_itself_fails(tmp_path, caplog):
    async with gathering(tmp_path) as hub:
        (ann,) = await hub.people("ann")
        await hub.create(ann)
        ear, live = await hub.join(ann)

        def fails(data: bytes) -> None:
            raise RuntimeError(data)

        live._broadcast = fails
        with pytest.raises(e.RoomUnavailable):
            await hub.rooms.post(ann, "square", chat("hello"))
        assert await ear.until_closed() == CloseCode.INTERNAL
        back, _ = await hub.join(ann, after=0)
        await back.until_kind("chat.message")
    assert "work of a room failed" in caplog.text


async def test_a_room_that_has_ended_stores_no_snapshot_over_that_of_the_next(hub):
    live, _ = await hub.meet(hub.ann)
    live.end(e.RoomUnavailable("It starts anew."))
    with pytest.raises(e.RoomUnavailable):
        await live.save()


async def test_a_room_of_a_stopping_hub_takes_nothing_it_could_not_store(hub):
    await hub.create(hub.ann)
    live, role = await hub.rooms.enter(hub.ann, "square")
    hub.rooms.stop()
    with pytest.raises(e.HubStopping):
        await live.post(hub.ann.principal, role, chat("too late"))
    with pytest.raises(e.HubStopping):
        live.join(Ear(), hub.ann, role)


@BOTH
async def test_a_change_whose_caller_gives_up_is_in_force_before_the_next(hub, durable):
    live, ear = await hub.meet(hub.bob, durable=durable)
    async with held_writes(hub.store):
        patches = [read_patch({"capabilities": ["chat.say"]}), read_patch({"access": "private"})]
        first = asyncio.ensure_future(hub.rooms.change(hub.ann, "square", patches[0]))
        await reached(live.changing.locked)
        # Long enough for it to be written, and below for one that does not wait for it.
        await asyncio.sleep(0.05)
        first.cancel()
        second = asyncio.ensure_future(hub.rooms.change(hub.ann, "square", patches[1]))
        await asyncio.sleep(0.05)
    assert (await second).access == "private"
    shown = await hub.rooms.get(hub.ann, "square")
    assert (shown.access, shown.capabilities) == ("private", ["chat.say"])
    assert live.machine.settings.rights[Role.MEMBER] == ("chat.say",)
    assert ear.is_open


@BOTH
async def test_a_change_that_gives_someone_too_much_changes_nothing_at_all(hub, durable):
    live, one, two = await hub.meet(hub.ann, hub.bob, durable=durable)
    wide = {"kind": "x.y", "payload": {"a": list(range(60))}}
    live.receive(one, envelope("capability.grant", _grant("bob", *[wide] * 4)))
    await one.until_kind("capability.grant-ack")
    live.left(two)
    before = await hub.rooms.get(hub.ann, "square")
    wider = {"kind": "chat.*", "payload": {"text": ["a"] * 60}}
    patch = read_patch({"access": "private", "capabilities": [wider]})
    with pytest.raises(e.TooManyCapabilities):
        await hub.rooms.change(hub.ann, "square", patch)
    assert live.machine.settings.rights[Role.MEMBER] == tuple(before.capabilities)
    assert (await hub.rooms.get(hub.ann, "square")).access == "open"
    await hub.join(hub.bob)


@BOTH
async def test_who_was_put_out_just_before_a_stop_stays_out(tmp_path, durable):
    async with gathering(tmp_path) as hub:
        ann, bob = await hub.people("ann", "bob")
        await hub.create(ann, durable=durable)
        ear, live = await hub.join(ann)
        await hub.join(bob)
        live.receive(ear, envelope("room.kick", {"participant": "bob"}))
    async with gathering(tmp_path) as hub:
        with pytest.raises(e.RoomForbidden):
            await hub.rooms.enter(bob, "square")


async def test_a_guest_who_is_away_can_be_put_out_and_the_name_is_free_again(hub):
    live, ear = await hub.meet(hub.ann, access="private")
    _, credential = await hub.guest("gus")
    live.receive(ear, envelope("room.kick", {"participant": "gus"}))
    await ear.until_kind("room.kick")
    assert (await hub.rooms.invite(hub.ann, "square", guest="gus")).token is not None
    with pytest.raises(e.TokenInvalid):
        await hub.rooms.authenticate(credential)


async def test_only_who_may_come_in_can_be_kicked_while_away(hub):
    live, ear = await hub.meet(hub.bob, capabilities=["*"])
    await hub.person("cyd")
    for name, code in (("ann", "capability_denied"), ("cyd", "recipient_unknown")):
        ear.heard.clear()
        live.receive(ear, envelope("room.kick", {"participant": name}, id=f"k-{name}"))
        refusal = await ear.until_kind("system.error")
        assert (refusal["correlation_id"], refusal["payload"]["error"]) == ([f"k-{name}"], code)


async def test_nobody_keeps_an_owner_out_by_a_name_like_theirs(hub):
    annie, other = await hub.people("annie", "ann1e")
    await hub.create(annie)
    ear, live = await hub.join(other)
    await hub.rooms.post(annie, "square", chat("mine"))
    await hub.join(annie)
    assert await ear.until_closed() == CloseCode.NOT_ALLOWED
    assert [one["id"] for one in live.machine.participants()] == ["annie"]
    with pytest.raises(e.FolkmootError, match="could be mistaken"):
        await hub.rooms.post(other, "square", chat("mine"))


async def test_who_takes_the_name_of_a_guest_who_is_here_is_put_out_and_all_can_leave(hub):
    (dave,) = await hub.people("dave")
    live, _ = await hub.meet(hub.ann)
    guest, _ = await hub.guest("carol")
    carol, _ = await hub.join(guest)
    ear, _ = await hub.join(dave)
    await hub.accounts.change_handle(dave.account, "carol")
    assert await ear.until_closed() == CloseCode.NOT_ALLOWED
    live.left(ear)
    live.left(carol)
    assert [one["id"] for one in live.machine.participants()] == ["ann"]


async def test_what_was_granted_from_a_right_goes_when_the_room_takes_the_right_back(hub):
    (cyd,) = await hub.people("cyd")
    held = ["mcp.request.*", "capability.grant"]
    live, one, two, three = await hub.meet(hub.ann, hub.bob, cyd, grants={"bob": held})
    live.receive(two, envelope("capability.grant", _grant("cyd", "mcp.request.*")))
    live.receive(one, envelope("capability.grant", _grant("cyd", "x.y")))
    await three.until_seq(live.machine.seq)
    live.left(one)
    await hub.rooms.change(hub.ann, "square", read_patch({"grants": {}}))
    rights = three.heard[-1]["payload"]["you"]["capabilities"]
    assert "mcp.request.*" not in rights
    assert "x.y" in rights


@pytest.mark.parametrize(("access", "stays"), [("open", True), ("private", False)])
async def test_who_leaves_a_room_they_cannot_come_back_into_leaves_it_everywhere(
    hub, access, stays
):
    await hub.create(hub.ann, access=access)
    await hub.rooms.invite(hub.ann, "square", handle="bob")
    ear, live = await hub.join(hub.bob)
    await hub.rooms.depart(hub.bob, "square")
    await live.flushed()
    assert ear.is_open is stays
    if not stays:
        with pytest.raises(e.RoomNotFound):
            await hub.rooms.enter(hub.bob, "square")


async def test_one_round_of_upkeep_that_fails_is_not_the_last(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(upkeep, "UPKEEP_SECONDS", 0.0)
    rounds = asyncio.Event()

    async def broken(_: upkeep.Upkeep) -> None:
        if "the upkeep of rooms failed" in caplog.text:
            rounds.set()
        raise KeyError("a fault of ours")

    monkeypatch.setattr(upkeep.Upkeep, "round", broken)
    async with gathering(tmp_path):
        await rounds.wait()


def _grant(recipient: str, *capabilities: Any) -> dict[str, Any]:
    return {"recipient": recipient, "capabilities": list(capabilities)}


async def test_a_proposal_that_was_just_stored_is_listed_with_its_message(hub, monkeypatch):
    await hub.meet(hub.bob)
    write, stored, go_on = type(hub.store).write, asyncio.Event(), asyncio.Event()

    async def write_and_wait(store: Any, unit: Any, **how: Any) -> Any:
        """The store has it, and the room does not know yet."""
        done = await write(store, unit, **how)
        stored.set()
        await go_on.wait()
        return done

    monkeypatch.setattr(type(hub.store), "write", write_and_wait)
    proposed = {"method": "tools/call", "params": {"name": "mow", "arguments": {}}}
    posting = asyncio.ensure_future(
        hub.rooms.post(hub.bob, "square", envelope("mcp.proposal.tools/call", proposed, id="p1"))
    )
    await stored.wait()
    (one,) = (await hub.rooms.asks.open_for(hub.ann)).proposals
    assert b"mow" in (await hub.rooms.asks.message(one) or b"")
    go_on.set()
    await posting
