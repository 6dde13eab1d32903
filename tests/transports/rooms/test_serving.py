"""Several WebSockets of one agent at a real hub, which is restarted between two of them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.transports.rooms.support import ROOM, Seat, town

BEGIN = "mcpx.begin.request"


def call(id_: str, n: int) -> dict[str, Any]:
    payload = {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "mow"}}
    return {"id": id_, "kind": "mcp.request.tools/call", "to": ["rob"], "payload": payload}


def begin(about: str) -> dict[str, Any]:
    return {"kind": BEGIN, "correlation_id": [about], "payload": {}}


async def heard(seat: Seat, *kinds: str) -> dict[str, Any]:
    """The next message of one of some kinds."""
    while True:
        told = await seat.hear()
        if told["kind"] in kinds:
            return told


@pytest.mark.requirement("serving.newest", "serving.begun-once", "serving.take-over")
async def test_one_of_two_websockets_begins_a_request_and_the_other_takes_over(hub, seat):
    rob = await hub.person("rob")
    async with hub.joined(rob.token, serve=1, conn="one") as one:
        assert one.welcome["serving"] == {"you": True, "connection": "one"}
        async with hub.joined(rob.token, serve=1, conn="two") as two:
            assert two.welcome["serving"] == {"you": True, "connection": "two"}
            told = await heard(one, "system.serving")
            assert told["payload"] == {"you": False, "connection": "two"}
            for number in (1, 2):
                await seat.send(call(f"q{number}", number))
                for agent in (one, two):
                    await heard(agent, "mcp.request.tools/call")
            await one.send(begin("q1"))
            assert (await heard(one, "system.error"))["payload"]["error"] == "not_serving"
            await two.send(begin("q1"))
            assert (await heard(two, BEGIN, "system.error"))["kind"] == BEGIN
        told = (await heard(one, "system.serving"))["payload"]
        assert told["you"]
        open_ = {it["id"]: it["state"] for it in told["requests"]}
        assert open_ == {"q1": "running", "q2": "waiting"}
        await one.send(begin("q1"))
        assert (await heard(one, "system.error"))["payload"]["error"] == "request_begun"
        await one.send(begin("q2") | {"id": "b2"})
        assert (await heard(one, BEGIN, "system.error"))["id"] == "b2"


@pytest.mark.requirement("serving.interrupted", "room.welcome-waiting")
@pytest.mark.timeout(25)  # without the setting it would take longer
async def test_after_a_restart_an_agent_learns_what_it_owes(tmp_path):
    rooms = {"return_seconds": 0.5}
    async with AsyncExitStack() as seats, town(tmp_path, rooms=rooms) as there:
        ann, rob = await there.person("ann"), await there.person("rob")
        await there.room(ann)
        owner = await seats.enter_async_context(there.joined(ann.token))
        agent = await seats.enter_async_context(there.joined(rob.token, serve=1))
        for number in (1, 2):
            await owner.send(call(f"q{number}", number))
            await heard(agent, "mcp.request.tools/call")
        await agent.send(begin("q1"))
        await heard(agent, BEGIN)
    async with town(tmp_path, rooms=rooms) as there, there.joined(rob.token, serve=1) as agent:
        waiting = agent.welcome["waiting"]["requests"]
        assert {it["id"]: it["state"] for it in waiting} == {"q1": "running", "q2": "waiting"}
        told = (await heard(agent, "system.serving"))["payload"]["requests"]
        assert {it["id"]: it["state"] for it in told} == {"q1": "interrupted", "q2": "waiting"}
        listed = await there.hub.rooms.waiting(rob.visitor, ROOM)
        assert [one.state for one in listed.requests] == ["interrupted", "waiting"]


async def test_a_connection_id_stays_between_the_agent_and_the_hub(hub, ann, seat):
    rob = await hub.person("rob")
    async with hub.joined(rob.token, serve=1, conn="my own desk") as agent:
        await seat.send(call("q1", 1))
        await heard(agent, "mcp.request.tools/call")
        await agent.send(begin("q1"))
        await agent.say("done")
        said = []
        while not said or said[-1]["payload"].get("text") != "done":
            said.append(await seat.hear())
        assert BEGIN in [one["kind"] for one in said]
        assert "my own desk" not in str(said)
