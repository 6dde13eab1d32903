"""The client and the real hub: what one says the other understands, also when the hub goes away."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from folkmoot.app import Hub
from folkmoot.client import (
    AuthenticationRequired,
    Context,
    Gap,
    HubUnreachable,
    Message,
    Room,
    RoomForbidden,
    RoomNotFound,
)
from folkmoot.client import queues as buffers
from folkmoot.core import errors as e
from tests import process
from tests.client.support import SOON, eventually, of, until
from tests.harness import run
from tests.ports import free_port
from tests.transports.rooms.support import ROOM, Person, Town, settings, town


def at(hub: Town | str, person: Person | str, **more: object) -> Room:
    url = hub if isinstance(hub, str) else hub.hub.base_url
    token = person if isinstance(person, str) else person.token
    return Room(url, room=ROOM, token=token, backoff=SOON, **more)  # type: ignore[arg-type]


def check_whole(read: list[Message]) -> None:
    assert [m.seq for m in read] == list(range(read[0].seq, read[-1].seq + 1))
    assert not any(isinstance(m, Gap) for m in read)


async def read_to(room: Room, text: str) -> list[Message]:
    read = [await anext(room)]
    while read[-1].text != text:
        read.append(await anext(room))
    return read


async def test_two_agents_call_each_others_tools_and_see_each_other_come_and_go(
    tmp_path: Path,
) -> None:
    async with town(tmp_path) as hub:
        ann, bob = await hub.person("ann"), await hub.person("bob")
        await hub.room(ann)
        async with at(hub, ann) as one:

            @one.tool
            async def half(n: int, ctx: Context) -> float:
                await ctx.progress(1, total=2)
                doubled = await one.call(ctx.caller, "double", {"n": n})
                return int(doubled.text) / 4

            async with at(hub, bob) as two:

                @two.tool
                def double(n: int) -> int:
                    return 2 * n

                told: list[float] = []
                result = await two.call(
                    "ann", "half", {"n": 5}, on_progress=lambda p: told.append(p.progress)
                )
                assert (result.text, told) == ("2.5", [1])
                assert "bob" in one.participants
            await eventually(lambda: "bob" not in one.participants)


async def test_those_who_may_not_come_in_are_told_why(tmp_path: Path) -> None:
    async with town(tmp_path) as hub:
        ann, bob = await hub.person("ann"), await hub.person("bob")
        await hub.room(ann, access="invite")
        url = hub.hub.base_url
        for room, error in (
            (at(hub, "sk_" + "0" * 64), AuthenticationRequired),
            (at(hub, bob), RoomForbidden),
            (Room(url, room="nowhere", token=ann.token), RoomNotFound),
            (Room(url, room="No Name", token=ann.token), e.QueryInvalid),
        ):
            with pytest.raises(error):
                async with room:
                    pass
        async with at(hub, ann) as owner:
            assert (await owner.invite("bob")).handle == "bob"
            async with at(hub, bob) as guest:
                await guest.say("thank you")
                await owner.kick("bob")
                with pytest.raises(RoomForbidden):
                    await until(guest, of("never"))


async def test_a_guest_comes_with_an_invitation_once_and_then_with_the_credential(
    tmp_path: Path,
) -> None:
    async with town(tmp_path) as hub:
        ann = await hub.person("ann")
        await hub.room(ann, access="private")
        async with at(hub, ann) as owner:
            invitation = await owner.invite(guest="kim")
            assert invitation.token
            async with at(hub, invitation.token) as guest:
                assert (guest.me.id, guest.me.type) == ("kim", "guest")
                assert guest.credential
                await guest.say("hello")
            with pytest.raises(AuthenticationRequired):
                async with at(hub, invitation.token):
                    pass
            async with at(hub, guest.credential) as again:
                assert again.me.id == "kim"


async def test_a_message_larger_than_the_hub_reads_is_given_up(tmp_path: Path) -> None:
    async with town(tmp_path, limits={"message_bytes": 10_000}) as hub:
        ann = await hub.person("ann")
        await hub.room(ann)
        async with at(hub, ann) as room:
            with pytest.raises(e.MessageTooLarge):
                await room.say("x" * 20_000)
            await room.say("smaller")


@pytest.mark.requirement("room.resume", "room.close-restarting")
async def test_a_planned_restart_disturbs_nobody(tmp_path: Path) -> None:
    async with town(tmp_path) as hub:
        ann, bob = await hub.person("ann"), await hub.person("bob")
        await hub.room(ann)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    first = Hub(settings(tmp_path, port=port))
    async with asyncio.TaskGroup() as tasks:
        stop, stopped = asyncio.Event(), asyncio.Event()

        async def serve() -> None:
            async with first.running():
                ready.set()
                await stop.wait()
            stopped.set()

        ready = asyncio.Event()
        tasks.create_task(serve())
        await ready.wait()
        async with at(url, ann) as one, at(url, bob) as two:

            @two.tool
            async def slow() -> str:
                asked.set()
                await go_on.wait()
                return "after the restart"

            asked, go_on = asyncio.Event(), asyncio.Event()
            await one.say("before")
            calling = tasks.create_task(one.call("bob", "slow"))
            await asked.wait()
            stop.set()
            await stopped.wait()
            saying = tasks.create_task(one.say("while it was away"))
            async with Hub(settings(tmp_path, port=port)).running():
                await saying
                go_on.set()
                assert (await calling).text == "after the restart"
                await one.say("the end")
                read = await read_to(two, "the end")
                check_whole(read)
                assert not [m for m in read if m.kind == "system.presence.leave"]
                await asyncio.gather(
                    one.__aexit__(None, None, None), two.__aexit__(None, None, None)
                )


@pytest.mark.long
@pytest.mark.requirement("room.resume")
def test_a_hub_that_is_killed_in_a_burst_loses_nothing_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    async def people() -> tuple[str, str]:
        async with town(tmp_path) as hub:
            ann, bob = await hub.person("ann"), await hub.person("bob")
            await hub.room(ann)
            return ann.token, bob.token

    (ann, bob), port = run(people()), free_port()

    def start() -> process.Process:
        return process.Process(tmp_path, port=port, FOLKMOOT_RATE_LIMITS="off")

    async def main(hub: process.Process, again: Callable[[], process.Process]) -> None:
        url, many = f"http://127.0.0.1:{port}", 300
        async with at(url, ann) as one, at(url, bob) as two:
            async with asyncio.TaskGroup() as tasks:
                for n in range(many):
                    tasks.create_task(one.say(f"said {n}"))
                await until(two, lambda m: m.text is not None)
                seen = two.last_seq
                os.kill(hub.child.pid, signal.SIGKILL)
                await asyncio.to_thread(again)
            await one.say("the end")
            read = await read_to(two, "the end")
            check_whole(read)
            assert two.last_seq > seen
            assert two.epoch == one.epoch
        async with at(url, bob) as three:
            assert three.last_seq >= read[-1].seq

    with start() as hub:
        started: list[process.Process] = []

        def again() -> process.Process:
            hub.child.wait()
            started.append(start())
            return started[0]

        try:
            run(main(hub, again), 250)
        finally:
            for other in started:
                other.__exit__()


@pytest.mark.requirement("wire.slow-consumer")
async def test_one_who_is_too_slow_is_closed_and_still_reads_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "MAX_INBOX", 16)
    limits = {"unsent_bytes": 65_536, "message_bytes": 65_536}
    async with town(tmp_path, limits=limits) as hub:
        ann, bob = await hub.person("ann"), await hub.person("bob")
        await hub.room(ann)
        async with at(hub, ann) as one, at(hub, bob) as two:
            text = "x" * 30_000
            # More than the sockets between them hold.
            while "bob" in one.participants:
                await one.say(text)
            await one.say("the end")
            read = await read_to(two, "the end")
            check_whole(read)
            await two.say("back")


async def test_a_hub_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with town(tmp_path) as hub:
        url = hub.hub.base_url
    with pytest.raises(HubUnreachable):
        async with at(url, "sk_x"):
            pass
