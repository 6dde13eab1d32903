"""A small MCP server, played on the carriers of a front, and HTTP clients without a library."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx2
from starlette.types import ASGIApp

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import Notification, Request, Response
from folkmoot.mcp.carrier import Carrier
from folkmoot.mcp.framing import EventReader, SseEvent
from folkmoot.mcp.server.http import HttpFront
from tests.harness import serving
from tests.mcp.client.saying import at_rest
from tests.mcp_harness import INITIALIZE, META, MODERN, rpc
from tests.mcp_harness import until as until

BOTH = "application/json, text/event-stream"
TOOLS = ("echo", "progress", "ask", "log", "wait", "note", "ship")
ANY: dict[str, Any] = {"type": "object"}
REGION = {"type": "string", "x-mcp-header": "Region"}
COUNT = {"type": "integer", "x-mcp-header": "Count"}
# Of tools that want some arguments repeated in headers.
SCHEMAS: dict[str, dict[str, Any]] = {
    "ship": {
        "type": "object",
        "properties": {
            "region": REGION,
            "load": {"type": "object", "properties": {"count": COUNT}},
        },
    }
}


NAMED = {"serverInfo": {"name": "played", "version": "1"}}
FRESH = {"ttlMs": 0, "cacheScope": "private"}


class Played:
    """The server: what it got, and a line to each conversation it is in."""

    def __init__(self) -> None:
        self.got: list[MessageEnvelope[Any]] = []
        self.carriers: list[Carrier] = []
        self.changed = asyncio.Condition()
        self.go_on = asyncio.Event()
        self._asked: dict[Any, asyncio.Future[Any]] = {}

    async def serve(self, carrier: Carrier) -> None:
        """One conversation, until its client ends it."""
        self.carriers.append(carrier)
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    envelope = await carrier.receive_envelope()
                except e.TransportClosed:
                    break
                self.got.append(envelope)
                async with self.changed:
                    self.changed.notify_all()
                if isinstance(envelope.message, Request):
                    tasks.create_task(self._answer(carrier, envelope.message))
                elif isinstance(envelope.message, Response):
                    self._asked[envelope.message.id].set_result(envelope.message)
            self.go_on.set()

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until something was received."""
        async with self.changed:
            await self.changed.wait_for(reached)

    async def ask(self, carrier: Carrier, request: Request) -> Response:
        """Ask the client something."""
        self._asked[request.id] = asyncio.get_running_loop().create_future()
        await carrier.send(request)
        answer: Response = await self._asked[request.id]
        return answer

    async def _answer(self, carrier: Carrier, request: Request) -> None:
        params: dict[str, Any] = request.params if isinstance(request.params, dict) else {}
        result: dict[str, Any] = {}
        if request.method == "initialize":
            offers = {"tools": {}, "logging": {}}
            result = {"protocolVersion": params["protocolVersion"], "capabilities": offers, **NAMED}
        elif request.method == "server/discover":
            offers = {"tools": {"listChanged": True}}
            result = {"supportedVersions": [MODERN], "capabilities": offers, **NAMED, **FRESH}
        elif request.method == "tools/list":
            tools = [{"name": name, "inputSchema": SCHEMAS.get(name, ANY)} for name in TOOLS]
            result = {"tools": tools, **FRESH}
        elif request.method == "tools/call":
            text = await self._call(carrier, request, params)
            result = {"content": [{"type": "text", "text": text}]}
        elif request.method == "subscriptions/listen":
            await self._listen(carrier, request)
            result = {"_meta": {SUBSCRIPTION: request.id}}
        await say(carrier, Response(id=request.id, result={"resultType": "complete", **result}))

    async def _call(self, carrier: Carrier, request: Request, params: dict[str, Any]) -> str:
        arguments = params.get("arguments") or {}
        token = params.get("_meta", {}).get("progressToken")
        name = params["name"]
        if name == "progress":
            for step in range(arguments["steps"]):
                await tell(carrier, "progress", progressToken=token, progress=step)
        elif name == "log":
            await tell(carrier, "message", level="info", data=arguments["text"])
        elif name == "ask":
            params = {"messages": [], "maxTokens": 1}
            asked = Request(id="s1", method="sampling/createMessage", params=params)
            return str((await self.ask(carrier, asked)).result["content"]["text"])
        elif name == "wait":
            if token is not None:
                await tell(carrier, "progress", progressToken=token, progress=0)
            await self.go_on.wait()
        return str(arguments.get("text", ""))

    async def _listen(self, carrier: Carrier, request: Request) -> None:
        meta = {SUBSCRIPTION: request.id}
        agreed = {"toolsListChanged": True}
        await tell(carrier, "subscriptions/acknowledged", _meta=meta, notifications=agreed)
        await tell(carrier, "tools/list_changed", _meta=meta)
        await self.go_on.wait()


SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


async def tell(carrier: Carrier, what: str, **params: Any) -> None:
    await carrier.send(Notification(method=f"notifications/{what}", params=params))


async def say(carrier: Carrier, message: Any) -> None:
    """Send, unless nobody is there any more."""
    with suppress(e.TransportClosed):
        await carrier.send(message)


class Http:
    """Requests to a front without any client library."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self.url = url
        self._http = http
        self.session = ""

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        named = {"content-type": "application/json", "accept": BOTH}
        if self.session:
            named["mcp-session-id"] = self.session
        return {**named, **(more or {})}

    async def ask(
        self, method: str, message: Any = None, headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        """One request and its whole answer."""
        body = message if isinstance(message, bytes | None) else json.dumps(message).encode()
        return await self._http.request(
            method, self.url, headers=self.headers(headers), content=body
        )

    async def open(self, version: str = "2025-11-25") -> str:
        """Open a session; its id."""
        answer = await self.ask("POST", initialize(version))
        assert answer.status_code == 200, answer.text
        self.session = answer.headers["mcp-session-id"]
        done = await self.ask("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert done.status_code == 202
        return self.session

    @asynccontextmanager
    async def stream(
        self, method: str, message: Any = None, headers: dict[str, str] | None = None
    ) -> AsyncIterator[Events]:
        """A request whose answer is a stream; leaving it closes the connection."""
        body = None if message is None else json.dumps(message).encode()
        async with self._http.stream(
            method, self.url, headers=self.headers(headers), content=body
        ) as answer:
            yield Events(answer)


class Events:
    """The events of one stream."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self._reader = EventReader(2**27)
        self._chunks = answer.aiter_raw()
        self._ready: list[SseEvent] = []

    async def next(self) -> SseEvent:
        """The next event; `StopAsyncIteration` at the end of the stream."""
        while not self._ready:
            self._ready = self._reader.feed(await anext(self._chunks))
        return self._ready.pop(0)

    async def message(self) -> tuple[str, Any]:
        """The next event that says something: its id and its message."""
        while True:
            event = await self.next()
            if event.data:
                return event.event_id or "", json.loads(event.data)

    async def all(self) -> list[SseEvent]:
        """Every event until the end."""
        async for chunk in self._chunks:
            self._ready += self._reader.feed(chunk)
        return self._ready

    async def rest(self) -> list[tuple[str, Any]]:
        """Every message until the end."""
        found = []
        while True:
            try:
                found.append(await self.message())
            except StopAsyncIteration:
                return found


def initialize(version: str = "2025-11-25") -> dict[str, Any]:
    params = {**INITIALIZE["params"], "protocolVersion": version}
    return {**INITIALIZE, "id": 0, "params": params}


def tool(name: str, id_: Any = 1, token: Any = None, **arguments: Any) -> dict[str, Any]:
    """A call of one of the server's tools."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return rpc("tools/call", {"name": name, "arguments": arguments, **meta}, id_)


def modern(
    method: str, id_: Any = 1, meta: dict[str, Any] | None = None, **params: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of the stateless era, and the headers that repeat it."""
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return rpc(method, {**params, "_meta": META | (meta or {})}, id_), headers


def modern_tool(name: str, id_: Any = 1, token: Any = None, **arguments: Any) -> Any:
    """A call of one of the server's tools in the stateless era."""
    meta = {} if token is None else {"progressToken": token}
    return modern("tools/call", id_, meta, name=name, arguments=arguments)


class Steps(list[float]):
    """How far a call has come, as the official client is told."""

    async def __call__(self, progress: float, *_: Any) -> None:
        self.append(progress)


def text_of(result: Any) -> str:
    """What a tool answered to the official client, or to one without a library."""
    if isinstance(result, httpx2.Response):
        result = result.json()
    if isinstance(result, dict):
        return str(result["result"]["content"][0]["text"])
    return str(result.content[0].text)


async def held_up(send: Callable[[], Awaitable[None]], events: Events) -> None:
    """See that a server waits for a client that does not read, and that all of it arrives."""
    count, sent = 150, 0

    async def flood() -> None:
        nonlocal sent
        for _ in range(count):
            await send()
            sent += 1

    flooding = asyncio.ensure_future(flood())
    await until(lambda: sent > 0)
    assert await at_rest(lambda: sent) < count
    for _ in range(count):
        await events.message()
    await flooding


class Fronted(Http):
    """A client of a front, with the front and the server behind it at hand."""

    front: HttpFront
    played: Played

    @property
    def server(self) -> Carrier:
        """The end of the first conversation at which the server is."""
        return self.played.carriers[0]


@asynccontextmanager
async def fronted(
    serve: Callable[[Carrier], Awaitable[None]] | None = None, **options: Any
) -> AsyncIterator[Fronted]:
    """A front before a played server, or before one that serves as a test wants."""
    played = Played()
    front = HttpFront(serve or played.serve, SystemClock(), **options)
    async with (
        front.running(),
        served({"/mcp": front}) as url,
        httpx2.AsyncClient(verify=False, timeout=30) as http,
    ):
        there = Fronted(f"{url}/mcp", http)
        there.front, there.played = front, played
        try:
            yield there
        finally:
            played.go_on.set()
            front.stop()


@asynccontextmanager
async def served(endpoints: dict[str, ASGIApp]) -> AsyncIterator[str]:
    """Applications on a port of their own."""
    async with serving(endpoints=endpoints, max_body_bytes=2**26) as there:
        yield f"http://localhost:{there.port}"
