"""A hub of few words: the official SDK's server, whose tools answer what a test wrote down.

It stands where the real hub cannot be made to: hostile text, slow answers, refusals on demand.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import anyio
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, CallToolResult, TextContent

from folkmoot.transports.listen import listen
from tests.harness import KEEP_ALIVE_SECONDS


class Asked(NamedTuple):
    """One call as it arrived."""

    tool: str
    arguments: dict[str, Any]
    authorization: str | None


class Scripted:
    """Answers by tool name; `refusals` are error texts, `slow` the seconds each answer takes."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, Any] = {}
        self.refusals: dict[str, str] = {}
        self.slow = 0.0
        self.asked: list[Asked] = []

    async def call(
        self, ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        headers = ctx.request.headers if ctx.request is not None else {}
        self.asked.append(Asked(params.name, params.arguments or {}, headers.get("authorization")))
        await anyio.sleep(self.slow)
        refused = self.refusals.get(params.name)
        payload = {"error": refused} if refused else self.answers.get(params.name, {})
        text = payload if isinstance(payload, str) else json.dumps(payload)
        return CallToolResult(content=[TextContent(text=text)], is_error=refused is not None)


@contextmanager
def scripted_hub() -> Iterator[Scripted]:
    """Serve a scripted hub on a free port, in a thread."""
    hub = Scripted()
    app = Server("scripted", on_call_tool=hub.call).streamable_http_app()
    sockets = listen("127.0.0.1", 0)
    hub.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_config=None, access_log=False, timeout_keep_alive=KEEP_ALIVE_SECONDS
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets})
    thread.start()
    try:
        yield hub
    finally:
        server.should_exit = True
        thread.join(30)
