"""Puts the fixtures on an SDK server, beside what it serves already."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)

from folkmoot.tools.patience import unless
from folkmoot.transports.mcp.conformance import prompts, resources
from folkmoot.transports.mcp.conformance.content import CONTENT
from folkmoot.transports.mcp.conformance.fixture import Fixture, said
from folkmoot.transports.mcp.conformance.rounds import ROUNDS
from folkmoot.transports.mcp.conformance.streams import STREAMS, Logging
from folkmoot.transports.mcp.entrance import account_of
from folkmoot.transports.mcp.exchange import exchange_of
from folkmoot.transports.mcp.notices import INBOX

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.lowlevel.server import RequestHandler

    from folkmoot.transports.mcp.conformance.fixture import Call, Context, ToolResult

logger = logging.getLogger("folkmoot.mcp")


def mount(sdk: Server[Any]) -> None:
    """Add the fixtures to a server that has its own handlers already, and say so in the log."""
    logger.warning(
        "conformance fixtures are on: this hub shows tools that are for tests alone; "
        "set mcp.conformance_fixtures to false anywhere else"
    )
    Mounted(sdk)


class Mounted:
    """The fixtures of one server: each method asks the hub's own handler for what is not ours."""

    def __init__(self, sdk: Server[Any]) -> None:
        self._changes = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._changes)
        logs = Logging()
        tools = (*CONTENT, *STREAMS, *logs.fixtures(), *ROUNDS, *self._triggers())
        self._tools = {tool.name: tool for tool in tools}
        self._own: dict[str, RequestHandler[Any, Any]] = {}
        instead: dict[str, RequestHandler[Any, Any]] = {
            "tools/list": self.list_tools,
            "tools/call": self.call_tool,
            "resources/list": self.list_resources,
            "resources/templates/list": self.list_templates,
            "resources/read": self.read_resource,
            "resources/subscribe": self.subscribe,
            "resources/unsubscribe": self.subscribe,
            "subscriptions/listen": self.listen,
        }
        for method, handler in instead.items():
            entry = sdk.get_request_handler(method)
            if entry is None:
                raise RuntimeError(f"the server has no handler for {method}")
            self._own[method] = entry.handler
            sdk.add_request_handler(method, entry.params_type, handler)
        added: dict[str, tuple[type[Any], RequestHandler[Any, Any]]] = {
            "prompts/list": (types.PaginatedRequestParams, prompts.list_prompts),
            "prompts/get": (types.GetPromptRequestParams, prompts.get_prompt),
            "completion/complete": (types.CompleteRequestParams, prompts.complete),
            "logging/setLevel": (types.SetLevelRequestParams, logs.set_level),
        }
        for method, (params_type, handler) in added.items():
            sdk.add_request_handler(method, params_type, handler)
        sdk.get_tool_input_schema = self._schema
        # A key of this process, and whose state it is: what one account was asked, only that
        # account can answer.
        security = RequestStateSecurity(
            keys=[os.urandom(32)],
            bind_principal=lambda ctx: exchange_of(ctx.request).holder or None,
        )
        sdk.middleware.append(RequestStateBoundary(security, default_audience=sdk.name))

    def _schema(self, name: str) -> dict[str, Any] | None:
        tool = self._tools.get(name)
        return tool.schema if tool is not None else None

    def _triggers(self) -> tuple[Fixture, ...]:
        def telling(event: ToolsListChanged | PromptsListChanged) -> Call:
            async def call(_: Context, __: types.CallToolRequestParams) -> ToolResult:
                await self._changes.publish(event)
                return said("Those who listen were told.")

            return call

        described = "Tells those who listen that a list has changed."
        return (
            Fixture("test_trigger_tool_change", described, telling(ToolsListChanged())),
            Fixture("test_trigger_prompt_change", described, telling(PromptsListChanged())),
        )

    async def list_tools(self, ctx: Context, params: Any) -> Any:
        """The hub's tools, then ours."""
        own = types.ListToolsResult.model_validate(await self._own["tools/list"](ctx, params))
        ours = [tool.listed() for tool in self._tools.values()]
        return own.model_copy(update={"tools": [*own.tools, *ours]})

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """One of ours, for whoever has an account, or one of the hub's."""
        tool = self._tools.get(params.name)
        if tool is None:
            return await self._own["tools/call"](ctx, params)
        if tool.needs_account:
            account_of(exchange_of(ctx.request))
        return await tool.call(ctx, params)

    async def list_resources(self, ctx: Context, params: Any) -> Any:
        """The hub's resources, then ours."""
        own = types.ListResourcesResult.model_validate(
            await self._own["resources/list"](ctx, params)
        )
        return own.model_copy(update={"resources": [*own.resources, *resources.RESOURCES]})

    async def list_templates(self, ctx: Context, params: Any) -> Any:
        """The hub's templates, then ours."""
        own = types.ListResourceTemplatesResult.model_validate(
            await self._own["resources/templates/list"](ctx, params)
        )
        templates = [*own.resource_templates, *resources.TEMPLATES]
        return own.model_copy(update={"resource_templates": templates})

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        """One of ours, or one of the hub's."""
        ours = resources.read(str(params.uri))
        return ours if ours is not None else await self._own["resources/read"](ctx, params)

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> Any:
        """Ours never changes, so there is nothing to remember, and nothing to forget."""
        if str(params.uri) == resources.WATCHED:
            return types.EmptyResult()
        return await self._own[ctx.method](ctx, params)

    async def listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        """Changes of lists, which only our triggers make; the inbox is the hub's."""
        if INBOX in (params.notifications.resource_subscriptions or ()):
            return await self._own["subscriptions/listen"](ctx, params)
        leaving = exchange_of(ctx.request).caller.leaving
        ended = await unless(leaving, self._listen(ctx, params))
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        return ended or types.SubscriptionsListenResult(_meta=meta)
