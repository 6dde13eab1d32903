"""A server of the SDK whose one tool does what a call plans: log, progress, ask, pause, wait."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse

from tests.harness import serving

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

LOG, PROGRESS, ASK, PAUSE, WAIT = "log", "progress", "ask", "pause", "wait"
GATHER_SECONDS = 0.002
FORM: dict[str, Any] = {"type": "object", "properties": {"word": {"type": "string"}}}


class Talking:
    """The server, and what became of the calls that wait; each has a tag of its own."""

    def __init__(self) -> None:
        self.waits: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.cancelled: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.sdk: Server[Any] = Server(
            "talking", on_list_tools=self.list_tools, on_call_tool=self.call_tool
        )
        self.sdk.add_request_handler("logging/setLevel", types.SetLevelRequestParams, level)

    async def list_tools(self, _: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name="talk", input_schema={"type": "object"})]
        )

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> Any:
        """Go through the plan; what is said at a step is the tag and the number of the step."""
        given = params.arguments or {}
        tag, plan = given["tag"], given["plan"]
        begin, answers = json.loads(params.request_state or "[0, []]")
        if params.input_responses:
            answers.append(params.input_responses["word"].content["word"])
        for number, step in enumerate(plan):
            if number < begin:
                continue
            said = f"{tag} {number}"
            if step == LOG:
                await log(ctx, said)
            elif step == PROGRESS:
                await ctx.session.report_progress(number + 1, len(plan), said)
            elif step == PAUSE:
                await asyncio.sleep(0.001)
            elif step == WAIT:
                await self.wait(tag)
            elif ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                form = types.ElicitRequestFormParams(message=said, requested_schema=FORM)
                return types.InputRequiredResult(
                    input_requests={"word": types.ElicitRequest(params=form)},
                    request_state=json.dumps([number + 1, answers]),
                )
            else:
                answer = await ctx.session.elicit_form(said, FORM, ctx.request_id)
                answers.append(answer.content["word"])
        told = json.dumps({"tag": tag, "answers": answers})
        return types.CallToolResult(content=[types.TextContent(text=told)])

    async def wait(self, tag: str) -> None:
        """Wait to be cancelled."""
        self.waits[tag].set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.cancelled[tag].set()


async def log(ctx: Any, said: str) -> None:
    """Say something to whoever wants to hear it."""
    if "info" in allowed_log_levels(ctx.protocol_version, ctx.meta):
        params = types.LoggingMessageNotificationParams(level="info", data=said)
        await ctx.session.send_notification(
            types.LoggingMessageNotification(params=params), related_request_id=ctx.request_id
        )


async def level(_: Any, __: types.SetLevelRequestParams) -> types.EmptyResult:
    """Whatever is wanted, all is said."""
    return types.EmptyResult()


def gathering(send: Send) -> Send:
    """Has what is said in quick succession arrive together, as busy servers do."""
    parts: list[bytes] = []
    flushing: asyncio.Task[None] | None = None

    async def flush() -> None:
        await asyncio.sleep(GATHER_SECONDS)
        body = b"".join(parts)
        parts.clear()
        await send({"type": "http.response.body", "body": body, "more_body": True})

    async def gathered(message: Message) -> None:
        nonlocal flushing
        if message["type"] != "http.response.body":
            await send(message)
            return
        parts.append(message.get("body", b""))
        if message.get("more_body"):
            if flushing is None or flushing.done():
                flushing = asyncio.create_task(flush())
            return
        if flushing is not None:
            flushing.cancel()
        await send({**message, "body": b"".join(parts)})

    return gathered


@asynccontextmanager
async def talking_http(talking: Talking, era: str) -> AsyncIterator[str]:
    """The server over HTTP; that of the handshake era refuses whoever comes with another."""
    manager = StreamableHTTPSessionManager(talking.sdk)

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        version = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode()
        if era == "handshake" and version in MODERN_PROTOCOL_VERSIONS:
            error = {"code": -32600, "message": "Bad Request: Unsupported protocol version"}
            body = {"jsonrpc": "2.0", "id": None, "error": error}
            await JSONResponse(body, 400)(scope, receive, send)
        else:
            await manager.handle_request(scope, receive, gathering(send))

    async with (
        manager.run(),
        serving(endpoints={"/mcp": endpoint}, max_body_bytes=2**20, max_connections=4096) as there,
    ):
        yield f"http://127.0.0.1:{there.port}/mcp"
