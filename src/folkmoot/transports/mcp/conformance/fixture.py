"""One tool of the conformance suite."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from msgspec import Struct, field

Context: TypeAlias = ServerRequestContext[Any, Any]
ToolResult: TypeAlias = types.CallToolResult | types.InputRequiredResult
Call: TypeAlias = Callable[[Context, types.CallToolRequestParams], Awaitable[ToolResult]]

CAPABILITIES: Mapping[str, str] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""What a client must have declared before it may be asked."""


class Fixture(Struct, frozen=True):
    """A tool: its name, what it is for, what it does, its schema, and who may call it."""

    name: str
    description: str
    call: Call
    schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    needs_account: bool = True

    def listed(self) -> types.Tool:
        """The tool as `tools/list` shows it."""
        return types.Tool(
            name=self.name, description=self.description, input_schema=dict(self.schema)
        )


def said(text: str, *, is_error: bool = False) -> types.CallToolResult:
    """A result that is one text."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)


def declares(ctx: Context, method: str) -> bool:
    """Whether the client has said that it can be asked this."""
    declared = ctx.session.client_capabilities
    return declared is not None and getattr(declared, CAPABILITIES[method]) is not None


def not_declared(*methods: str) -> MCPError:
    """The refusal of a call that needs what the client has not declared."""
    needed: dict[str, dict[str, Any]] = {CAPABILITIES[method]: {} for method in methods}
    return MCPError(
        code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        message=f"The client has not declared: {', '.join(needed)}.",
        data={"requiredCapabilities": needed},
    )
