from __future__ import annotations

import pytest
from starlette.routing import Route

from folkmoot.web.discovery import Discovery
from tests.harness import ask, serving


@pytest.mark.requirement("web.discovery")
async def test_the_discovery_document_has_the_shape_of_the_protocol():
    async with serving() as hub:
        answer = await ask(hub.port, "/.well-known/mmp.json")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "version": "0.1.0",
        "server": "folkmoot",
        "mcp_endpoint": "/mcp",
        "public_key": None,
        "capabilities": ["messaging", "e2e", "invites"],
        "federation": {"enabled": False, "inbound": False, "outbound": False},
    }


async def test_the_endpoint_is_where_clients_reach_it():
    discovery = Discovery(public_url="https://moot.example/hub/")
    async with serving([Route("/other", discovery.document)]) as hub:
        found = await ask(hub.port, "/other")
    assert found.json()["mcp_endpoint"] == "/hub/mcp"
