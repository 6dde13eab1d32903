"""The direct path: HTTP requests before a service that does what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.message import Request
from folkmoot.mcp.server.direct import DirectServer
from folkmoot.mcp.server.responses import HttpReply
from folkmoot.mcp.server.service import McpAnswer, McpRequest, Stopped
from folkmoot.mcp.server.sessions import HandshakeSession, known
from folkmoot.mcp.wire import VERSION_KEY
from tests.harness import Answer
from tests.mcp_harness import INITIALIZE, META, Meeting, modern


async def call(hub: Meeting, **meta: Any) -> Answer:
    message, headers = modern("tools/call", name="tool")
    message["params"]["_meta"] = META | meta
    headers["mcp-protocol-version"] = message["params"]["_meta"][VERSION_KEY]
    return await hub.post(message, headers=headers)


class Service:
    """A service in place of the hub's own."""

    def __init__(self, perform: Callable[[McpRequest], Awaitable[McpAnswer]]) -> None:
        self.perform = perform


async def plain(asked: McpRequest) -> McpAnswer:
    return McpAnswer({"content": []})


async def test_an_answer_that_comes_at_once_leaves_in_one_piece(hub):
    hub.hub.mcp._server.service = Service(plain)
    answer = await call(hub)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}


async def test_a_version_of_the_stateless_era_that_is_not_spoken_is_refused(hub):
    answer = await call(hub, **{VERSION_KEY: "2099-01-01"})
    assert (answer.status, answer.json()["error"]["code"]) == (400, -32022)


async def test_a_failure_is_told_without_its_details(hub, caplog):
    async def breaking(asked: McpRequest) -> McpAnswer:
        raise ValueError("a secret")

    hub.hub.mcp._server.service = Service(breaking)
    answer = await call(hub)
    assert answer.json()["error"]["data"]["code"] == "internal_error"
    assert "secret" not in answer.text
    assert "a request failed" in caplog.text


@pytest.mark.requirement("tool.inbox.vanished-client")
@pytest.mark.parametrize("gone", [True, False])
async def test_what_follows_an_answer_waits_for_it_and_for_a_client_that_is_there(gone):
    happened: list[str] = []

    async def receive() -> Any:
        if not gone:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(part: Any) -> None:
        happened.append(part["type"])

    async def after() -> None: ...

    host: Any = SimpleNamespace(deliver=lambda caller, follows: happened.append("delivered"))
    direct = DirectServer(host, host)
    async with direct.running():
        asked: Any = SimpleNamespace(
            request=Request(id=1, method="x"), caller=None, reply=HttpReply(send, direct.tasks)
        )
        await direct.answer(asked, McpAnswer({}, after=after), {}, receive)
    sent = ["http.response.start", "http.response.body"]
    assert happened == (sent if gone else [*sent, "delivered"])


async def test_a_request_that_is_stopped_is_left_without_an_answer(hub):
    async def stopping(asked: McpRequest) -> McpAnswer:
        raise Stopped

    hub.hub.mcp._server.service = Service(stopping)
    answer = await call(hub)
    assert "jsonrpc" not in answer.text


async def test_a_session_that_ended_while_a_request_came_is_not_found():
    session = HandshakeSession(id="one", version="2025-11-25", capabilities={})
    session.end()
    visit: Any = SimpleNamespace(session=session)
    with pytest.raises(e.SessionNotFound):
        known(visit)


async def test_a_session_that_ended_while_it_was_agreed_on_anew_is_not_found(hub):
    opened = await hub.post(INITIALIZE)
    [session] = hub.hub.mcp._sessions._sessions.values()

    async def ending(asked: McpRequest) -> McpAnswer:
        session.end()
        return McpAnswer({})

    hub.hub.mcp._server.service = Service(ending)
    named = {"mcp-session-id": opened.headers["mcp-session-id"]}
    assert (await hub.post(INITIALIZE, headers=named)).status == 404
