from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms import RoomOptions, read_patch, upkeep
from tests.rooms.gathering import chat, envelope, gathering
from tests.store.support import rows

DAY = 86_400


@pytest.mark.parametrize(
    ("access", "seen", "entered"),
    [("open", True, True), ("invite", True, False), ("private", False, False)],
)
async def test_access_says_who_knows_of_a_room_and_who_comes_in(hub, access, seen, entered):
    await hub.create(hub.ann, access=access)
    listed = await hub.rooms.list(hub.bob)
    assert [room.name for room in listed.rooms] == (["square"] if seen else [])
    if entered:
        await hub.join(hub.bob)
        return
    refused = e.RoomForbidden if seen else e.RoomNotFound
    for attempt in (
        hub.rooms.enter(hub.bob, "square"),
        hub.rooms.messages(hub.bob, "square"),
        hub.rooms.participants(hub.bob, "square"),
        hub.rooms.proposals(hub.bob, "square"),
        hub.rooms.post(hub.bob, "square", chat("let me in")),
        hub.rooms.visit(hub.bob, "square"),
    ):
        with pytest.raises(refused):
            await attempt
    await hub.rooms.invite(hub.ann, "square", handle="bob")
    await hub.join(hub.bob)


async def test_only_owners_change_and_remove_a_room(hub):
    _, ear = await hub.meet(hub.bob)
    patch = read_patch({"access": "private"})
    for attempt in (
        hub.rooms.change(hub.bob, "square", patch),
        hub.rooms.delete(hub.bob, "square"),
    ):
        with pytest.raises(e.RoomForbidden):
            await attempt
    assert (await hub.rooms.change(hub.ann, "square", patch)).access == "private"
    await hub.rooms.delete(hub.ann, "square")
    assert await ear.until_closed() is CloseCode.NO_SUCH_ROOM
    with pytest.raises(e.RoomNotFound):
        await hub.rooms.get(hub.ann, "square")


async def test_a_change_of_rights_is_told_at_once_and_survives(tmp_path):
    async with gathering(tmp_path) as hub:
        ann, bob = await hub.people("ann", "bob")
        await hub.create(ann)
        ear, live = await hub.join(bob)
        grants = {"bob": ["mcp.request.tools/list"]}
        patch = read_patch({"capabilities": ["chat.*"], "grants": grants})
        assert (await hub.rooms.change(ann, "square", patch)).grants == grants
        assert len(ear.kinds) > 1
        welcome = ear.heard[-1]
        hub.rooms.stop()
        live.left(ear)
    async with gathering(tmp_path) as hub:
        ear, _ = await hub.join(bob)
        for told in (welcome, ear.heard[0]):
            assert told["kind"] == "system.welcome"
            assert told["payload"]["you"]["capabilities"] == ["chat.*", "mcp.request.tools/list"]


async def test_changes_at_the_same_moment_are_all_made(hub):
    others = [hub.bob, *await hub.people("cas", "dee")]
    await hub.create(hub.ann, access="private")
    grants = {other.principal.name: ["chat.*"] for other in others}
    patches: list[dict[str, Any]] = [
        {"grants": grants},
        {"policy": {"quorum": 2}},
        {"policy": {"keep_days": 3}},
        {"capabilities": ["mcp.proposal.*"]},
    ]
    await asyncio.gather(
        *(hub.rooms.change(hub.ann, "square", read_patch(each)) for each in patches)
    )
    view = await hub.rooms.get(hub.ann, "square")
    assert view.grants == grants
    assert (view.policy.quorum, view.policy.keep_days) == (2, 3)
    assert view.capabilities == ["mcp.proposal.*"]
    for other in others:
        await hub.join(other)


async def test_a_memory_room_keeps_as_many_as_it_is_told_to_later(hub):
    await hub.create(hub.ann, durable=False)
    await hub.rooms.change(hub.ann, "square", read_patch({"policy": {"keep_messages": 10}}))
    for number in range(30):
        await hub.rooms.post(hub.ann, "square", chat(f"{number}"))
    page = await hub.rooms.messages(hub.ann, "square", limit=500)
    assert len(page.messages) == page.last_seq - page.first_seq + 1 <= 10


@pytest.mark.settings(options=RoomOptions(max_rooms_each=2))
async def test_names_are_taken_once_and_owners_have_so_many(hub):
    await hub.create(hub.ann)
    with pytest.raises(e.RoomNameTaken):
        await hub.create(hub.bob)
    await hub.create(hub.ann, "other")
    with pytest.raises(e.TooManyRooms):
        await hub.create(hub.ann, "third")
    with pytest.raises(e.UserNotFound, match="grants: there is no user nobody"):
        await hub.create(hub.bob, "third", grants={"nobody": ["chat.*"]})


async def test_a_guest_comes_in_once_by_its_invitation_and_then_by_its_credential(hub):
    await hub.create(hub.ann, access="private")
    await hub.create(hub.ann, "other")
    invitation = await hub.rooms.invite(hub.ann, "square", guest="zoe")
    zoe, credential = await hub.rooms.exchange("square", invitation.token or "")
    ear, live = await hub.join(zoe, credential=credential)
    assert ear.heard[0]["payload"]["credential"] == credential
    assert ear.heard[0]["payload"]["you"]["id"] == "zoe"
    again = await hub.rooms.authenticate(credential)
    with pytest.raises(e.RoomNotFound):
        await hub.rooms.enter(again, "other")
    with pytest.raises(e.RoomForbidden):
        await hub.create(again, "mine")
    one, _ = await hub.join(hub.ann)
    live.receive(one, envelope("room.kick", {"participant": "zoe"}))
    await ear.until_closed()
    with pytest.raises(e.TokenInvalid):
        await hub.rooms.authenticate(credential)
    stored = await hub.store.read(rows("SELECT CAST(data AS TEXT) FROM room_messages"))
    assert (invitation.token or "") not in repr(stored)
    assert credential not in repr(stored)
    seq = live.machine.seq
    with pytest.raises(e.NameRefused):
        await hub.rooms.invite(hub.ann, "square", guest="bob")
    with pytest.raises(e.UserNotFound):
        await hub.rooms.invite(hub.ann, "square", handle="nobody")
    assert live.machine.seq == seq


async def test_an_invitation_is_answered_to_the_inviter_alone(hub):
    live, one, two = await hub.meet(hub.ann, hub.bob)
    live.receive(one, envelope("room.invite", {"guest": "zoe"}, id="i1"))
    ack = await one.until_kind("room.invite-ack")
    assert ack["correlation_id"] == ["i1"]
    assert ack["payload"]["token"].startswith("gi_")
    live.receive(one, envelope("room.invite", {"handle": "nobody"}))
    live.receive(one, chat("done"))
    await two.until_kind("chat.message")
    assert "room.invite-ack" not in two.kinds
    refused = await one.until_kind("room.invite-ack")
    while refused["payload"]["status"] != "refused":
        await asyncio.sleep(0.001)
        refused = await one.until_kind("room.invite-ack")
    assert refused["payload"]["error"] == "user_not_found"
    with pytest.raises(e.PayloadInvalid):
        await hub.rooms.post(hub.ann, "square", envelope("room.invite", {"guest": "max"}))


async def test_a_read_that_waits_comes_back_with_what_is_said(hub):
    await hub.create(hub.ann)
    await hub.rooms.visit(hub.bob, "square")
    before = await hub.rooms.messages(hub.bob, "square", wait=0.001)
    assert before.messages == []
    async with asyncio.TaskGroup() as both:
        waiting = both.create_task(hub.rooms.messages(hub.bob, "square", wait=50))
        both.create_task(hub.rooms.post(hub.ann, "square", chat("news")))
    page = waiting.result()
    assert json.loads(bytes(page.messages[-1]))["payload"] == {"text": "news"}


@pytest.mark.settings(options=RoomOptions(chat={}, tool_presence_seconds=60))
async def test_one_who_takes_part_through_tools_is_here_until_idle(hub):
    async def here() -> list[str]:
        await hub.rooms._upkeep.round()
        return [one["id"] for one in await hub.rooms.participants(hub.ann, "square")]

    await hub.create(hub.ann)
    await hub.rooms.visit(hub.bob, "square")
    assert await here() == ["bob"]
    hub.clock.seconds += 50
    await hub.rooms.post(hub.bob, "square", chat("still here"))
    hub.clock.seconds += 50
    assert await here() == ["bob"]
    hub.clock.seconds += 50
    assert await here() == []
    await hub.rooms.visit(hub.bob, "square")
    await hub.rooms.depart(hub.bob, "square")
    assert await here() == []


async def test_a_recovered_account_loses_the_connections_of_its_old_token(hub):
    made = await hub.accounts.register("eve")
    eve = await hub.rooms.authenticate(made.token)
    await hub.create(eve)
    ear, live = await hub.join(eve)
    await hub.accounts.recover("eve", made.recovery_code)
    assert await ear.until_closed() is CloseCode.NOT_AUTHENTICATED
    live.left(ear)
    with pytest.raises(e.TokenInvalid):
        await hub.rooms.authenticate(made.token)


async def test_a_new_handle_is_a_new_name_in_the_room(hub):
    live, one, two = await hub.meet(hub.ann, hub.bob)
    assert hub.bob.account is not None
    await hub.accounts.change_handle(hub.bob.account, "robert")
    live.receive(two, chat("it is still me"))
    said = await one.until_kind("chat.message")
    assert said["from"] == "robert"
    welcome = await two.until_kind("system.welcome")
    assert welcome["payload"]["you"]["id"] == "robert"
    assert two.is_open


async def test_messages_go_when_there_are_too_many_and_open_proposals_stay(tmp_path):
    async with gathering(tmp_path) as hub:
        (ann,) = await hub.people("ann")
        await hub.create(ann, policy={"keep_messages": 10})
        proposal = {"method": "tools/call", "params": {"name": "mow"}}
        await hub.rooms.post(
            ann, "square", envelope("mcp.proposal.tools/call:mow", proposal, id="p1")
        )
        for number in range(30):
            await hub.rooms.post(ann, "square", chat(f"{number}", id=f"m{number}"))
        await hub.rooms._upkeep.round()
        page = await hub.rooms.messages(ann, "square", limit=500)
        assert (page.first_seq, page.last_seq, len(page.messages)) == (22, 31, 10)
        views = await hub.rooms.proposals(ann, "square")
        assert [(view.id, view.state) for view in views] == [("p1", "open")]
        await hub.rooms.post(ann, "square", chat("again", id="m0"))
    async with gathering(tmp_path) as hub:
        views = await hub.rooms.proposals(ann, "square")
        assert [(view.id, view.state) for view in views] == [("p1", "open")]
        page = await hub.rooms.messages(ann, "square", limit=500)
        assert (page.first_seq, page.last_seq) == (22, 32)


async def test_messages_go_when_they_are_too_old_also_in_rooms_nobody_uses(tmp_path):
    async with gathering(tmp_path) as hub:
        (ann,) = await hub.people("ann")
        await hub.create(ann, policy={"keep_days": 2})
        for number in range(30):
            await hub.rooms.post(ann, "square", chat(f"{number}"))
        clock = hub.clock
        clock.seconds += DAY
    async with gathering(tmp_path, clock=clock) as hub:
        await hub.rooms.post(ann, "square", chat("a day later"))
        clock.seconds += 1.5 * DAY + upkeep.SWEEP_SECONDS
        await hub.rooms._upkeep.round()
        page = await hub.rooms.messages(ann, "square", limit=500)
        assert (page.first_seq, page.last_seq) == (31, 31)


async def test_an_idle_room_is_let_go_and_comes_back(hub):
    live, ear = await hub.meet(hub.ann)
    live.left(ear)
    await hub.rooms.post(hub.ann, "square", chat("before"))
    hub.clock.seconds += upkeep.IDLE_SECONDS + 1
    await hub.rooms._upkeep.round()
    assert hub.rooms.live_rooms == 0
    await hub.rooms.post(hub.ann, "square", chat("after"))
    page = await hub.rooms.messages(hub.ann, "square")
    texts = [json.loads(bytes(each))["payload"].get("text") for each in page.messages]
    assert [text for text in texts if text] == ["before", "after"]
