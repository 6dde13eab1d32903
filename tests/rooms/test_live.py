from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.verdict import CONTINUE, Verdict
from folkmoot.rooms import RoomOptions, Visitor, journal, stream
from folkmoot.rooms.fence import taken_over
from folkmoot.rooms.machine import Role
from folkmoot.transports.operations import VISITOR
from tests.rooms.gathering import Ear, chat, envelope, gathering
from tests.store.disk import Disk
from tests.store.support import rows
from tests.stores import full_disk

PROPOSAL = envelope(
    "mcp.proposal.tools/call:mow", {"method": "tools/call", "params": {"name": "mow"}}, id="p1"
)
BOTH = pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])


@BOTH
async def test_everyone_hears_the_same_and_the_sender_too(hub, durable):
    live, one, two = await hub.meet(hub.ann, hub.bob, durable=durable)
    live.receive(one, chat("good morning", id="m1"))
    await two.until_kind("chat.message")
    said = one.heard[-1]
    assert said == two.heard[-1]
    assert (said["from"], said["id"]) == ("ann", "m1")
    assert said["payload"] == {"text": "good morning"}


async def test_nobody_hears_what_is_not_yet_stored(hub):
    live, ear = await hub.meet(hub.ann)
    for number in range(20):
        live.receive(ear, chat(f"{number}"))
    assert ear.texts == []
    await ear.until_kind("chat.message")
    [(stored,)] = await hub.store.read(rows("SELECT COUNT(*) FROM room_messages"))
    assert stored >= len(ear.texts)
    await ear.until_seq(live.machine.seq)
    assert ear.texts == [f"{number}" for number in range(20)]


async def test_messages_are_broadcast_together_though_some_wait_for_each(hub):
    live, ear = await hub.meet(hub.ann)
    at_once: list[int] = []
    broadcast, heard = live._broadcast, []

    def counted(messages: Any) -> None:
        at_once.append(len(messages))
        broadcast(messages)

    live._broadcast = counted
    live.receive(ear, chat("0"))
    for number in range(1, 10):
        live.receive(ear, chat(f"{number}"))
        live.perform([journal.Barrier(lambda _: heard.append(len(ear.texts)))])
    await live.flushed()
    assert ear.texts == [f"{number}" for number in range(10)]
    assert len(at_once) <= 2
    assert all(many > before for before, many in enumerate(heard, 1))


async def test_a_refusal_waits_for_what_was_said_before_it(hub):
    live, ear = await hub.meet(hub.ann)
    live.receive(ear, chat("first"))
    live.receive(ear, b"not json")
    await ear.until_kind("system.error")
    assert ear.kinds[-2:] == ["chat.message", "system.error"]


async def test_what_a_database_says_of_itself_is_not_told_in_a_room(hub):
    live, ear = await hub.meet(hub.ann)
    live.refuse(ear, chat("hello"), e.DatabaseUnreachable("postgresql://hub@db: it is away."))
    told = (await ear.until_kind("system.error"))["payload"]
    assert (told["error"], "postgresql" in str(told)) == ("room_unavailable", False)


@pytest.mark.requirement("durable.answered-is-kept")
async def test_nobody_is_told_of_a_message_that_is_not_stored_by_a_refusal(hub):
    live, _ = await hub.meet(hub.ann)
    store, fails = live.journal.store, asyncio.get_running_loop().create_future()

    async def write(_unit: Any, **_how: Any) -> Any:
        return await fails

    write_now, store.write = store.write, write
    # The second time it is refused, since the room has it and the store has not.
    both = [
        asyncio.ensure_future(live.post(hub.ann.principal, Role.OWNER, chat("hello", id="m1")))
        for _ in range(2)
    ]
    done, _ = await asyncio.wait(both, timeout=0.05)
    assert not done
    fails.set_exception(e.DatabaseUnreachable("The database is away."))
    for each in both:
        with pytest.raises(e.RoomUnavailable):
            await each
    store.write = write_now
    await hub.rooms.post(hub.ann, "square", chat("hello", id="m1"))


@BOTH
async def test_whoever_resumes_gets_what_was_missed_once_and_in_order(hub, durable):
    live, one = await hub.meet(hub.ann, durable=durable)
    for number in range(1_000):
        live.receive(one, chat(f"{number}"))
    await one.until_seq(live.machine.seq)
    slow = Ear()
    slow.reads.clear()
    late, _ = await hub.join(hub.bob, ear=slow, after=3)
    for number in range(1_000, 1_100):
        live.receive(one, chat(f"{number}"))
    late.reads.set()
    await late.until_seq(live.machine.seq)
    assert late.seqs == list(range(4, live.machine.seq + 1))


async def test_reconnect_storms_leave_no_gap_and_no_duplicate(hub):
    others = await hub.people(*(f"guest{n}" for n in range(8)))
    await hub.create(hub.ann)
    mouth, live = await hub.join(hub.ann)
    heard: dict[str, list[int]] = {}

    async def flicker(visitor: Visitor, pause: int) -> None:
        seqs = heard.setdefault(visitor.principal.name, [live.delivered])
        for turn in range(15):
            ear, _ = await hub.join(visitor, after=seqs[-1], conn="c")
            for _ in range((turn * pause) % 7):
                await asyncio.sleep(0)
            ear.close(CloseCode.TOO_SLOW)
            live.left(ear)
            seqs += ear.seqs
        ear, _ = await hub.join(visitor, after=seqs[-1], conn="c")
        end = await asyncio.shield(last)
        if seqs[-1] < end:
            await ear.until_seq(end)
        seqs += ear.seqs

    last: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def talk() -> None:
        for number in range(300):
            live.receive(mouth, chat(f"{number}"))
            if number % 10 == 0:
                await asyncio.sleep(0)
        live.receive(mouth, envelope("reasoning.conclusion", {}))
        last.set_result((await mouth.until_kind("reasoning.conclusion"))["seq"])

    async with asyncio.TaskGroup() as group:
        for number, visitor in enumerate(others):
            group.create_task(flicker(visitor, number + 1))
        group.create_task(talk())
    for seqs in heard.values():
        assert seqs == list(range(seqs[0], seqs[-1] + 1))
        assert seqs[-1] >= last.result()


async def test_a_commit_that_fails_closes_the_room_and_everyone_resumes(tmp_path):
    disk = Disk()
    async with gathering(tmp_path, vfs=disk.name) as hub:
        ann, bob = await hub.people("ann", "bob")
        await hub.create(ann)
        one, live = await hub.join(ann)
        two, _ = await hub.join(bob)
        live.receive(one, chat("kept", id="kept"))
        await two.until_kind("chat.message")
        seen = two.seqs[-1]
        async with full_disk(hub.store, disk, "room_messages"):
            live.receive(one, chat("lost", id="lost"))
            post = asyncio.ensure_future(hub.rooms.post(bob, "square", chat("lost as well")))
            assert await one.until_closed() is CloseCode.INTERNAL
            assert await two.until_closed() is CloseCode.INTERNAL
            with pytest.raises(e.RoomUnavailable):
                await post
        # What is not on the disk was heard by nobody.
        assert one.texts == two.texts == ["kept"]
        live.left(one)
        live.left(two)
        again, anew = await hub.join(bob, after=seen, epoch=live.machine.settings.epoch)
        assert anew is not live
        assert again.heard[0]["payload"]["resume"]["complete"] is True
        anew.receive(again, chat("once more"))
        await again.until_kind("chat.message")
        assert again.texts == ["once more"]
        assert again.seqs == list(range(seen + 1, again.seqs[-1] + 1))


async def test_a_room_comes_back_from_its_history_as_it_was(tmp_path):
    async with gathering(tmp_path) as hub:
        ann, bob = await hub.people("ann", "bob")
        await hub.create(ann)
        one, live = await hub.join(ann)
        two, _ = await hub.join(bob)
        live.receive(two, PROPOSAL)
        grant = {"recipient": "bob", "capabilities": ["mcp.request.tools/list"]}
        live.receive(one, envelope("capability.grant", grant, id="g1"))
        await one.until_kind("capability.grant-ack")
        hub.rooms.stop()
        live.left(one)
        live.left(two)
        seq = live.machine.seq
    async with gathering(tmp_path) as hub:
        ear, anew = await hub.join(bob, after=seq)
        welcome = ear.heard[0]["payload"]
        assert {p["id"] for p in welcome["participants"]} == {"ann", "bob"}
        assert "mcp.request.tools/list" in welcome["you"]["capabilities"]
        assert [p.id for p in anew.machine.proposals()] == ["p1"]
        assert ear.seqs == []


async def test_a_room_that_holds_too_much_reads_no_more_until_it_is_stored(hub, monkeypatch):
    monkeypatch.setattr(journal, "MAX_UNSTORED", 10)
    live, ear = await hub.meet(hub.ann)
    for number in range(12):
        live.receive(ear, chat(f"{number}"))
    assert ear.held
    await ear.until_seq(live.machine.seq)
    assert not ear.held


async def test_one_who_never_reads_while_catching_up_is_let_go(hub, monkeypatch):
    monkeypatch.setattr(stream, "CATCH_UP_SECONDS", 0.01)
    live, one = await hub.meet(hub.ann)
    live.receive(one, chat("hello"))
    await one.until_kind("chat.message")
    deaf = Ear()
    deaf.reads.clear()
    await hub.join(hub.bob, ear=deaf, after=0)
    assert await deaf.until_closed() is CloseCode.TOO_SLOW
    assert one.is_open


async def test_whoever_is_kicked_cannot_come_back_before_or_after_it_is_stored(hub):
    live, one, two = await hub.meet(hub.ann, hub.bob)
    _, role = await hub.rooms.enter(hub.bob, "square")
    live.receive(one, envelope("room.kick", {"participant": "bob"}))
    with pytest.raises(e.RoomForbidden):
        live.join(Ear(), hub.bob, role)
    assert await two.until_closed() is CloseCode.NOT_ALLOWED
    with pytest.raises(e.RoomForbidden):
        await hub.rooms.enter(hub.bob, "square")
    await hub.rooms.invite(hub.ann, "square", handle="bob")
    await hub.join(hub.bob)


async def test_a_kick_from_a_room_in_memory_that_cannot_be_stored_is_told_and_stored_later(hub):
    await hub.person("cyd")
    live, ear, _ = await hub.meet(hub.ann, hub.bob, durable=False)
    bob = hub.bob.principal
    store, write = live.journal.store, live.journal.store.write

    async def refuse(*_: Any, **__: Any) -> Any:
        raise e.StoreError("The disk is full.")

    kick = envelope("room.kick", {"participant": "bob"})
    store.write = refuse
    with pytest.raises(e.RoomUnavailable):
        await hub.rooms.post(hub.ann, "square", kick)
    live.receive(ear, envelope("room.invite", {"handle": "bob"}))
    assert (await ear.until_kind("room.invite-ack"))["payload"]["status"] == "refused"
    store.write = write
    # Whatever is to be stored after it has it stored first.
    await hub.rooms.invite(hub.ann, "square", handle="cyd")
    states = rows("SELECT state FROM room_members WHERE account_id = ?", bob.account_id)
    assert await store.read(states) == [("banned",)]


async def test_requests_time_out_by_themselves(hub):
    live, one, _ = await hub.meet(hub.ann, hub.bob, policy={"request_seconds": 1})
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    live.receive(one, envelope("mcp.request.tools/list", payload, to=["bob"]))
    await one.until_kind("mcp.request.tools/list")
    hub.clock.seconds += 2
    answer = await one.until_kind("mcp.response.tools/list")
    assert "error" in answer["payload"]


class Interceptor:
    """Does something with each chat message before it goes on."""

    name = "test"
    guards = False

    def __init__(self, do: Callable[[str, Visitor], Awaitable[None]]) -> None:
        self._do = do

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        if isinstance(envelope.message, McpxMessage):
            text = (envelope.message.payload or {})["text"]
            await self._do(text, envelope.context.extensions[VISITOR])
        return CONTINUE


async def test_interceptors_see_messages_in_order_and_may_stop_them(tmp_path):
    seen: list[str] = []

    async def censor(text: str, visitor: Visitor) -> None:
        await asyncio.sleep(0.01 if text == "0" else 0)
        seen.append(f"{visitor.principal.name}: {text}")
        if text == "1":
            raise e.BlockedByInterceptor("Not this one.")

    async with gathering(tmp_path, interceptors=[Interceptor(censor)]) as hub:
        (ann,) = await hub.people("ann")
        await hub.create(ann)
        ear, live = await hub.join(ann)
        receive = hub.rooms.receiver(live, ear, ann)
        for number in range(100):
            receive(chat(f"{number}"))
        assert ear.held
        await ear.until_seq(live.machine.seq + 99)
        assert ear.texts == [f"{n}" for n in range(100) if n != 1]
        assert seen == [f"ann: {n}" for n in range(100)]
        error = next(m for m in ear.heard if m["kind"] == "system.error")
        assert error["payload"]["error"] == "blocked"
        with pytest.raises(e.BlockedByInterceptor):
            await hub.rooms.post(ann, "square", chat("1"))
        assert not ear.held


async def test_whose_message_an_interceptor_holds_holds_up_nobody_else(tmp_path):
    held, go_on = asyncio.Event(), asyncio.Event()

    async def hold(text: str, visitor: Visitor) -> None:
        if text == "wait":
            held.set()
            await go_on.wait()

    async with gathering(tmp_path, interceptors=[Interceptor(hold)]) as hub:
        ann, bob = await hub.people("ann", "bob")
        await hub.create(ann)
        one, live = await hub.join(ann)
        two, _ = await hub.join(bob)
        receive = hub.rooms.receiver(live, two, bob)
        for text in ("wait", "behind"):
            receive(chat(text))
        await held.wait()
        await hub.rooms.post(ann, "square", chat("meanwhile"))
        assert one.texts == ["meanwhile"]
        go_on.set()
        await one.until_seq(live.machine.seq + 2)
        assert one.texts == ["meanwhile", "wait", "behind"]


@pytest.mark.settings(options=RoomOptions(chat={}, memory_messages=20))
async def test_a_memory_room_forgets_its_oldest_and_says_so(hub):
    live, one = await hub.meet(hub.ann, durable=False)
    for number in range(50):
        live.receive(one, chat(f"{number}"))
    await live.flushed()
    page = await hub.rooms.messages(hub.ann, "square", limit=500)
    assert page.first_seq > 1
    assert len(page.messages) == page.last_seq - page.first_seq + 1 <= 20
    ear, _ = await hub.join(hub.bob, after=1)
    assert ear.heard[0]["payload"]["resume"]["reason"] == "history_gone"
    assert json.loads(bytes(page.messages[-1]))["payload"] == {"text": "49"}


async def test_a_room_that_another_node_took_over_is_no_error(tmp_path, caplog):
    async with gathering(tmp_path) as hub:
        (ann,) = await hub.people("ann")
        for name, error in (("one", taken_over()), ("two", e.RoomUnavailable("The disk."))):
            await hub.create(ann, name)
            _, live = await hub.join(ann, name)
            live.fail(error)
    logged = [(one.room, one.levelno) for one in caplog.records if hasattr(one, "room")]
    assert logged == [("one", logging.WARNING), ("two", logging.ERROR)]
