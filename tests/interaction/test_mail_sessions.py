"""Whose a request is: tokens, sessions of the handshake era, and what ends them."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.harness import Answer
from tests.mcp_harness import (
    INITIALIZE,
    Meeting,
    modern,
    rpc,
    sse_json,
    until,
)

WHOAMI = rpc("tools/call", {"name": "msg/whoami", "arguments": {}}, 2)


async def open_session(there: Meeting, query: str = "", **headers: str) -> str:
    """The id of a new session."""
    answer = await there.post(INITIALIZE, query=query, headers=headers)
    assert answer.status == 200
    session_id = answer.headers["mcp-session-id"]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    accepted = await there.post(
        ready, query=query, headers={"mcp-session-id": session_id, **headers}
    )
    assert accepted.status == 202
    return session_id


async def call(there: Meeting, session_id: str, query: str = "", message: Any = WHOAMI) -> Answer:
    return await there.post(message, query=query, headers={"mcp-session-id": session_id})


async def register(there: Meeting, session_id: str, handle: str = "alice", query: str = "") -> Any:
    """What someone is told who makes an account in a session."""
    wish = rpc("tools/call", {"name": "msg_register", "arguments": {"handle": handle}})
    return told(await call(there, session_id, query, wish))


def told(answer: Answer) -> Any:
    """The payload of a tool result."""
    assert answer.status == 200, answer
    return json.loads(sse_json(answer)["result"]["content"][0]["text"])


def not_found(answer: Answer) -> bool:
    """Whether a session is answered as if it were not there."""
    if answer.status != 404:
        return False
    sentence: str = answer.json()["error"]["message"]
    assert "The hub was restarted" in sentence
    assert "Connect again" in sentence
    return sentence.startswith("Session not found.")


@pytest.mark.requirement("auth.session-id-alone", "auth.every-request", "mcp.post", "auth.by-hash")
async def test_a_session_opened_with_a_token_wants_it_every_time(hub):
    alice, bob = await hub.people("alice", "bob")
    mine = f"?token={alice.token}"
    session_id = await open_session(hub, mine)
    assert told(await call(hub, session_id, mine))["handle"] == "alice"
    for query in ("", f"?token={bob.token}", "?token=nonsense", f"?token=sk_{'0' * 64}"):
        assert not_found(await call(hub, session_id, query))
        for method in ("GET", "DELETE"):
            headers = {"mcp-session-id": session_id}
            assert not_found(await hub.ask(method, query=query, headers=headers))
    by_header = await hub.post(
        WHOAMI,
        headers={"mcp-session-id": session_id, "authorization": f"bearer {alice.token}"},
    )
    assert told(by_header)["handle"] == "alice"


@pytest.mark.requirement("auth.session-bound-at-register")
async def test_a_session_in_which_someone_registers_is_theirs(hub):
    session_id, other_id = await open_session(hub), await open_session(hub)
    assert told(await call(hub, session_id)) == {"error": "Authentication required."}
    made = await register(hub, session_id)
    assert told(await call(hub, session_id))["handle"] == "alice"
    assert told(await call(hub, session_id, f"?token={made['token']}"))["handle"] == "alice"
    assert told(await call(hub, other_id)) == {"error": "Authentication required."}
    stateless, headers = modern("tools/call", name="msg/whoami", arguments={})
    lent = await hub.post(stateless, headers={**headers, "mcp-session-id": session_id})
    assert "Authentication required." in lent.text
    bob = await hub.person("bob")
    assert not_found(await call(hub, session_id, f"?token={bob.token}"))
    assert not_found(await call(hub, other_id, f"?token={bob.token}"))


@pytest.mark.requirement("mcp.delete", "mcp.get", "mcp.unknown-session")
async def test_a_session_is_streamed_and_closed(hub):
    session_id = await open_session(hub)
    headers = {"mcp-session-id": session_id, "accept": "text/event-stream"}
    async with (
        httpx2.AsyncClient(verify=False) as http,
        http.stream("GET", hub.url, headers=headers) as stream,
    ):
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
    assert (await hub.ask("GET")).status == 401
    assert (await hub.ask("DELETE")).status == 400
    assert (await hub.ask("DELETE", headers={"mcp-session-id": session_id})).status == 200
    for method in ("POST", "GET", "DELETE"):
        body = json.dumps(WHOAMI).encode() if method == "POST" else b""
        headers = {"mcp-session-id": session_id}
        assert not_found(await hub.ask(method, headers=headers, body=body))
    assert not_found(await call(hub, "f" * 32))


@pytest.mark.settings(mcp={"session_idle_seconds": 1})
async def test_an_idle_session_is_closed_and_answered_as_unknown(hub):
    session_id = (await hub.post(INITIALIZE)).headers["mcp-session-id"]
    await until(lambda: hub.hub.mcp.open_sessions == 0)
    assert not_found(await call(hub, session_id))
    assert len(hub.hub.mcp._sessions) == 0


@pytest.mark.one_node("what ended is told to other nodes a moment later")
@pytest.mark.settings(mcp={"max_sessions": 2})
async def test_sessions_have_a_bound(hub):
    first = await open_session(hub)
    await open_session(hub)
    assert (await hub.post(INITIALIZE)).status == 503
    await hub.ask("DELETE", headers={"mcp-session-id": first})
    await open_session(hub)
