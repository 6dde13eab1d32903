"""Backends that restart, answer with very much, or lose their hub."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conformance.node import node_or_skip
from tests.faults.backends import flawed, is_there, trouble
from tests.mcp_harness import until
from tests.peers.clients import Ears
from tests.peers.gateway import backend, fronted, guest, token_of
from tests.peers.script import refusal
from tests.peers.servers import ANY_PORT, EVERYTHING, Place
from tests.process import Process, environment

pytestmark = pytest.mark.timeout(600)


class Restartable:
    """server-everything over HTTP, which can be ended and started again on its port."""

    def __init__(self) -> None:
        node = node_or_skip()
        self._command = [
            node.binary, "--import", ANY_PORT, str(node.modules / EVERYTHING), "streamableHttp",
        ]  # fmt: skip
        self._child: subprocess.Popen[str] | None = None
        self._reading: threading.Thread | None = None
        self.port = 0

    @property
    def place(self) -> Place:
        return Place("http", url=f"http://127.0.0.1:{self.port}/mcp")

    def start(self) -> None:
        """Start it, on the port it had if it had one."""
        self._child = child = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(PORT=str(self.port)),
        )
        assert child.stderr
        seen = ""
        while not (found := re.search(r"listens on (\d+) now", seen)):
            said = child.stderr.readline()
            assert said, f"the server did not start: {seen}"
            seen += said
        self.port = int(found[1])
        self._reading = threading.Thread(target=child.stderr.read)
        self._reading.start()

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            assert self._child.stderr
            if self._reading is not None:
                self._reading.join()
            self._child.stderr.close()
            self._child = self._reading = None

    def restart(self) -> None:
        """End it at once, and start it again."""
        self.kill()
        self.start()


class Restarts(Ears):
    """Someone who restarts the server before they answer its question."""

    def __init__(self, server: Restartable) -> None:
        super().__init__()
        self._server = server

    async def elicit(self, context: Any, params: Any) -> Any:
        """Restart it, and answer."""
        await asyncio.to_thread(self._server.restart)
        return await super().elicit(context, params)


@contextmanager
def restartable() -> Iterator[Restartable]:
    """The server, which has ended when this is left."""
    server = Restartable()
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.mark.long
@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.timeout(250)
async def test_a_server_over_http_that_restarts_on_its_port_is_used_again(era, tmp_path):
    with restartable() as server:
        spec = backend("every", server.place)
        async with (
            fronted(tmp_path, spec, era=era) as there,
            guest(there, await token_of(there, "ada"), Restarts(server)) as client,
        ):
            echoed = await client.call_tool("every_echo", {"message": "before"})
            assert echoed.content[0].text == "Echo: before"
            server.restart()
            # It knows the session no longer, which nobody but the hub needs to know.
            echoed = await client.call_tool("every_echo", {"message": "after"})
            assert echoed.content[0].text == "Echo: after"
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
            echoed = await client.call_tool("every_echo", {"message": "again"})
            assert echoed.content[0].text == "Echo: again"


@pytest.mark.long
@pytest.mark.timeout(250)
async def test_a_very_large_result_passes_and_one_that_is_larger_is_an_error_of_its_call(tmp_path):
    async with trouble(tmp_path) as at:
        process = await at.echo()
        large = await at.call("huge", megabytes=16)
        assert len(large["content"][0]["text"]) == 16_000_000
        del large
        too_large = await at.refused("huge", megabytes=20)
        assert too_large["code"] == "backend_failed"
        assert await at.echo() == process


async def test_a_hub_that_stops_leaves_no_process_behind(tmp_path):
    async with trouble(tmp_path) as at:
        processes = [await at.echo()]
        waiting = asyncio.ensure_future(at.call("hang"))
        await at.until_done("hang")
        waiting.cancel()
        await asyncio.wait([waiting])
    assert not any(map(is_there, processes))


@pytest.mark.long
async def test_a_hub_that_is_killed_takes_the_processes_behind_it_along(tmp_path):
    spec = flawed("flawed", tmp_path / "flawed")
    folder = tmp_path / "data"
    folder.mkdir()
    command = json.dumps(list(spec.command))
    (folder / "config.toml").write_text(f"[backends.flawed]\ncommand = {command}\n")

    def children(process: int) -> list[int]:
        told = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process)],
            capture_output=True,
            text=True,
            check=False,
        )
        return list(map(int, told.stdout.split()))

    with Process(folder) as hub:

        async def has_started() -> bool:
            return bool(children(hub.child.pid))

        await until(has_started)
        started = children(hub.child.pid)
        hub.child.kill()

        async def all_gone() -> bool:
            return not any(map(is_there, started))

        await until(all_gone)
