"""A conversation with a server that others wrote: recorded, served again, and played against it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from folkmoot.clock import SystemClock
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.transport import StdioMetadata
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.tape import TapeSide, read_tape
from folkmoot.relay.proxy import ProxiedServer, Proxy, Upstream, assembled
from folkmoot.relay.recording import Recording
from folkmoot.relay.steps import Steps
from folkmoot.relay.tape_server import Replay
from tests.forge import forked
from tests.harness import run
from tests.mcp_harness import until
from tests.peers.clients import Ears, client_of, command_of
from tests.peers.script import everything_done
from tests.peers.servers import Place, everything, everything_command
from tests.process import environment

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.timeout(600),
    pytest.mark.long,
]

SECONDS = 250
# Where server-everything says what time it is.
CLOCK = "$.result.contents[*].text"

LONG = "trigger-long-running-operation"

# Loaded before a server on standard input and output: it has one of its answers be another.
CHANGED = (
    "data:text/javascript,const write=process.stdout.write;"
    "process.stdout.write=function(said,...rest){return write.call(this,"
    'String(said).replace("The sum of 2 and 3 is 5","The sum of 2 and 3 is 6"),...rest)}'
)


async def done_at(place: Place) -> dict[str, Any]:
    ears = Ears()
    async with client_of(place, ears) as client:
        return await everything_done(client, ears)


def played(tape: Path, *options: str, server: tuple[str, ...]) -> Any:
    """What `tape play` tells, and how it ends."""
    done: subprocess.CompletedProcess[str] = forked.run(
        ["tape", "play", str(tape), "--json", *options, "--", *server],
        env=environment(),
        timeout=SECONDS,
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.requirement("proxy.record", "proxy.replay", "proxy.every-message-is-an-envelope")
def test_a_recorded_server_answers_again_and_a_changed_one_is_told_from_it(tmp_path):
    tape, server = tmp_path / "tape.jsonl", everything_command()
    recorded = run(done_at(command_of("proxy", "--record", str(tape), "--", *server)))

    assert run(done_at(command_of("tape", "serve", "--strict", str(tape)))) == recorded

    code, report = played(tape, "--ignore", CLOCK, server=server)
    assert (code, report["same"]) == (0, True), report
    # What was cancelled has no answer that could be compared.
    assert [call["outcome"] for call in report["calls"]].count("not_compared") == 1

    node, *rest = server
    code, report = played(tape, "--ignore", CLOCK, server=(node, "--import", CHANGED, *rest))
    assert code == 1
    [changed] = [call for call in report["calls"] if call["outcome"] == "differs"]
    assert (changed["method"], changed["name"]) == ("tools/call", "get-sum")
    [difference] = changed["differences"]
    assert difference["path"] == "$.result.content[0].text"
    assert "is 5" in str(difference)
    assert "is 6" in str(difference)


@pytest.mark.requirement("proxy.own-answers", "proxy.slow-start")
async def test_a_server_that_was_slow_to_start_and_died_differs_in_nothing_from_itself(tmp_path):
    tape, server = tmp_path / "tape.jsonl", everything_command()
    slowly = ("sh", "-c", f"sleep 6; exec {shlex.join(server)}")
    async with client_of(command_of("proxy", "--record", str(tape), "--", *slowly)) as client:
        await client.call_tool("echo", {"message": "hi"})
        waiting = asyncio.ensure_future(client.call_tool(LONG, {"duration": 60, "steps": 2}))
        await until(lambda: f'"name":"{LONG}","arguments"' in tape.read_text().replace(" ", ""))
        said = [
            each.context.transport.metadata
            for each in read_tape(tape).entries
            if each.context.direction is MessageDirection.SERVER_TO_CLIENT
        ]
        assert isinstance(said[-1], StdioMetadata)
        assert said[-1].process_id
        os.kill(said[-1].process_id, signal.SIGKILL)
        with pytest.raises(MCPError, match="The server ended before it answered"):
            await waiting
    assert read_tape(tape).entries[-1].by == "proxy"
    code, report = played(tape, server=server)
    assert (code, report["same"]) == (0, True), report
    outcomes = [call["outcome"] for call in report["calls"]]
    assert outcomes.count("not_compared") == 1
    assert outcomes.count("same") == len(outcomes) - 1


@pytest.mark.requirement("proxy.record", "proxy.replay", "proxy.record-no-secrets")
def test_a_session_over_http_is_served_again_on_every_transport_without_its_id(tmp_path):
    path = tmp_path / "tape.jsonl"

    async def record(server: Place) -> dict[str, Any]:
        async with (
            assembled(
                ProxiedServer(url=server.url),
                SystemClock(),
                client=TapeSide("http"),
                recording=Recording(file=path, key_file=tmp_path / "key"),
            ) as proxy,
            proxy.listening("127.0.0.1", 0) as url,
        ):
            return await done_at(Place("http", url=f"{url}/mcp"))

    async def served() -> None:
        replay = Replay(read_tape(path), SystemClock())
        proxy = Proxy(Upstream(replay.connect), Steps(Chain(), None, SystemClock()))
        async with proxy.listening("127.0.0.1", 0) as url:
            assert await done_at(Place("http", url=f"{url}/mcp")) == recorded
            assert await done_at(Place("sse", url=f"{url}/sse")) == recorded
        assert replay.misses == []
        assert replay.unasked() == []

    with everything("http") as server:
        recorded = run(record(server))
        run(served())
        sessions = {
            str(entry.envelope.context.session.session_id) for entry in read_tape(path).entries
        }
        assert sessions <= {"None"} | {name for name in sessions if name.startswith("[redacted:")}
        done = forked.run(
            ["tape", "play", str(path), "--json", "--ignore", CLOCK, "--upstream", server.url],
            env=environment(),
            timeout=SECONDS,
        )
    assert json.loads(done.stdout)["same"] is True
    assert done.returncode == 0
