"""Tools that say something, or ask the client, on the way to their answer."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, get_args

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.shared.message import ServerMessageMetadata

from folkmoot.transports.mcp.conformance.fixture import (
    Call,
    Fixture,
    declares,
    not_declared,
    said,
)
from folkmoot.transports.mcp.exchange import exchange_of

if TYPE_CHECKING:
    from folkmoot.transports.mcp.conformance.fixture import Context, ToolResult

STEP_SECONDS = 0.05
"""The suite wants to see that what is said arrives before the answer."""

LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
MOST_SESSIONS = 100

LOGGED = ("Tool execution started", "Tool processing data", "Tool execution completed")

DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}

OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]

ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}

USER: dict[str, Any] = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}


def one_text(argument: str) -> dict[str, Any]:
    """The schema of a tool that takes one text."""
    return {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
    }


class Logging:
    """What clients of the handshake era want to hear, and the tools that speak."""

    def __init__(self) -> None:
        self._levels: OrderedDict[str, types.LoggingLevel] = OrderedDict()

    async def set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> Any:
        """Say less to this session from now on."""
        if (session := exchange_of(ctx.request).session) is not None:
            self._levels[session.id] = params.level
            if len(self._levels) > MOST_SESSIONS:
                self._levels.popitem(last=False)
        return types.EmptyResult()

    def wanted(self, ctx: Context, level: types.LoggingLevel) -> bool:
        """Whether the client wants to hear what is as important as this."""
        session = exchange_of(ctx.request).session
        least = self._levels.get(session.id, "debug") if session is not None else "debug"
        allowed = allowed_log_levels(ctx.protocol_version, ctx.meta)
        return level in allowed and LEVELS.index(level) >= LEVELS.index(least)

    async def call(self, ctx: Context, _: types.CallToolRequestParams) -> ToolResult:
        """Say three things to a client that wants to hear them, then answer."""
        for text in LOGGED if self.wanted(ctx, "info") else ():
            params = types.LoggingMessageNotificationParams(level="info", data=text)
            await ctx.session.send_notification(
                types.LoggingMessageNotification(params=params), related_request_id=ctx.request_id
            )
            await asyncio.sleep(STEP_SECONDS)
        return said("The tool has run.")

    def fixtures(self) -> tuple[Fixture, ...]:
        """The tools that speak."""
        description = "Logs three messages before it answers."
        return (
            Fixture("test_tool_with_logging", description, self.call),
            Fixture("test_logging_tool", description, self.call),
        )


async def progress(ctx: Context, _: types.CallToolRequestParams) -> ToolResult:
    """Tell three times how far it is."""
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await asyncio.sleep(STEP_SECONDS)
    return said("Progress was reported.")


async def sampling(ctx: Context, params: types.CallToolRequestParams) -> ToolResult:
    """Ask the client's model."""
    if not declares(ctx, "sampling/createMessage"):
        raise not_declared("sampling/createMessage")
    prompt = types.TextContent(text=str((params.arguments or {}).get("prompt", "")))
    request = types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=prompt)], max_tokens=100
        )
    )
    answer = await ctx.session.send_request(
        request,
        types.CreateMessageResult,
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )
    return said(f"LLM response: {getattr(answer.content, 'text', '')}")


def eliciting(properties: dict[str, Any], message: str = "", *, all_required: bool = False) -> Call:
    """A tool that asks the user to fill in a form; without a message, the caller gives it."""
    form: dict[str, Any] = {"type": "object", "properties": properties}
    if all_required:
        form["required"] = list(properties)

    async def call(ctx: Context, params: types.CallToolRequestParams) -> ToolResult:
        if not declares(ctx, "elicitation/create"):
            raise not_declared("elicitation/create")
        shown = message or str((params.arguments or {}).get("message", ""))
        answer = await ctx.session.elicit_form(shown, form, ctx.request_id)
        content = json.dumps(answer.content or {})
        return said(f"Elicitation completed: action={answer.action}, content={content}")

    return call


STREAMS = (
    Fixture("test_tool_with_progress", "Reports progress before it answers.", progress),
    Fixture("test_sampling", "Asks the client's model.", sampling, one_text("prompt")),
    Fixture(
        "test_elicitation",
        "Asks the user.",
        eliciting(USER, all_required=True),
        one_text("message"),
    ),
    Fixture(
        "test_elicitation_sep1034_defaults",
        "Asks the user with a form that has default values.",
        eliciting(DEFAULTS, "Please confirm your details."),
    ),
    Fixture(
        "test_elicitation_sep1330_enums",
        "Asks the user with a form that has every kind of choice.",
        eliciting(ENUMS, "Please choose."),
    ),
)
