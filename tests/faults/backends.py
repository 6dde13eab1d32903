"""What tests of failing backends share: a flawed server beside a steady one that is always used."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from folkmoot.app import Hub
from folkmoot.settings.backends import BackendSpec
from tests.mcp_harness import Meeting, until
from tests.operator import ask_socket
from tests.peers.gateway import backend, fronted, reaches, token_of
from tests.peers.servers import Place
from tests.transports.mcp.gateway_support import Wire, wired

SOURCE = Path(__file__).with_name("flawed_backend.py")
# Seconds that whoever uses the steady server may wait at most, on a machine with much to do.
LONGEST = 30.0


def is_there(process: int) -> bool:
    """Whether a process runs."""
    return Path(f"/proc/{process}").exists()


def flawed(namespace: str, folder: Path, era: str = "handshake", **more: Any) -> BackendSpec:
    """A server that does wrong when it is asked to."""
    folder.mkdir(parents=True, exist_ok=True)
    command = (sys.executable, "-I", "-S", str(SOURCE), era, str(folder))
    return backend(namespace, Place("stdio", command), **more)


async def operator(hub: Hub, command: str, **arguments: Any) -> Any:
    """What a running hub answers its operator."""
    socket = Path(hub.settings.data) / "control.sock"
    return await asyncio.to_thread(ask_socket, socket, command, arguments, timeout=30)


class Trouble:
    """A hub with a flawed server and a steady one, and someone who uses them."""

    def __init__(self, there: Meeting, folder: Path, wire: Wire) -> None:
        self.there = there
        self.hub = there.hub
        self.folder = folder
        self.wire = wire

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool of the flawed server."""
        params = {"name": f"flawed_{tool}", "arguments": arguments}
        told: dict[str, Any] = (await self.wire.ask("tools/call", params))["result"]
        return told

    async def text(self, tool: str, **arguments: Any) -> str:
        """What a tool of the flawed server says."""
        told: str = (await self.call(tool, **arguments))["content"][0]["text"]
        return told

    async def hubs(self, tool: str, **arguments: Any) -> str:
        """What a tool of the hub itself says."""
        answer = await self.wire.ask("tools/call", {"name": tool, "arguments": arguments})
        told: str = answer["result"]["content"][0]["text"]
        return told

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a tool of the flawed server."""
        result = await self.call(tool, **arguments)
        assert result.get("isError") is True, result
        said: dict[str, Any] = json.loads(result["content"][0]["text"])
        return said

    async def echo(self) -> int:
        """Have the flawed server answer something; the answer is the id of its process."""
        return int(json.loads(await self.text("echo"))[2])

    async def listed(self, query: str = "") -> dict[str, Any]:
        """The tools of all servers by name, every page of them."""
        found: dict[str, Any] = {}
        cursor: dict[str, Any] = {}
        while True:
            page = (await self.wire.ask("tools/list", cursor, query=query))["result"]
            found |= {tool["name"]: tool for tool in page["tools"]}
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    async def answers(self) -> bool:
        """Whether the flawed server's tool can be called."""
        return not (await self.call("echo")).get("isError")

    async def hides(self) -> bool:
        """Whether that tool is not listed."""
        return "flawed_echo" not in await self.listed()

    def done(self) -> list[str]:
        """What the flawed server did."""
        file = self.folder / "done"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    def view(self) -> dict[str, Any]:
        """How it is with the flawed server."""
        return next(each for each in self.hub.behind.numbers() if each["namespace"] == "flawed")

    async def until_done(self, what: str) -> None:
        """Wait until the flawed server did something."""
        await until(lambda: what in self.done())


class Steady:
    """Someone who uses the steady server all the time."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.calls = 0
        self.longest = 0.0

    async def use(self) -> None:
        """Call it again and again; whatever is no answer fails the test."""
        loop = asyncio.get_running_loop()
        while True:
            given = {"name": "steady_echo", "arguments": {"text": str(self.calls)}}
            began = loop.time()
            result = (await self._wire.ask("tools/call", given))["result"]
            self.longest = max(self.longest, loop.time() - began)
            assert not result.get("isError"), result
            assert json.loads(result["content"][0]["text"])[1] == given["arguments"]
            self.calls += 1
            # Someone who reads the answer before asking again.
            await asyncio.sleep(0.005)


@asynccontextmanager
async def trouble(
    folder: Path, era: str = "stateless", *, reached: bool = True, **spec: Any
) -> AsyncIterator[Trouble]:
    """A hub with a flawed server of an era, while a steady one is called all the time."""
    both = flawed("steady", folder / "steady"), flawed("flawed", folder / "flawed", era, **spec)
    async with fronted(folder / "hub", *both, reached=reached) as there:
        await reaches(there.hub, "steady")
        token = await token_of(there, "ada")
        wires = [await wired(there, token, "stateless") for _ in range(2)]
        steady = Steady(wires[1])
        async with asyncio.TaskGroup() as tasks:
            using = tasks.create_task(steady.use())
            try:
                yield Trouble(there, folder / "flawed", wires[0])
                before = steady.calls
                await until(lambda: steady.calls >= before + 3)
            finally:
                using.cancel()
        assert steady.longest < LONGEST
