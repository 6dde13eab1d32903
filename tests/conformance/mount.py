"""Puts the fixtures on a hub that runs, beside what it serves already.

The only file here that knows how `/mcp` is made inside.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from folkmoot.app import Hub
from folkmoot.transports.mcp.entrance import account_of, capabilities_of
from folkmoot.transports.mcp.exchange import exchange_of
from tests.conformance.fixtures import Fixtures
from tests.conformance.fixtures.asked import LEVELS, Asked, Refused, Result

METHODS = (
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
)
ASKING: dict[str, tuple[type[Any], type[Any]]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


def mount(hub: Hub) -> None:
    """Add the fixtures."""
    parts = hub.mcp._parts
    fixtures = Fixtures(parts._hearers.tell_all)
    sdk, schema_of = parts.server.sdk, parts.server.sdk.get_tool_input_schema
    for method in METHODS:
        entry = sdk.get_request_handler(method)
        assert entry is not None
        sdk.add_request_handler(method, entry.params_type, Handler(fixtures, entry.handler).answer)

    def schema(name: str) -> Any:
        tool = fixtures.tools.get(name)
        return tool.schema if tool is not None else schema_of and schema_of(name)

    sdk.get_tool_input_schema = schema
    if parts.lane is not None:
        # It would list what the hub has without us.
        parts.lane._lists = None


class Handler:
    """One method: ours if the fixtures know what is asked for, the hub's own otherwise."""

    def __init__(self, fixtures: Fixtures, own: Any) -> None:
        self._fixtures = fixtures
        self._own = own

    async def answer(self, ctx: Any, params: Any) -> Any:
        """Answer a request; a client of the handshake era is asked what there is to ask."""
        given = dict(ctx.params or {})
        if ctx.method in self._fixtures.lists:
            member, ours = self._fixtures.lists[ctx.method]
            own = await self._own(ctx, params)
            return {**own, member: [*own[member], *ours]}
        call = self._fixtures.finds(ctx.method, given)
        if call is None:
            return await self._own(ctx, params)
        if ctx.method == "tools/call" and self._fixtures.tools[given["name"]].needs_account:
            account_of(exchange_of(ctx.request))
        try:
            result = await call(asked(ctx, given))
            if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
                while result.get("resultType") == "input_required":
                    more = {"inputResponses": await answered(ctx, result["inputRequests"])}
                    state = {"requestState": result.get("requestState")}
                    result = await call(asked(ctx, {**given, **more, **state}))
        except Refused as error:
            raise MCPError(code=error.code, message=error.message, data=error.data) from None
        return result


def asked(ctx: Any, params: dict[str, Any]) -> Asked:
    """A request of the SDK's as the fixtures take it."""

    async def tell(method: str, told: dict[str, Any]) -> None:
        if method == "notifications/progress":
            await ctx.session.report_progress(told["progress"], told["total"])
            return
        message = types.LoggingMessageNotificationParams.model_validate(told)
        await ctx.session.send_notification(
            types.LoggingMessageNotification(params=message), related_request_id=ctx.request_id
        )

    session = exchange_of(ctx.request).session
    if session is not None:
        level: str | None = session.log_level
    else:
        allowed = allowed_log_levels(ctx.protocol_version, ctx.meta)
        level = min(allowed, key=LEVELS.index, default=None)
    return Asked(ctx.method, params, capabilities_of(ctx), level, tell)


async def answered(ctx: Any, questions: dict[str, Any]) -> dict[str, Result]:
    """What a client of the handshake era says to questions."""
    answers = {}
    for key, question in questions.items():
        request, result = ASKING[question["method"]]
        answer = await ctx.session.send_request(
            request.model_validate(question),
            result,
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
        answers[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    return answers
