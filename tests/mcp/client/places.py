"""Servers to link to: the official SDK's, and one that does whatever a test wants of it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.harness import serving

EVENTS = {"content-type": "text/event-stream"}


@dataclass
class Asked:
    """One request, and the way to answer it in any manner."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    _out: asyncio.StreamWriter
    _chunked: bool = False

    @property
    def message(self) -> Any:
        return json.loads(self.body)

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        self._chunked = "content-length" not in headers
        more = {"transfer-encoding": "chunked"} if self._chunked else {}
        lines = [f"HTTP/1.1 {status} Said", *(f"{k}: {v}" for k, v in (headers | more).items())]
        self._out.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        await self._out.drain()

    async def part(self, data: bytes) -> None:
        self._out.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        await self._out.drain()

    async def end(self) -> None:
        if self._chunked:
            self._out.write(b"0\r\n\r\n")
            await self._out.drain()

    def hang_up(self) -> None:
        self._out.transport.abort()

    async def events(self, *parts: bytes, end: bool = True) -> None:
        """Answer with a stream of events, which ends or goes on."""
        await self.head(200, EVENTS)
        for each in parts:
            await self.part(each)
        if end:
            await self.end()

    async def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.head(status, {**named, "content-length": str(len(body))})
        await self.part(body)

    async def say_json(self, value: Any, status: int = 200, **headers: str) -> None:
        await self.say(
            status, json.dumps(value).encode(), content_type="application/json", **headers
        )

    async def result(self, value: Any, **headers: str) -> None:
        await self.say_json(result(self.message["id"], value), **headers)

    async def error(self, code: int, message: str, status: int = 200, **more: Any) -> None:
        error = {"code": code, "message": message, **more}
        await self.say_json(
            {"jsonrpc": "2.0", "id": self.message.get("id"), "error": error}, status
        )


async def agree(asked: Asked) -> None:
    """A server that answers every request, and says nothing."""
    await asked.result({})


async def never(asked: Asked) -> None:
    """A server that answers no request."""
    await asyncio.Event().wait()


def speaking(
    answer: Callable[[Asked], Awaitable[None]], capabilities: dict[str, Any] | None = None
) -> Callable[[Asked], Awaitable[None]]:
    """A server of the stateless era that leaves all but its discovery to a function."""

    async def do(asked: Asked) -> None:
        if asked.method != "POST":
            await asked.say(405)
        elif asked.message["method"] == "server/discover":
            found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities or {}}
            await asked.result({"resultType": "complete", **found})
        else:
            await answer(asked)

    return do


class Shaking:
    """A server of the handshake era: `answer` gets the requests of its sessions."""

    def __init__(
        self,
        answer: Callable[[Asked], Awaitable[None]],
        offers: dict[str, Any] | None = None,
        refusal: tuple[int, str] = (404, "Session not found"),
    ) -> None:
        self.place = Place(self.do)
        # The sessions that it knows, and what opened them.
        self.opened: dict[str, Asked] = {}
        # What wanted no answer.
        self.told: list[Any] = []
        self._answer, self._offers, self._refusal = answer, offers or {}, refusal

    async def do(self, asked: Asked) -> None:
        if asked.method != "POST":
            await asked.say(405)
            return
        message, session = asked.message, asked.headers.get("mcp-session-id", "")
        if message.get("method") == "initialize":
            session = f"session-{len(self.place.asked)}"
            self.opened[session] = asked
            told = {"protocolVersion": "2025-11-25", "capabilities": self._offers, "serverInfo": {}}
            await asked.result(told, mcp_session_id=session)
        elif session not in self.opened:
            status, words = self._refusal
            await asked.error(-32000, words, status)
        elif "id" not in message or "method" not in message:
            self.told.append(message)
            await asked.say(202)
        else:
            await self._answer(asked)


class Place:
    """A server as a test wants it: `do` gets every request."""

    def __init__(self, do: Callable[[Asked], Awaitable[None]]) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        self.port = 0
        self._do = do

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @asynccontextmanager
    async def open(
        self, tls: ssl.SSLContext | None = None, *, port: int = 0
    ) -> AsyncIterator[Place]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        self._writers: set[asyncio.StreamWriter] = set()
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while not writer.is_closing():
                asked = await self._next(reader, writer)
                self.asked.append(asked)
                await self._do(asked)
        self._writers.discard(writer)
        writer.transport.abort()

    @staticmethod
    async def _next(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = first.split()
        return Asked(method, path, headers, body, writer)

    def of(self, method: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.method == method]


def event(value: Any = None, id_: str | None = None, retry: int | None = None) -> bytes:
    """One event with a message in it."""
    lines = [] if id_ is None else [f"id: {id_}"]
    lines += [] if retry is None else [f"retry: {retry}"]
    lines += ["data: "] if value is None else ["event: message", f"data: {json.dumps(value)}"]
    return "\n".join([*lines, "", ""]).encode()


def result(id_: Any, value: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": {} if value is None else value}


def told(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """The tool of the SDK's servers: says on every way what it was given."""
    arguments = params.arguments or {}
    if arguments.get("wait"):
        await asyncio.Event().wait()
    if arguments.get("progress"):
        await ctx.session.report_progress(1, 2)
    text = json.dumps({"name": params.name, **arguments})
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {
            "type": "object",
            "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}},
        },
    },
}


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="wörter", input_schema=SCHEMA)])


def sdk_server() -> Server[Any]:
    return Server("sdk", on_list_tools=list_tools, on_call_tool=call_tool)


@asynccontextmanager
async def sdk_http(**options: Any) -> AsyncIterator[str]:
    """The SDK's own Streamable HTTP server, of both eras."""
    manager = StreamableHTTPSessionManager(sdk_server(), **options)
    async with (
        manager.run(),
        serving(endpoints={"/mcp": manager.handle_request}, max_body_bytes=2**30) as there,
    ):
        yield f"http://127.0.0.1:{there.port}/mcp"


@asynccontextmanager
async def sdk_sse() -> AsyncIterator[str]:
    """The SDK's own server of the old transport."""
    sse, server = SseServerTransport("/messages"), sdk_server()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            await Response(status_code=405)(scope, receive, send)
            return
        async with sse.connect_sse(scope, receive, send) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    endpoints = {"/sse": stream, "/messages": sse.handle_post_message}
    async with serving(endpoints=endpoints, max_body_bytes=2**30) as there:
        yield f"http://127.0.0.1:{there.port}/sse"
