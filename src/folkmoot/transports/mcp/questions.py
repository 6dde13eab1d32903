"""Asking the user for an argument that the assistant left out (stateless era).

A tool may name one argument that is for a person to give. Where the client can ask, the call is
answered with the question; the client asks, and calls again with what the user said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from folkmoot.tools import Tool


def answered(tool: Tool, params: types.CallToolRequestParams) -> dict[str, Any]:
    """The arguments of a call, with what the user was asked for and gave."""
    arguments = dict(params.arguments or {})
    response = (params.input_responses or {}).get(tool.asks)
    if isinstance(response, types.ElicitResult):
        # Whoever declines or says nothing is told by the tool that the argument is missing.
        given = (response.content or {}) if response.action == "accept" else {}
        arguments[tool.asks] = given.get(tool.asks, "")
    return arguments


def question(
    ctx: ServerRequestContext[Any, Any], tool: Tool, arguments: dict[str, Any]
) -> types.InputRequiredResult | None:
    """The question to ask first, if there is one and the client can ask it."""
    capabilities = ctx.session.client_capabilities
    if (
        not tool.asks
        or arguments.get(tool.asks) is not None
        or ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS
        or capabilities is None
        or capabilities.elicitation is None
    ):
        return None
    argument = tool.schema["properties"][tool.asks]
    form = types.ElicitRequestFormParams(
        message=f"{tool.description} {argument['description']}:",
        requested_schema={
            "type": "object",
            "properties": {tool.asks: {"type": "string", "title": argument["description"]}},
            "required": [tool.asks],
        },
    )
    return types.InputRequiredResult(input_requests={tool.asks: types.ElicitRequest(params=form)})
