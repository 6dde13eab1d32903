"""A Streamable HTTP server that speaks one era, and clients of the other before it."""

from __future__ import annotations

import json
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

from tests.harness import run, serving
from tests.mcp_harness import ERAS, MODERN, modern, rpc
from tests.relay.standing import Standing, before
from tests.transports.links.places import sdk_server

REFUSALS: dict[str, Any] = {
    "handshake": {"code": -32000, "message": "Bad Request: Unsupported protocol version"},
    "stateless": {"code": -32022, "message": "Unsupported", "data": {"supported": [MODERN]}},
}
"""How servers of one era refuse what is of the other."""
OTHER = {"handshake": "stateless", "stateless": "handshake"}


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
async def client_at(proxy: Standing, era: str) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(verify=False) as http:
        transport = streamable_http_client(proxy.url, http_client=http)
        async with Client(transport, mode=ERAS[era]) as client:
            yield client


async def check_use(client: Client) -> None:
    progress = []

    async def note(*told: Any) -> None:
        progress.append(told)

    assert [tool.name for tool in (await client.list_tools()).tools] == ["wörter"]
    got = await client.call_tool("wörter", {"progress": True}, progress_callback=note)
    assert json.loads(got.content[0].text) == {"name": "wörter", "progress": True}  # type: ignore[union-attr]
    assert progress == [(1, 2, None)]


@pytest.mark.requirement("proxy.eras-bridged", "proxy.passes-everything")
@pytest.mark.parametrize("era", OTHER)
def test_clients_of_both_eras_use_a_server_that_speaks_one(era: str) -> None:
    async def main() -> None:
        async with serving_eras(era) as url, before(url) as proxy:
            for spoken in (OTHER[era], era, OTHER[era]):
                async with client_at(proxy, spoken) as client:
                    await check_use(client)

    run(main())


@pytest.mark.requirement("proxy.eras-bridged")
def test_a_server_of_both_eras_is_never_bridged_whatever_a_client_gets_wrong() -> None:
    async def main() -> None:
        seen: list[str] = []
        async with serving_eras(*OTHER, seen=seen) as url, before(url) as proxy:
            async with client_at(proxy, "stateless") as client:
                assert (await client.list_tools()).tools
            assert set(seen) == {"stateless"}
            wrong, headers = modern("initialize")
            given = {name.replace("-", "_"): value for name, value in headers.items()}
            assert (await proxy.post(wrong, **given)).status_code == 404
            assert (await proxy.post(rpc("initialize"))).json()["error"]["code"] == -32602
            seen.clear()
            async with client_at(proxy, "handshake") as client:
                assert (await client.list_tools()).tools
            assert set(seen) == {"handshake"}

    run(main())
