"""The direct path: HTTP requests before a service that does what a test wants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from folkmoot.mcp.server.service import McpAnswer, McpRequest
from folkmoot.mcp.wire import VERSION_KEY
from tests.harness import Answer
from tests.mcp_harness import META, Meeting, modern


async def call(hub: Meeting, name: str = "tool", **meta: Any) -> Answer:
    message, headers = modern("tools/call", name=name)
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
