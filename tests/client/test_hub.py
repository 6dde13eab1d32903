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
    Context,
    Room,
)
from tests import process
from tests.client.support import SOON, check_whole, eventually, read_to, until
from tests.harness import run
from tests.ports import free_port
from tests.transports.rooms.support import ROOM, Person, Town, settings, town


def at(hub: Town | str, person: Person | str, **more: object) -> Room:
    url = hub if isinstance(hub, str) else hub.hub.base_url
    token = person if isinstance(person, str) else person.token
    return Room(url, room=ROOM, token=token, backoff=SOON, **more)  # type: ignore[arg-type]


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
