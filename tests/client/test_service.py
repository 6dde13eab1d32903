"""An agent offers its functions to the room as an MCP server would."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.client import Context, Progress, RequestFailed, ToolFailed
from folkmoot.client import service as served
from tests.client.support import enter, eventually, failing, offer_double, until


async def test_tools_are_listed_and_called_whenever_they_were_offered(hub, alice):
    room = enter(hub, "bob")

    @room.tool
    def early() -> str:
        """There from the beginning."""
        return "early"

    async with room as bob:

        @bob.tool(name="later.on", description="Came after.")
        async def later(ctx: Context) -> str:
            return ctx.caller

        assert [*bob.tools] == ["early", "later.on"]
        assert early() == "early"
        listed = await alice.request("bob", "tools/list")
        assert [(t["name"], t["description"]) for t in listed["tools"]] == [
            ("early", "There from the beginning."),
            ("later.on", "Came after."),
        ]
        assert (await alice.call("bob", "early")).text == "early"
        assert (await alice.call("bob", "later.on")).text == "alice"
        assert await alice.request("bob", "ping") == {}


TWO = {"name": "double", "arguments": {"n": "two"}}


@pytest.mark.parametrize(
    ("method", "params", "code", "sentence"),
    [
        ("tools/call", {"name": "none"}, -32602, "There is no tool none here."),
        ("tools/call", TWO, -32602, "n: Expected `int`, got `str`."),
        ("prompts/list", {}, -32601, "There is no method prompts/list here."),
    ],
)
async def test_what_cannot_be_served_is_answered_with_the_reason(
    alice, bob, method, params, code, sentence
):
    offer_double(bob)
    with pytest.raises(RequestFailed) as failure:
        await alice.request("bob", method, params)
    assert failure.value.error == {"code": code, "message": sentence}


async def test_a_tool_that_breaks_tells_the_room_nothing_of_its_inside(hub, alice, bob, caplog):

    @bob.tool
    def broken() -> None:
        raise RuntimeError("the password is hunter2")

    with pytest.raises(ToolFailed) as failure:
        await alice.call("bob", "broken")
    assert str(failure.value) == "The tool broken failed."
    assert b"hunter2" not in hub.stored[-1].data
    assert b"Traceback" not in hub.stored[-1].data
    assert "hunter2" in caplog.text


async def test_a_tool_tells_how_far_it_has_come(alice, bob):

    @bob.tool
    async def count(to: int, ctx: Context) -> str:
        for n in range(to):
            await ctx.progress(n + 1, total=to, message=f"{n + 1} of {to}")
        return "done"

    told: list[Progress] = []
    answer = await alice.call("bob", "count", {"to": 2}, on_progress=told.append)
    assert answer.text == "done"
    assert told == [Progress(1, 2, "1 of 2"), Progress(2, 2, "2 of 2")]
    await alice.call("bob", "count", {"to": 2})
    assert len(told) == 2


async def test_an_error_of_the_callers_own_ends_the_call(alice, bob):

    @bob.tool
    async def count(ctx: Context) -> None:
        await ctx.progress(1)
        await asyncio.Event().wait()

    def wrong(progress: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await alice.call("bob", "count", on_progress=wrong)
    await eventually(lambda: not bob._service._running)


async def test_a_cancelled_call_ends_the_tool_and_gets_no_answer(hub, alice, bob):
    begun, ended = asyncio.Event(), asyncio.Event()

    @bob.tool
    async def forever() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set()
            raise

    calling = asyncio.ensure_future(alice.call("bob", "forever"))
    await begun.wait()
    calling.cancel()
    await ended.wait()
    await alice.request("bob", "ping")
    assert not [kind for kind in hub.kinds() if kind.endswith("tools/call:forever")][1:]


async def test_an_answer_that_comes_just_after_the_cancellation_harms_nothing(alice, bob):
    begun = asyncio.Event()

    @bob.tool
    async def stubborn() -> str:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "too late"
        return ""

    calling = asyncio.ensure_future(alice.call("bob", "stubborn"))
    await begun.wait()
    calling.cancel()
    assert await alice.request("bob", "ping") == {}


async def test_no_more_calls_run_at_once_than_allowed(hub, alice):
    most = running = 0
    go_on = asyncio.Event()
    async with enter(hub, "bob", calls_at_once=2) as bob:

        @bob.tool
        async def work() -> None:
            nonlocal most, running
            running += 1
            most = max(most, running)
            await go_on.wait()
            running -= 1

        async with asyncio.TaskGroup() as tasks:
            calls = [tasks.create_task(alice.call("bob", "work")) for _ in range(5)]
            await eventually(lambda: running == 2 and len(bob._service._running) == 5)
            go_on.set()
        assert all(call.done() for call in calls)
    assert most == 2


async def test_one_call_too_many_is_told_that_the_agent_is_busy(alice, bob, monkeypatch):
    monkeypatch.setattr(served, "MAX_CALLS", 2)
    go_on = asyncio.Event()

    @bob.tool
    async def work() -> None:
        await go_on.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(alice.call("bob", "work"))
        await eventually(lambda: len(bob._service._running) == 2)
        with pytest.raises(RequestFailed, match="Too many calls"):
            await alice.call("bob", "work")
        go_on.set()


async def test_calls_that_run_when_the_agent_leaves_are_answered_by_the_hub(hub, alice):
    async with asyncio.TaskGroup() as tasks:
        async with enter(hub, "bob") as bob:

            @bob.tool
            async def forever() -> None:
                await asyncio.Event().wait()

            calling = tasks.create_task(failing(alice.call("bob", "forever")))
            await eventually(lambda: bool(bob._service._running))
        assert (await calling).reason == "target_left"


async def test_an_agent_without_tools_answers_nothing_by_itself(alice, bob):
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(alice.request("bob", "tools/list"))
        asked = await until(bob, lambda m: m.base == "mcp.request.tools/list")
        await bob.respond(asked, result={"tools": []})
        assert await asking == {"tools": []}


async def test_what_is_asked_of_another_is_not_answered(hub, alice, bob, carol):

    @bob.tool
    def work() -> None: ...

    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(failing(alice.request("carol", "ping", timeout=0.05)))
        assert (await asking).reason == "request_timed_out"
    assert not [kind for kind in hub.kinds() if kind.startswith("mcp.response")]


async def test_run_serves_until_cancelled_and_keeps_nothing(alice, bob):
    offer_double(bob)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(bob.run())
        for n in range(5):
            assert (await alice.call("bob", "double", {"n": n})).text == str(2 * n)
        assert not bob._entered().inbox._messages
        serving.cancel()


@pytest.mark.requirement("participant.pause-enforced")
async def test_a_call_to_an_agent_that_is_paused_runs_when_it_is_resumed(alice, bob):
    ran: list[int] = []

    @bob.tool
    def act(n: int) -> int:
        ran.append(n)
        return n

    assert (await alice.call("bob", "act", {"n": 1})).text == "1"
    await alice.pause("bob")
    async with asyncio.TaskGroup() as tasks:
        call = tasks.create_task(alice.call("bob", "act", {"n": 2}))
        await eventually(lambda: bool(bob._service._waiting))
        assert ran == [1]
        await alice.resume("bob")
        assert (await call).text == "2"
    assert ran == [1, 2]
