"""A tool that is run as a task: server-everything and the TypeScript client, with us between."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.node import node_or_skip
from tests.harness import run
from tests.peers.gateway import backend, fronted, token_of
from tests.peers.servers import Place, Transport, everything
from tests.peers.test_proxy_pairs import proxied

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
    did: dict[str, Any] = json.loads(said)
    return did


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
    assert did["related"] == [made]
    assert did["listed"] == [[made, "completed"]]
    assert did["again"]["status"] == "completed"
    assert "task" in did["plain"]["message"]
    assert did["unknown"]["code"] == -32602


@pytest.mark.requirement("gateway.tasks")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_tool_is_run_as_a_task_through_the_gateway(transport: Transport, tmp_path: Path) -> None:
    async def main(server: Place) -> None:
        direct = await done_at(server, TOOL, tmp_path)
        check(direct)
        async with fronted(tmp_path / "hub", backend("every", server)) as there:
            url = f"{there.url}?token={await token_of(there, 'ada')}"
            did = await done_at(Place("http", url=url), "every_simulate_research_query", tmp_path)
            check(did)
            assert did["plain"]["code"] == direct["plain"]["code"]
            other = f"{there.url}?token={await token_of(there, 'bob')}"
            did = await done_at(Place("http", url=other), "every_simulate_research_query", tmp_path)
            # Of Ada's task nothing is to be seen.
            check(did)

    with everything(transport) as server:
        run(main(server), 240)


@pytest.mark.requirement("proxy.passes-everything")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_tool_is_run_as_a_task_through_the_proxy(transport: Transport, tmp_path: Path) -> None:
    async def main(server: Place) -> None:
        async with proxied(server, "http", forked=False) as place:
            check(await done_at(place, TOOL, tmp_path))

    with everything(transport) as server:
        run(main(server), 240)
