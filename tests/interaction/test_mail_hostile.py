"""Which hosts `/mcp` answers for, and whose pages may use it."""

from __future__ import annotations

import json

import pytest

from tests.mcp_harness import INITIALIZE


@pytest.mark.requirement("mcp.host-origin")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.settings(http={"allowed_hosts": ["hub.example"]})
async def test_a_foreign_host_or_origin_is_refused(method, hub):
    alice = await hub.person("alice")
    query = f"?token={alice.token}"
    body = json.dumps(INITIALIZE).encode() if method == "POST" else b""
    answers = [
        await hub.ask(method, query=query, headers={"host": host}, body=body)
        for host in ("evil.example", "127.0.0.1.evil.example", "hub.example.evil")
    ]
    assert {answer.status for answer in answers} == {421}
    for origin in ("https://evil.example", "null", "http://localhost.evil.example"):
        answer = await hub.ask(method, query=query, headers={"origin": origin}, body=body)
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
    for fine in ({"host": "hub.example"}, {"origin": hub.hub.base_url}):
        answer = await hub.ask(method, query=query, headers=fine, body=body)
        assert answer.status in {200, 400}


@pytest.mark.requirement("mcp.host-origin")
@pytest.mark.settings(http={"allowed_origins": ["https://app.example"]})
async def test_pages_of_an_allowed_origin_may_use_the_endpoint(hub):
    origin = "https://app.example"
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "mcp-session-id",
    }
    preflight = await hub.ask("OPTIONS", headers=asked)
    assert preflight.status == 200
    assert preflight.headers["access-control-allow-origin"] == origin
    answer = await hub.post(INITIALIZE, headers={"origin": origin})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == origin
    assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
    foreign = await hub.post(INITIALIZE, headers={"origin": "https://other.example"})
    assert foreign.status == 403
