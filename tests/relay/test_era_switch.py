"""A Streamable HTTP server that speaks one era, and clients of the other before it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from folkmoot.clock import SystemClock
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import Request
from folkmoot.proxy.replay.script import Script
from folkmoot.proxy.tape import TapeSide, read_tape
from folkmoot.relay.proxy import ProxiedServer, ProxyOptions, assembled
from folkmoot.relay.recording import Recording
from tests.harness import serving
from tests.mcp.client.places import sdk_server
from tests.mcp_harness import ERAS, MODERN, modern, rpc
from tests.relay.listening import listening
from tests.relay.standing import before
from tests.testing import small_server

# How servers of one era refuse what is of the other.
REFUSALS: dict[str, Any] = {
    "handshake": {"code": -32000, "message": "Bad Request: Unsupported protocol version"},
    "stateless": {"code": -32022, "message": "Unsupported", "data": {"supported": [MODERN]}},
}
OTHER = {"handshake": "stateless", "stateless": "handshake"}
CLOCK = SystemClock()
COMMAND = (sys.executable, "-IS", small_server.__file__)


@asynccontextmanager
async def serving_eras(*eras: str, seen: list[str] | None = None) -> AsyncIterator[str]:
    """The SDK's server with only these of the eras it speaks; those it was spoken to in."""
    manager = StreamableHTTPSessionManager(sdk_server(), json_response=len(eras) > 1)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        version = dict(scope["headers"]).get(b"mcp-protocol-version")
        era = "stateless" if version == MODERN.encode() else "handshake"
        if seen is not None:
            seen.append(era)
        if era in eras:
            await manager.handle_request(scope, receive, send)
        else:
            refused = {"jsonrpc": "2.0", "id": None, "error": REFUSALS[eras[0]]}
            await JSONResponse(refused, 400)(scope, receive, send)

    async with manager.run(), serving(endpoints={"/mcp": app}, max_body_bytes=2**20) as there:
        yield f"http://127.0.0.1:{there.port}/mcp"


@asynccontextmanager
async def client_at(url: str, mode: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(verify=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def check_use(client: Client) -> None:
    progress = []

    async def note(*told: Any) -> None:
        progress.append(told)

    assert [tool.name for tool in (await client.list_tools()).tools] == ["wörter"]
    got = await client.call_tool("wörter", {"progress": True}, progress_callback=note)
    assert json.loads(got.content[0].text) == {"name": "wörter", "progress": True}
    assert progress == [(1, 2, None)]


@pytest.mark.requirement("mcp.eras-bridged")
async def test_a_server_of_both_eras_is_never_bridged_whatever_a_client_gets_wrong():
    seen: list[str] = []
    async with serving_eras(*OTHER, seen=seen) as url, before(url) as proxy:
        async with client_at(proxy.url, MODERN) as client:
            assert (await client.list_tools()).tools
        assert set(seen) == {"stateless"}
        wrong, headers = modern("initialize")
        assert (await proxy.post(wrong, **headers)).status_code == 404
        assert (await proxy.post(rpc("initialize"))).json()["error"]["code"] == -32602
        seen.clear()
        async with client_at(proxy.url, "legacy") as client:
            assert (await client.list_tools()).tools
        assert set(seen) == {"handshake"}


VERSIONS = {"handshake": "2025-11-25", "stateless": MODERN}


async def negotiated(url: str) -> str:
    """The version that a client of both eras comes to."""
    async with client_at(url, "auto") as client:
        assert (await client.list_tools()).tools
        return client.protocol_version


@pytest.mark.requirement("mcp.eras-bridged", "proxy.negotiates-as-directly")
@pytest.mark.parametrize("era", OTHER)
async def test_clients_of_both_eras_use_a_server_that_speaks_one_and_negotiate_as_directly(era):
    async with serving_eras(era) as url, before(url) as proxy:
        assert await negotiated(url) == VERSIONS[era]
        assert await negotiated(proxy.url) == VERSIONS[era]
        for spoken in (OTHER[era], era, OTHER[era]):
            async with client_at(proxy.url, ERAS[spoken]) as client:
                await check_use(client)
                # Others, whom the proxy helps, make no difference.
                assert await negotiated(proxy.url) == VERSIONS[era]


@pytest.mark.requirement("proxy.negotiates-as-directly")
async def test_before_a_command_too_and_whoever_was_there_first():
    async with listening(*COMMAND) as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        assert await negotiated(url) == "2025-11-25"
        async with client_at(url, MODERN) as client:
            assert (await client.list_tools()).tools
            assert await negotiated(url) == "2025-11-25"


async def test_whoever_wants_the_other_era_shown_to_all_can_have_it():
    async with (
        serving_eras("handshake") as url,
        before(url, discoverable=True) as proxy,
        before(proxy.url) as passed,
    ):
        assert await negotiated(proxy.url) == MODERN
        assert await negotiated(passed.url) == MODERN
    async with listening(*COMMAND, options=ProxyOptions(discoverable=True)) as there:
        assert await negotiated(f"http://127.0.0.1:{there.port}/mcp") == MODERN


@pytest.mark.requirement("proxy.record-probes")
async def test_what_the_proxy_itself_asks_a_server_is_on_the_tape_as_its_own(tmp_path):
    file = tmp_path / "tape.jsonl"
    async with (
        serving_eras("stateless") as url,
        assembled(
            ProxiedServer(url=url), CLOCK, client=TapeSide("http"), recording=Recording(file=file)
        ) as proxy,
        proxy.listening("127.0.0.1", 0) as there,
        client_at(f"{there}/mcp", "legacy") as sdk,
    ):
        assert (await sdk.list_tools()).tools
    entries = read_tape(file).entries
    own = [each for each in entries if each.context.direction is MessageDirection.INTERNAL]
    asked = [each.message.method for each in own if isinstance(each.message, Request)]
    # To find out its transport; then, since it refuses the client, its era.
    assert asked == ["server/discover", "server/discover", "initialize"]
    assert len(own) == 2 * len(asked)
    # They are nobody's words when the tape is replayed.
    calls = [call.message.method for call in Script.of(entries).calls]
    assert set(calls) == {"initialize", "tools/list"}
