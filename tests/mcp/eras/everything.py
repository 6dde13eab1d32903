"""A server of the SDK that does a little of everything, and asks in the way of its era."""

from __future__ import annotations

import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.methods import MONOLITH_REQUESTS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

NAME = "everything"
RESOURCE = "note://today"
FORM: Any = {"type": "object", "properties": {"name": {"type": "string"}}}
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "elicit": ("elicitation/create", {"message": "Who?", "requestedSchema": FORM}),
    "visit": ("elicitation/create", {"mode": "url", "message": "Go", "url": "https://there.test/"}),
    "sample": (
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "maxTokens": 9,
        },
    ),
    "roots": ("roots/list", {}),
}
"""The tools that ask, and what they ask."""
RESULTS: dict[str, Any] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}


class Everything:
    """The server, and what it noticed."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.subscribed: list[str] = []
        self.levels: list[str] = []
        self.cancelled = anyio.Event()
        self.entered = anyio.Event()
        self.server = self._build()

    def _build(self) -> Server[Any]:
        with warnings.catch_warnings():
            # The SDK tells its users that logging will go; handshake clients have it.
            warnings.simplefilter("ignore")
            server: Server[Any] = Server(
                NAME,
                version="7",
                instructions="Ask.",
                on_list_tools=self._tools,
                on_call_tool=self._call,
                on_list_resources=self._resources,
                on_read_resource=self._read,
                on_subscribe_resource=self._subscribe,
                on_unsubscribe_resource=self._unsubscribe,
                on_subscriptions_listen=ListenHandler(self.bus),
                on_list_prompts=self._prompts,
                on_get_prompt=self._prompt,
                on_completion=self._complete,
                on_set_logging_level=self._set_level,
            )
        return server

    async def _tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        names = ("echo", "steps", "fail", "stay", "log", "touch", *QUESTIONS)
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in names]
        return types.ListToolsResult(tools=tools)

    async def _call(self, ctx: Any, params: Any) -> Any:
        if params.name in QUESTIONS:
            return await self._ask(ctx, params)
        return await getattr(self, f"_{params.name}")(ctx, params)

    async def _ask(self, ctx: Any, params: Any) -> Any:
        method, asked = QUESTIONS[params.name]
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            if params.input_responses is None:
                wanted: Any = {"q": {"method": method, "params": asked}}
                return {
                    "resultType": "input_required",
                    "inputRequests": wanted,
                    "requestState": "opaque",
                }
            assert params.request_state == "opaque"
            given = params.input_responses["q"]
        else:
            told = {"elicitationId": "e-1", **asked} if params.name == "visit" else asked
            request: Any = MONOLITH_REQUESTS[method].model_validate(
                {"method": method, "params": told}
            )
            given = await ctx.session.send_request(request, RESULTS[method])
        return _text(given.model_dump_json(by_alias=True, exclude_none=True))

    async def _echo(self, ctx: Any, params: Any) -> types.CallToolResult:
        return _text(str(params.arguments["text"]))

    async def _steps(self, ctx: Any, params: Any) -> types.CallToolResult:
        await ctx.session.report_progress(1, 2, "half")
        return _text("done")

    async def _fail(self, ctx: Any, params: Any) -> types.CallToolResult:
        raise MCPError(code=-32050, message="No.", data={"why": "so"})

    async def _stay(self, ctx: Any, params: Any) -> types.CallToolResult:
        self.entered.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()
        raise AssertionError

    async def _log(self, ctx: Any, params: Any) -> types.CallToolResult:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for level in ("debug", "warning"):
                await ctx.session.send_log_message(level, level, related_request_id=ctx.request_id)
        return _text("logged")

    async def _touch(self, ctx: Any, params: Any) -> types.CallToolResult:
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await self.bus.publish(ResourceUpdated(RESOURCE))
            await self.bus.publish(ToolsListChanged())
        else:
            await ctx.session.send_resource_updated(RESOURCE)
            await ctx.session.send_tool_list_changed()
        return _text("touched")

    async def _resources(self, ctx: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[types.Resource(name="today", uri=RESOURCE)])

    async def _read(self, ctx: Any, params: Any) -> types.ReadResourceResult:
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=params.uri, text="sunny")]
        )

    async def _subscribe(self, ctx: Any, params: Any) -> types.EmptyResult:
        self.subscribed.append(params.uri)
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Any, params: Any) -> types.EmptyResult:
        self.subscribed.remove(params.uri)
        return types.EmptyResult()

    async def _prompts(self, ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet")])

    async def _prompt(self, ctx: Any, params: Any) -> types.GetPromptResult:
        content = types.TextContent(type="text", text=f"Greet {params.arguments['who']}")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def _complete(self, ctx: Any, params: Any) -> types.CompleteResult:
        return types.CompleteResult(
            completion=types.Completion(values=[params.argument.value + "da"])
        )

    async def _set_level(self, ctx: Any, params: Any) -> types.EmptyResult:
        self.levels.append(params.level)
        return types.EmptyResult()


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
