"""A hub, a server of the official SDK that offers the same, and how a request is sent to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

from folkmoot.transports.listen import listen
from folkmoot.transports.server import HttpServer
from tests.mcp.oracle.corpus import (
    HANDSHAKE,
    INBOX,
    NOTE,
    STATELESS,
    Case,
    Era,
    encoded,
    initialize,
)
from tests.peers.gateway import backend, fronted, token_of
from tests.peers.servers import Place as Address

SECONDS = 60.0
BOTH = "application/json, text/event-stream"
# Methods whose subject a header names.
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
# The tools behind the hub.
SCHEMAS: dict[str, dict[str, Any]] = {
    "echo": TEXT,
    "fail": {"type": "object"},
    "region": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
}
# Tools of the hub's own that the corpus names; to the SDK's server they are like all others.
OWN = ("msg_whoami", "msg_inbox", "msg_send")
GREET = types.Prompt(name="greet", arguments=[types.PromptArgument(name="who", required=True)])


def offering(prefix: str, note: str, *own: str) -> Server[Any]:
    """A server of the SDK with the tools, the resource and the prompt of the corpus."""
    schemas = {f"{prefix}{name}": schema for name, schema in SCHEMAS.items()}
    schemas |= {name: {"type": "object"} for name in own}
    uris = [note, *([INBOX] if own else ())]
    prompt = GREET.model_copy(update={"name": f"{prefix}greet"})

    def known(what: str, name: str, names: Any) -> None:
        if name not in names:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown {what}: {name}")

    def paged(result: Any) -> Any:
        async def page(_: Any, params: types.PaginatedRequestParams | None) -> Any:
            known("cursor", (params and params.cursor) or "", [""])
            return result

        return page

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> Any:
        known("tool", params.name, schemas)
        said = [types.TextContent(text=json.dumps(params.arguments or {}))]
        return types.CallToolResult(content=said, is_error=params.name == f"{prefix}fail")

    async def read(_: Any, params: types.ReadResourceRequestParams) -> Any:
        known("resource", params.uri, uris)
        contents = types.TextResourceContents(uri=params.uri, text="Rain.")
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(_: Any, params: types.SubscribeRequestParams) -> Any:
        known("resource", params.uri, uris)
        return types.EmptyResult()

    async def accept(_: Any, __: Any) -> Any:
        return types.EmptyResult()

    async def get_prompt(_: Any, params: types.GetPromptRequestParams) -> Any:
        known("prompt", params.name, [prompt.name])
        said = types.TextContent(text=f"Greet {(params.arguments or {}).get('who')}.")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=said)])

    async def complete(_: Any, params: types.CompleteRequestParams) -> Any:
        known("prompt", getattr(params.ref, "name", ""), [prompt.name])
        return types.CompleteResult(completion=types.Completion(values=["Ada"]))

    tools = [types.Tool(name=name, input_schema=each) for name, each in schemas.items()]
    resources = [types.Resource(uri=uri, name=uri) for uri in uris]
    server: Server[Any] = Server(
        "oracle",
        on_list_tools=paged(types.ListToolsResult(tools=tools)),
        on_call_tool=call_tool,
        on_list_resources=paged(types.ListResourcesResult(resources=resources)),
        on_list_resource_templates=paged(types.ListResourceTemplatesResult(resource_templates=[])),
        on_read_resource=read,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=accept,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
        on_list_prompts=paged(types.ListPromptsResult(prompts=[prompt])),
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, accept)
    return server


@asynccontextmanager
async def served(server: Server[Any]) -> AsyncIterator[str]:
    """A server of the SDK on a port, with nothing of ours before it but the reading of HTTP."""
    sockets = listen("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost")]
    manager = StreamableHTTPSessionManager(
        server,
        security_settings=TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
        ),
    )
    http = HttpServer(manager.handle_request, sockets, max_connections=100, shutdown_seconds=1)
    failure: BaseException | None = None
    async with manager.run(), asyncio.TaskGroup() as tasks:
        tasks.create_task(http.serve())
        await http.listening()
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        except BaseException as error:  # noqa: BLE001 - raised again, out of the group
            failure = error
        http.stop()
    if failure is not None:
        raise failure


@dataclass
class Place:
    """One of the two servers, as someone with an account uses it in one era."""

    era: Era
    _url: str
    _http: httpx2.AsyncClient
    _token: str
    _session: str = ""

    async def open(self) -> str:
        """A new session."""
        absent = {"mcp-session-id": None, "mcp-protocol-version": None}
        first = Case("open", encoded(initialize()), absent)
        async with self._sent(first, "") as answer:
            return str(answer.headers["mcp-session-id"])

    async def outcome(self, case: Case) -> str:
        """Status and error code of the answer to a request: `200`, `400 -32700`."""
        session = ""
        if self.era == "handshake":
            self._session = self._session or await self.open()
            own = case.alone or case.before
            session = await self.open() if own else self._session
        async with asyncio.timeout(SECONDS):
            for each in case.before:
                async with self._sent(each, session):
                    pass
            async with self._sent(case, session) as answer:
                code = None if case.method in ("GET", "HEAD") else await error_code(answer)
        return f"{answer.status_code}" if code is None else f"{answer.status_code} {code}"

    @asynccontextmanager
    async def _sent(self, case: Case, session: str) -> AsyncIterator[httpx2.Response]:
        headers = {**self._usual(case, session), **case.headers}
        named = [(name, value) for name, value in headers.items() if value is not None]
        async with self._http.stream(
            case.method, self._url, content=case.body, headers=[*named, *case.added]
        ) as answer:
            yield answer

    def _usual(self, case: Case, session: str) -> dict[str, str | None]:
        """The headers that a client of the era sends with a request."""
        usual: dict[str, str | None] = {"accept": BOTH, "authorization": f"Bearer {self._token}"}
        if case.method == "POST":
            usual["content-type"] = "application/json"
        if self.era == "handshake":
            return {**usual, "mcp-session-id": session, "mcp-protocol-version": HANDSHAKE}
        return {**usual, "mcp-protocol-version": STATELESS, **routing(case.body)}


def routing(body: bytes) -> dict[str, str]:
    """The headers of the stateless era that repeat what is in the body, as far as they can."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        message = None
    method = message.get("method") if isinstance(message, dict) else None
    if not isinstance(method, str):
        # What cannot be read is sent as the call that it was to be.
        return {"mcp-method": "tools/call", "mcp-name": "msg_whoami"}
    params = message.get("params")
    subject = params.get(NAMED.get(method, "")) if isinstance(params, dict) else None
    told = {"mcp-method": method, "mcp-name": subject}
    return {k: v for k, v in told.items() if isinstance(v, str) and v.isprintable()}


async def error_code(answer: httpx2.Response) -> int | None:
    """The code of the JSON-RPC error in an answer, which may be the first event of a stream."""
    kind = answer.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                return code_of(json.loads(line.removeprefix("data: ")))
        return None
    body = await answer.aread()
    return code_of(json.loads(body)) if kind.startswith("application/json") and body else None


def code_of(message: Any) -> int | None:
    """The code of a JSON-RPC error; other errors, as HTTP alone has them, have none."""
    error = message.get("error") if isinstance(message, dict) and "jsonrpc" in message else None
    return error["code"] if error else None


@asynccontextmanager
async def both(folder: Path, era: Era) -> AsyncIterator[tuple[Place, Place]]:
    """The hub and the SDK's server; behind the hub is another one that has the same tools."""
    async with (
        served(offering("", "note://today")) as behind,
        served(offering("demo_", NOTE, *OWN)) as sdk,
        fronted(folder, backend("demo", Address("http", url=behind))) as there,
        httpx2.AsyncClient(verify=False, timeout=SECONDS) as http,
    ):
        token = await token_of(there, "ada")
        yield Place(era, there.url, http, token), Place(era, sdk, http, token)
