"""Backends that restart, answer with very much, or lose their hub."""

from __future__ import annotations

import asyncio
import json
import subprocess
from contextlib import ExitStack, closing
from typing import Any

import pytest

from tests.faults.backends import flawed, is_there, trouble
from tests.mcp_harness import until
from tests.peers.clients import Ears
from tests.peers.gateway import backend, fronted, guest, token_of
from tests.peers.script import refusal
from tests.peers.servers import Place, listening, serving_command
from tests.process import Process

pytestmark = pytest.mark.timeout(600)


class Restartable:
    """server-everything over HTTP, which can be ended and started again on its port."""

    def __init__(self) -> None:
        self._running = ExitStack()
        self.port = 0

    def restart(self) -> None:
        """End it at once if it runs, and start it on the port it had if it had one."""
        self._running.close()
        started = listening(serving_command("http"), port=self.port)
        self.port = self._running.enter_context(started)

    def close(self) -> None:
        self._running.close()


class Restarts(Ears):
    """Someone who restarts the server before they answer its question."""

    def __init__(self, server: Restartable) -> None:
        super().__init__()
        self._server = server

    async def elicit(self, context: Any, params: Any) -> Any:
        """Restart it, and answer."""
        await asyncio.to_thread(self._server.restart)
        return await super().elicit(context, params)


@pytest.mark.long
@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.timeout(250)
async def test_a_server_over_http_that_restarts_on_its_port_is_used_again(era, tmp_path):
    with closing(Restartable()) as server:
        server.restart()
        spec = backend("every", Place("http", url=f"http://127.0.0.1:{server.port}/mcp"))
        async with (
            fronted(tmp_path, spec, era=era) as there,
            guest(there, await token_of(there, "ada"), Restarts(server)) as client,
        ):

            async def echo(message: str) -> None:
                echoed = await client.call_tool("every_echo", {"message": message})
                assert echoed.content[0].text == f"Echo: {message}"

            await echo("before")
            server.restart()
            # It knows the session no longer, which nobody but the hub needs to know.
            await echo("after")
            begun = asyncio.Event()

            async def note(*_: Any) -> None:
                begun.set()

            # It is annotated as read-only, so that it may be done again.
            long = {"duration": 3, "steps": 30}
            tool = "every_trigger_long_running_operation"
            waiting = asyncio.ensure_future(client.call_tool(tool, long, progress_callback=note))
            await begun.wait()
            server.restart()
            assert "completed" in (await waiting).content[0].text
            # This one is not, and what it asked was asked by a server that is no more.
            lost = await refusal(client.call_tool("every_trigger_elicitation_request", {}))
            assert lost.is_error
            assert json.loads(lost.content[0].text)["code"] == "backend_failed"
            await echo("again")


@pytest.mark.long
@pytest.mark.timeout(250)
async def test_a_very_large_result_passes_and_one_that_is_larger_is_an_error_of_its_call(tmp_path):
    async with trouble(tmp_path) as at:
        process = await at.echo()
        assert len(await at.text("huge", megabytes=16)) == 16_000_000
        assert (await at.refused("huge", megabytes=20))["code"] == "backend_failed"
        assert await at.echo() == process


async def test_a_hub_that_stops_leaves_no_process_behind(tmp_path):
    async with trouble(tmp_path) as at:
        process = await at.echo()
        waiting = asyncio.ensure_future(at.call("hang"))
        await at.until_done("hang")
        waiting.cancel()
        await asyncio.wait([waiting])
    assert not is_there(process)


@pytest.mark.long
async def test_a_hub_that_is_killed_takes_the_processes_behind_it_along(tmp_path):
    spec = flawed("flawed", tmp_path / "flawed")
    folder = tmp_path / "data"
    folder.mkdir()
    command = json.dumps(list(spec.command))
    (folder / "config.toml").write_text(f"[backends.flawed]\ncommand = {command}\n")

    def children(process: int) -> list[int]:
        command = ["ps", "-o", "pid=", "--ppid", str(process)]
        told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
        return list(map(int, told.split()))

    with Process(folder) as hub:
        await until(lambda: children(hub.child.pid))
        started = children(hub.child.pid)
        hub.child.kill()
        await until(lambda: not any(map(is_there, started)))
