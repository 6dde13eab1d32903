"""A tool that is run as a task: server-everything and the TypeScript client, with us between."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.node import node_or_skip
from tests.harness import run
from tests.mcp_harness import Meeting
from tests.peers.clients import command_of
from tests.peers.gateway import backend, fronted, token_of
from tests.peers.servers import Place, everything, everything_command
from tests.peers.test_proxy_pairs import proxied
from tests.transports.mcp.gateway_support import fronted as tools_of
from tests.transports.mcp.task_support import DECLARING, Jobs, listening, tasker

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

TOOL = "simulate-research-query"
SCRIPT = Path(__file__).parent / "tasks.mjs"


async def done_at(place: Place, tool: str, folder: Path) -> dict[str, Any]:
    """What the official client gets."""
    node = node_or_skip()
    # A module finds its packages by where it lies.
    script = shutil.copy(SCRIPT, folder)
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(node.modules)
    given = [place.url] if place.url else place.command
    child = await asyncio.create_subprocess_exec(
        node.binary, script, tool, *given, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await child.communicate()
    assert child.returncode == 0
    return json.loads(said)


def check(did: dict[str, Any]) -> None:
    """The tool was run as a task, its question came to the client and the answer to the server."""
    assert did["execution"] == {"taskSupport": "required"}
    assert did["capabilities"]["requests"] == {"tools": {"call": {}}}
    kinds = [each["type"] for each in did["seen"]]
    assert kinds[0] == "taskCreated"
    assert kinds[-1] == "result", did["seen"]
    made = did["seen"][0]["task"]["taskId"]
    statuses = {each["task"]["status"] for each in did["seen"] if each["type"] == "taskStatus"}
    assert "input_required" in statuses
    result = did["seen"][-1]["result"]
    assert "Research Report: python (snake)" in result["content"][0]["text"]
    assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": made}
    assert (did["related"], did["listed"]) == ([made], [[made, "completed"]])
    assert did["again"]["status"] == "completed"
    assert "task" in did["plain"]["message"]
    assert did["unknown"]["code"] == -32602


@pytest.mark.requirement("gateway.tasks")
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.timeout(240)
async def test_a_tool_is_run_as_a_task_through_the_gateway(transport, tmp_path):
    with everything(transport) as server:
        direct = await done_at(server, TOOL, tmp_path)
        check(direct)
        # The result of a task may be waited for longer than the answer to a call.
        async with fronted(tmp_path / "hub", backend("every", server, call_seconds=2)) as there:
            url = f"{there.url}?token={await token_of(there, 'ada')}"
            did = await done_at(Place("http", url=url), "every_simulate_research_query", tmp_path)
            check(did)
            assert did["plain"]["code"] == direct["plain"]["code"]
            other = f"{there.url}?token={await token_of(there, 'bob')}"
            did = await done_at(Place("http", url=other), "every_simulate_research_query", tmp_path)
            # Of Ada's task nothing is to be seen.
            check(did)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.timeout(240)
async def test_a_tool_is_run_as_a_task_through_the_proxy(transport, tmp_path):
    with everything(transport) as server:
        async with proxied(server, "http", forked=False) as place:
            check(await done_at(place, TOOL, tmp_path))


@pytest.mark.requirement("proxy.record", "proxy.replay")
def test_a_task_is_recorded_and_served_again(tmp_path):
    tape = tmp_path / "tape.jsonl"
    server = everything_command()
    recorded = run(
        done_at(
            command_of("proxy", "--record", str(tape), "--", *server, forked=False), TOOL, tmp_path
        ),
        120,
    )
    check(recorded)
    served = run(done_at(command_of("tape", "serve", str(tape), forked=False), TOOL, tmp_path), 250)
    assert served == recorded


@asynccontextmanager
async def two_hubs(folder: Path, *jobs: Jobs) -> AsyncIterator[tuple[Meeting, Meeting]]:
    """A hub with servers behind it, and a hub that has that one behind it as `near`."""
    async with tools_of(folder / "far", "stateless", *jobs) as far:
        token = await token_of(far, "nearhub")
        server = backend(
            "near", Place("http", url=far.url), headers={"Authorization": f"Bearer {token}"}
        )
        async with fronted(folder / "near", server) as near:
            yield far, near


@pytest.mark.requirement("gateway.tasks", "gateway.task-owner")
async def test_a_task_and_its_changes_come_through_two_hubs_in_the_stateless_era(tmp_path):
    jobs = Jobs("stateless")
    async with two_hubs(tmp_path, jobs) as (_, near):
        ann = await tasker(near, await token_of(near, "ann"), "stateless")
        bob = await tasker(near, await token_of(near, "bob"), "stateless")
        made, bobs = await ann.make("near_demo_may"), await bob.make("near_demo_may")
        assert await ann.error("tasks/get", taskId=bobs) == (-32602, "Task not found.")
        wanted = {"notifications": {"taskIds": [made, bobs]}}
        listen = ann.wire.message("subscriptions/listen", wanted, 4, DECLARING)
        async with ann.wire.streamed(listen) as stream:
            assert (await anext(stream))["params"]["notifications"] == {"taskIds": [made]}
            jobs.end("2")
            jobs.end("1", "for Ann")
            jobs.change("2")
            jobs.change("1")
            told = (await anext(stream))["params"]
        assert (told["taskId"], told["status"]) == (made, "completed")
        assert told["result"]["content"][0]["text"] == "for Ann"


async def next_of_task(stream: Any) -> dict[str, Any]:
    """What is told of a task next; that the tools changed may be told late, and before it."""
    while "taskId" not in (told := (await anext(stream)).get("params", {})):
        pass
    return dict(told)


@pytest.mark.requirement("gateway.tasks", "gateway.task-owner")
async def test_a_task_and_its_changes_come_through_two_hubs_in_the_handshake_era(tmp_path):
    jobs = Jobs("handshake")
    async with two_hubs(tmp_path, jobs) as (far, near):
        ann = await tasker(near, await token_of(near, "ann"), "handshake")
        bob = await tasker(near, await token_of(near, "bob"), "handshake")
        made, bobs = await ann.make("near_demo_must"), await bob.make("near_demo_must")
        async with listening(ann) as hers, listening(bob) as his:
            jobs.end("1", "for Ann")
            far.hub.behind.gateway.task_changed("demo", "1")
            told = await next_of_task(hers)
            assert (told["taskId"], told["status"]) == (made, "completed")
            far.hub.behind.gateway.task_changed("demo", "2")
            assert (await next_of_task(his))["taskId"] == bobs
        result = (await ann.ask("tasks/result", taskId=made))["result"]
        assert result["content"][0]["text"] == "for Ann"
        assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": made}
        listed = (await bob.ask("tasks/list"))["result"]["tasks"]
        assert [each["taskId"] for each in listed] == [bobs]
