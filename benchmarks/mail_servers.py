"""Who is called: the hub as `folkmoot serve` runs it, and two floors on the same HTTP server.

`python -m benchmarks.mail_servers NAME` serves a floor and prints its port.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import mcp_types as types
import uvloop
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from folkmoot.transports.listen import listen
from folkmoot.transports.server import HttpServer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{}"}]}}'
STOP_SECONDS = 120
LISTENING = re.compile(r"(?:[Ll]isten(?:ing|s) (?:on|at)\s+\S+:|port )(\d+)")


class Running(NamedTuple):
    """A server in a process of its own."""

    port: int
    pid: int


async def bare_handler(_scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body and answer a small JSON."""
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


async def trivial_tool(_ctx: Any, _params: types.CallToolRequestParams) -> types.CallToolResult:
    """Answer at once."""
    return types.CallToolResult(content=[types.TextContent(type="text", text="{}")])


async def no_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
    """List nothing."""
    return types.ListToolsResult(tools=[])


async def serve_floor(name: str) -> None:
    """Serve a floor for as long as the process runs."""
    manager = StreamableHTTPSessionManager(
        Server("floor", on_list_tools=no_tools, on_call_tool=trivial_tool)
    )
    apps: dict[str, ASGIApp] = {"asgi": bare_handler, "sdk": manager.handle_request}
    sockets = listen("127.0.0.1", 0)
    server = HttpServer(apps[name], sockets, max_connections=1000, shutdown_seconds=1)
    async with manager.run(), asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve())
        await server.listening()
        print(f"port {sockets[0].getsockname()[1]}", flush=True)


@contextmanager
def floor(name: str, core: int | None) -> Iterator[Running]:
    with started([sys.executable, "-m", "benchmarks.mail_servers", name], {}, core) as running:
        yield running


@contextmanager
def hub(folder: Path, core: int | None) -> Iterator[Running]:
    """A hub with its settings as they come, but for the limits, and with a tool that does nothing.

    Its log goes nowhere.
    """
    options = ("--port", "0", "--data", str(folder))
    command = [sys.executable, "-m", "benchmarks.nothing", "serve", *options]
    settings = {"FOLKMOOT_RATE_LIMITS": "off"}
    with started(command, settings, core) as running:
        yield running


@contextmanager
def started(command: list[str], settings: dict[str, str], core: int | None) -> Iterator[Running]:
    """A process on a processor of its own, once it listens."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLKMOOT_")}
    ours = os.sched_getaffinity(0)
    # A child begins where its parent runs.
    os.sched_setaffinity(0, ours if core is None else {core})
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**kept, "PYTHONUNBUFFERED": "1", **settings},
    )
    os.sched_setaffinity(0, ours)
    try:
        yield Running(port_of(child), child.pid)
    finally:
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        finally:
            # Does nothing to one that has ended; whoever did not is told of, and not left behind.
            child.kill()
            if child.stdout:
                child.stdout.close()


def port_of(child: subprocess.Popen[str]) -> int:
    """The port that a server says it listens on."""
    assert child.stdout
    for line in child.stdout:
        if found := LISTENING.search(line):
            return int(found[1])
    raise RuntimeError(f"a server did not start: {child.args!r}")


if __name__ == "__main__":
    uvloop.run(serve_floor(sys.argv[1]))
