"""A client and a server that others wrote, with the proxy between them and without."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from folkmoot.clock import SystemClock
from folkmoot.proxy.tape import TapeSide
from folkmoot.relay.proxy import ProxiedServer, assembled
from tests.conformance.node import node_or_skip
from tests.peers.clients import MODERN, Ears, client_of, command_of
from tests.peers.script import RESOURCE, everything_done, files_used, normal
from tests.peers.servers import Place, Transport, everything, filesystem_command

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.long,
]

TRANSPORTS: tuple[Transport, ...] = ("stdio", "http", "sse")
COVERING = [("stdio", "sse"), ("http", "stdio"), ("sse", "http")]
"""Pairs that have each transport on each side; for these the command is started quickly."""


@asynccontextmanager
async def proxied(server: Place, front: Transport, *, forked: bool) -> AsyncIterator[Place]:
    """A proxy before a server, for clients on a transport."""
    if front == "stdio":
        given = ("--", *server.command) if server.command else ("--upstream", server.url)
        yield command_of("proxy", *given, forked=forked)
        return
    upstream = ProxiedServer(server.command, server.url)
    async with (
        assembled(upstream, SystemClock(), client=TapeSide("http")) as proxy,
        proxy.listening("127.0.0.1", 0) as url,
    ):
        yield Place(front, url=f"{url}/{'mcp' if front == 'http' else 'sse'}")


async def done_at(place: Place) -> dict[str, Any]:
    ears = Ears()
    async with client_of(place, ears) as client:
        return await everything_done(client, ears)


@pytest.mark.timeout(600)
@pytest.mark.requirement("proxy.context-end-to-end")
@pytest.mark.parametrize("back", TRANSPORTS)
@pytest.mark.parametrize("front", TRANSPORTS)
async def test_a_client_gets_through_the_proxy_what_it_gets_without_it(front, back):
    with everything(back) as server:
        direct = await done_at(server)
        async with proxied(server, front, forked=(front, back) in COVERING) as place:
            through = await done_at(place)
        for name, value in direct.items():
            assert (name, through[name]) == (name, value)


@pytest.mark.timeout(600)
@pytest.mark.requirement("mcp.eras-bridged")
async def test_a_client_of_the_stateless_era_uses_a_server_that_only_knows_the_handshake():
    with everything("stdio") as server:
        ears, progress = Ears(), []

        async def note(*told: Any) -> None:
            progress.append(told)

        async with (
            proxied(server, "http", forked=True) as place,
            client_of(place, ears, mode=MODERN) as client,
        ):
            call = client.call_tool
            assert client.protocol_version == MODERN
            assert "echo" in {tool.name for tool in (await client.list_tools()).tools}
            assert text_of(await call("echo", {"message": "across"})) == "Echo: across"
            long = {"duration": 0.1, "steps": 2}
            await call("trigger-long-running-operation", long, progress_callback=note)
            assert progress == [(1.0, 2.0, None), (2.0, 2.0, None)]
            # What this server asks in between is put to the client as the other era has it.
            sampled = await call("trigger-sampling-request", {"prompt": "Hello"})
            assert "The model says ✓" in text_of(sampled)
            assert "Ada" in str(normal(await call("trigger-elicitation-request", {})))
            assert "file:///home/ada" in text_of(await call("get-roots-list", {}))
            assert RESOURCE in str(await client.read_resource(RESOURCE))
            async with client.listen(resource_subscriptions=[RESOURCE]) as updates:
                await call("toggle-subscriber-updates", {})
                assert RESOURCE in str(await anext(aiter(updates)))


def text_of(result: Any) -> str:
    return result.content[0].text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("front", TRANSPORTS)
async def test_server_filesystem_does_the_same_behind_the_proxy(front, tmp_path):
    folder = tmp_path / "files"

    async def done(place: Place) -> list[Any]:
        folder.mkdir()
        try:
            async with client_of(place) as client:
                return await files_used(client, folder)
        finally:
            shutil.rmtree(folder)

    folder.mkdir()
    server = Place("stdio", filesystem_command(folder))
    folder.rmdir()
    direct = await done(server)
    assert "denied" in str(direct)
    assert "dritte" in str(direct)
    async with proxied(server, front, forked=False) as place:
        assert await done(place) == direct


TYPESCRIPT = Path(__file__).parent / "everything.mjs"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("back", ["http", "stdio"])
async def test_the_typescript_client_gets_through_the_proxy_what_it_gets_without_it(back, tmp_path):
    node = node_or_skip()
    # A module finds its packages by where it lies.
    script = shutil.copy(TYPESCRIPT, tmp_path)
    (tmp_path / "node_modules").symlink_to(node.modules)

    async def done(place: Place) -> Any:
        given = [place.url] if place.url else place.command
        child = await asyncio.create_subprocess_exec(
            node.binary, script, *given, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await child.communicate()
        assert child.returncode == 0
        return normal(json.loads(said))

    with everything(back) as server:
        direct = await done(server)
        assert direct["sampled"]
        async with proxied(server, "http", forked=False) as place:
            through = await done(place)
        for name, value in direct.items():
            assert (name, through[name]) == (name, value)
