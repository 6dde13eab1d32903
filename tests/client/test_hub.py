"""The client and the real hub: what one says the other understands, also when the hub goes away."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from folkmoot.app import Hub
from folkmoot.client import (
    Context,
    Room,
)
from tests.client.support import SOON, check_whole, eventually, read_to
from tests.ports import free_port
from tests.transports.rooms.support import ROOM, Person, Town, settings, town


def at(hub: Town | str, person: Person | str, **more: object) -> Room:
    url = hub if isinstance(hub, str) else hub.hub.base_url
    token = person if isinstance(person, str) else person.token
    return Room(url, room=ROOM, token=token, backoff=SOON, **more)  # type: ignore[arg-type]


async def test_two_agents_call_each_others_tools_and_see_each_other_come_and_go(town):
    ann, bob = await town.person("ann"), await town.person("bob")
    await town.room(ann)
    async with at(town, ann) as one:

        @one.tool
        async def half(n: int, ctx: Context) -> float:
            await ctx.progress(1, total=2)
            doubled = await one.call(ctx.caller, "double", {"n": n})
            return int(doubled.text) / 4

        async with at(town, bob) as two:

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


async def test_a_function_gives_the_token_of_each_moment(town):
    ann = await town.person("ann")
    await town.room(ann)
    given = []

    def token() -> str:
        given.append(ann.token)
        return given[-1]

    async with Room(town.hub.base_url, room=ROOM, token=token) as room:
        await room.list_waiting()
        assert len(given) == 2


@pytest.mark.requirement("room.resume", "room.close-restarting")
async def test_a_planned_restart_disturbs_nobody(tmp_path):
    async with town(tmp_path) as hub:
        ann, bob = await hub.person("ann"), await hub.person("bob")
        await hub.room(ann)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with asyncio.TaskGroup() as tasks, AsyncExitStack() as first:
        await first.enter_async_context(Hub(settings(tmp_path, port=port)).running())
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
            await first.aclose()
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


async def test_a_program_marks_what_it_read_and_knows_who_is_away(town):
    ann, bob = await town.person("ann"), await town.person("bob")
    await town.room(ann)
    async with at(town, bob) as two:
        await two.say("Are you there, @ann?")
        assert [(who.id, who.role) for who in await two.list_away()] == [("ann", "owner")]
    async with at(town, ann) as one:
        visitor = await town.hub.rooms.authenticate(ann.token)
        before = await town.hub.rooms.get(visitor, ROOM)
        assert (before.unread, before.mentions) == (1, 1)
        await one.mark_read()
        await one.mark_read(1)
        after = await town.hub.rooms.get(visitor, ROOM)
        assert (after.unread, after.mentions) == (0, 0)
        assert [who.id for who in await one.list_away()] == ["bob"]
