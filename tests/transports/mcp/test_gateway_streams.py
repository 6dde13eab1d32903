"""Calls that take long: how they are kept open, ended early, and kept from being too many."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from folkmoot.gateway.model import UpstreamRequest
from folkmoot.mcp.server import responses, streams
from folkmoot.transports.mcp import calls
from tests.mcp_harness import both_eras, until
from tests.transports.mcp.gateway_support import (
    Demo,
    Talker,
    Wire,
    fronted,
    log,
    messages,
    payload,
    progress,
    stateless,
    text,
    wired,
)

CANCELLED = "notifications/cancelled"


@pytest.fixture
def slow() -> Talker:
    return Talker()


@pytest.fixture
def backend(slow: Talker) -> Demo:
    return Demo(slow=slow)


def cancelling(request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": request_id}}


@both_eras
async def test_a_long_call_begins_its_stream_and_keeps_it_alive(hub, slow, wire, era, monkeypatch):
    monkeypatch.setattr(responses, "OPEN_SECONDS", 0.06)
    monkeypatch.setattr(responses, "QUIET_SECONDS", 0.02)
    message = wire.message("tools/call", {"name": "demo_slow"}, 1, None)
    async with wire.http.stream(
        "POST", hub.url, content=json.dumps(message), headers=wire.headers(message)
    ) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert not slow.answered
        parts = response.aiter_text()
        while (part := await anext(parts)) != ": still here\n\n":
            assert (era, part[:4]) == ("handshake", "id: ")
        slow.go_on.set()
        rest = "".join([part async for part in parts])
    last = json.loads(rest.strip().rpartition("data: ")[2])
    assert last["result"]["content"][0]["text"] == "done"


async def test_a_session_cancels_its_own_calls_and_no_others(hub, slow, backend, ann, bob):
    mine, also_mine, bobs = [await wired(hub, who) for who in (ann, ann, bob)]
    asking = asyncio.ensure_future(
        mine.post(mine.message("tools/call", {"name": "demo_slow"}, 7, None))
    )
    await slow.begun.wait()
    for wire, request_id in ((bobs, 7), (also_mine, 7), (mine, "7"), (mine, 8)):
        assert (await wire.post(cancelling(request_id))).status == 202
    # A session is named by its own id alone, and opened by its own token.
    lent = Wire(hub, bob.token, mine.session)
    assert (await lent.post(cancelling(7))).status == 404
    await lent.leave()
    assert backend.cancelled == []
    accepted = await mine.post(cancelling(7))
    assert (accepted.status, accepted.body) == (202, b"")
    ended = await asking
    assert ended.status == 200
    assert messages(ended) == []
    assert len(backend.cancelled) == 1
    assert (await mine.ask("tools/call", {"name": "demo_echo"}, id_=7))["id"] == 7


@pytest.mark.parametrize("told", [False, True], ids=["silent", "streamed"])
@stateless
async def test_without_a_session_whoever_leaves_has_cancelled(hub, slow, backend, wire, told):
    meta = {"progressToken": 1} if told else None
    message = wire.message("tools/call", {"name": "demo_slow"}, 1, meta)
    if told:
        async with wire.streamed(message) as events:
            await anext(events)
            await slow.begun.wait()
    else:
        asking = asyncio.ensure_future(wire.post(message))
        await slow.begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
    await until(lambda: backend.cancelled)
    assert not slow.answered
    assert len(hub.hub.mcp._parts.calls) == 0


@both_eras
async def test_calls_at_once_are_bounded(slow, backend, wire, bobs, era, monkeypatch):
    monkeypatch.setattr(calls, "MAX_CALLS_OF_SESSION", 2)
    monkeypatch.setattr(calls, "MAX_CALLS_OF_ACCOUNT", 3)
    most = 2 if era == "handshake" else 3
    asking = [
        asyncio.ensure_future(wire.ask("tools/call", {"name": "demo_slow"}, id_=number))
        for number in range(most)
    ]
    await until(lambda: len(backend.asked) == most)
    refused = await wire.ask("tools/call", {"name": "demo_echo"}, id_=99)
    assert payload(refused["result"])["code"] == "too_many_in_flight"
    assert "error" not in await bobs.ask("tools/call", {"name": "demo_echo"})
    if era == "handshake":
        twice = await wire.ask("tools/call", {"name": "demo_echo"}, id_=0)
        assert twice["error"]["data"]["code"] == "invalid_id"
    slow.go_on.set()
    assert [each["id"] for each in await asyncio.gather(*asking)] == list(range(most))
    assert "error" not in await wire.ask("tools/call", {"name": "demo_echo"})


async def test_what_a_slow_reader_misses_is_progress_first(slow, backend, wire):
    async def flood(wanted: UpstreamRequest) -> Any:
        slow.say(wanted, *(log("info", str(number)) for number in range(200)))
        slow.say(wanted, *(progress(number) for number in range(1_000)))
        return text("done")

    backend.tools["slow"] = flood
    message = wire.message("tools/call", {"name": "demo_slow"}, 1, {"progressToken": 1})
    *told, last = messages(await wire.post(message))
    logs = [each["params"]["data"] for each in told if "data" in each["params"]]
    assert logs == [str(number) for number in range(200)]
    done = [each["params"]["progress"] for each in told if "data" not in each["params"]]
    assert done == list(range(1_000 - (streams.MOST_EVENTS - 200), 1_000))
    assert last["result"]["content"][0]["text"] == "done"


@both_eras
async def test_a_call_that_outlasts_the_hub_is_answered_before_the_connection_ends(
    tmp_path, era, slow, backend
):
    async with fronted(tmp_path, era, backend, http={"shutdown_seconds": 4}) as there:
        wire = await wired(there, (await there.hub.accounts.register("ada")).token)
        # It stays until it is answered.
        there._people.clear()
        asking = asyncio.ensure_future(wire.ask("tools/call", {"name": "demo_slow"}))
        await slow.begun.wait()
    assert payload((await asking)["result"])["code"] == "hub_stopping"
    await wire.leave()
