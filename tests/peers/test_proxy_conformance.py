"""The official conformance suite sees no difference between a server and the proxy before it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from folkmoot.clock import SystemClock
from folkmoot.proxy.tape import TapeSide, read_tape
from folkmoot.relay.proxy import ProxiedServer, assembled
from folkmoot.relay.recording import Recording
from tests.conformance.node import Node, node_or_skip
from tests.conformance.suite import PROGRAM, REVISIONS, ROOT, Outcome, hub, run_suite
from tests.harness import run
from tests.process import environment, ran

SECONDS = 600


def through_proxy(node: Node, url: str, revision: str, folder: Path) -> Outcome:
    """A run of the suite against a proxy that records what it carries."""

    async def main() -> Outcome:
        async with (
            assembled(
                ProxiedServer(url=url, transport="http"),
                SystemClock(),
                client=TapeSide("http"),
                recording=Recording(file=folder / "tape.jsonl"),
            ) as proxy,
            proxy.listening("127.0.0.1", 0) as there,
        ):
            return await asyncio.to_thread(
                run_suite, node, f"{there}/mcp", revision, folder / "results"
            )

    return run(main(), SECONDS)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("proxy.record", "mcp.both-eras")
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_suite_gives_the_same_result_through_the_proxy(revision, tmp_path):
    node = node_or_skip()
    for attempt in ("first", "second"):
        folder = tmp_path / attempt
        folder.mkdir()
        with hub(folder / "hub") as url:
            direct = run_suite(node, url, revision, folder / "direct")
            through = through_proxy(node, url, revision, folder)
        if through.scenarios == direct.scenarios and through.conforms:
            break
        # The suite waits half a second for some answers, which is little on a busy machine.
    assert through.scenarios == direct.scenarios
    assert through.conforms, through.output
    tape = read_tape(folder / "tape.jsonl")
    assert tape.end is not None
    assert len(tape.entries) > len(through.scenarios)


@pytest.mark.long
@pytest.mark.requirement("proxy.sign-in-refused")
def test_a_client_that_signs_in_through_the_proxy_is_kept_from_a_mismatched_resource():
    node = node_or_skip()
    client = f"{sys.executable} -m tests.peers.signing_client"
    scenario = ["--scenario", "auth/resource-mismatch", "--spec-version", "2026-07-28"]
    command = (node.binary, node.modules / PROGRAM, "client", "--command", client, *scenario)
    done = ran(*command, cwd=ROOT, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Client correctly rejected authorization" in done.stdout + done.stderr
