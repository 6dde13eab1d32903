"""Servers of the SDK in processes of their own, killed and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from folkmoot.core import errors as e
from tests.ports import free_port
from tests.relay.upstream.scripted import call, running, spec

SERVER = """
import os, sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("sdk", log_level="ERROR")

@server.tool()
def whoami() -> int:
    return os.getpid()

if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
"""

pytestmark = pytest.mark.long


@pytest.mark.timeout(250)
async def test_a_server_on_pipes_is_started_again_whenever_it_is_killed() -> None:
    settings = spec(command=(sys.executable, "-c", SERVER), connect_seconds=60)
    async with running(settings, dict(os.environ)) as there:
        seen = set()
        for _ in range(3):
            answer = await there.backend.request(call("whoami", repeatable=True))
            process = answer.result["structuredContent"]["result"]
            seen.add(process)
            os.kill(process, signal.SIGKILL)
            await there.until(lambda backend: backend.state.value != "up")
            await there.until(lambda backend: backend.state.value == "up")
        assert len(seen) == 3
        assert there.backend.view().restarts == 3


@pytest.mark.timeout(250)
async def test_a_server_on_a_port_is_used_again_after_it_was_killed_and_started() -> None:
    port = free_port()
    command = [sys.executable, "-c", SERVER, str(port)]
    settings = spec(url=f"http://127.0.0.1:{port}/mcp", connect_seconds=60)
    with started(command) as first:
        async with running(settings) as there:
            await there.backend.request(call("whoami"))
            first.kill()
            first.wait()
            with started(command) as second:
                while True:
                    try:
                        answer = await there.backend.request(call("whoami"))
                        break
                    except e.GatewayError:
                        await asyncio.sleep(0.1)
                assert answer.result["structuredContent"]["result"] == second.pid


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(command)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
