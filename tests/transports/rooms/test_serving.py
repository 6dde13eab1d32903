"""Several WebSockets of one agent at a real hub, which is restarted between two of them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
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


def states(seat: Seat) -> dict[str, str]:
    return {one["id"]: one["state"] for one in seat.welcome["waiting"]["requests"]}


@pytest.mark.requirement("serving.newest", "serving.begun-once", "serving.take-over")
async def test_one_of_two_websockets_begins_a_request_and_the_other_takes_over(
    tmp_path: Path,
) -> None:
    async with town(tmp_path) as there:
        ann, rob = await there.person("ann"), await there.person("rob")
        await there.room(ann, capabilities=None)
        async with (
            there.joined(ann.token) as owner,
            there.joined(rob.token, serve=1, conn="one") as one,
        ):
            assert one.welcome["serving"] == {"you": True, "connection": "one"}
            async with there.joined(rob.token, serve=1, conn="two") as two:
                assert two.welcome["serving"] == {"you": True, "connection": "two"}
                told = await heard(one, "system.serving")
                assert told["payload"] == {"you": False, "connection": "two"}
                await owner.send(call("q1", 1))
                await owner.send(call("q2", 2))
                for seat in (one, two):
                    await heard(seat, "mcp.request.tools/call")
                    await heard(seat, "mcp.request.tools/call")
                await one.send(begin("q1"))
                refused = await heard(one, "system.error")
                assert refused["payload"]["error"] == "not_serving"
                await two.send(begin("q1"))
                assert (await heard(two, BEGIN, "system.error"))["kind"] == BEGIN
            told = await heard(one, "system.serving")
            assert told["payload"]["you"]
            open_ = {it["id"]: it["state"] for it in told["payload"]["requests"]}
            assert open_ == {"q1": "running", "q2": "waiting"}
            await one.send(begin("q1"))
            assert (await heard(one, "system.error"))["payload"]["error"] == "request_begun"
            await one.send(begin("q2") | {"id": "b2"})
            assert (await heard(one, BEGIN, "system.error"))["id"] == "b2"


@pytest.mark.requirement("serving.interrupted", "room.welcome-waiting")
async def test_after_a_restart_an_agent_learns_what_it_owes(tmp_path: Path) -> None:
    rooms = {"return_seconds": 0.2}
    async with AsyncExitStack() as seats, town(tmp_path, rooms=rooms) as there:
        ann, rob = await there.person("ann"), await there.person("rob")
        await there.room(ann, capabilities=None)
        owner = await seats.enter_async_context(there.joined(ann.token))
        seat = await seats.enter_async_context(there.joined(rob.token, serve=1))
        await owner.send(call("q1", 1))
        await owner.send(call("q2", 2))
        await heard(seat, "mcp.request.tools/call")
        await heard(seat, "mcp.request.tools/call")
        await seat.send(begin("q1"))
        await heard(seat, BEGIN)
    async with town(tmp_path, rooms=rooms) as there, there.joined(rob.token, serve=1) as seat:
        assert states(seat) == {"q1": "running", "q2": "waiting"}
        told = await heard(seat, "system.serving")
        open_ = {it["id"]: it["state"] for it in told["payload"]["requests"]}
        assert open_ == {"q1": "interrupted", "q2": "waiting"}
        waiting = await there.hub.rooms.waiting(rob.visitor, ROOM)
        assert [one.state for one in waiting.requests] == ["interrupted", "waiting"]


async def test_a_connection_id_stays_between_the_agent_and_the_hub(tmp_path: Path) -> None:
    async with town(tmp_path) as there:
        ann, rob = await there.person("ann"), await there.person("rob")
        await there.room(ann, capabilities=None)
        async with (
            there.joined(ann.token) as owner,
            there.joined(rob.token, serve=1, conn="my own desk") as seat,
        ):
            await owner.send(call("q1", 1))
            await heard(seat, "mcp.request.tools/call")
            await seat.send(begin("q1"))
            await seat.say("done")
            said = []
            while not said or said[-1]["payload"].get("text") != "done":
                said.append(await owner.hear())
            assert BEGIN in [one["kind"] for one in said]
            assert "my own desk" not in str(said)
