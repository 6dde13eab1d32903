"""Asking the user before something is done that cannot be undone (stateless era).

A tool may name one argument that is for a person to give. Where the client can ask, the call is
answered with the question, whatever the assistant gave for the argument; the client asks, and calls
again with what the user said. Where it cannot, the argument counts.
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
        nothing = "" if asked_for(tool)["type"] == "string" else False
        given = (response.content or {}) if response.action == "accept" else {}
        arguments[tool.asks] = given.get(tool.asks, nothing)
    return arguments


def question(
    ctx: ServerRequestContext[Any, Any], tool: Tool, params: types.CallToolRequestParams
) -> types.InputRequiredResult | None:
    """The question to ask first, unless it was answered or the client cannot ask it."""
    response = (params.input_responses or {}).get(tool.asks)
    if isinstance(response, types.ElicitResult) or not can_ask(ctx):
        return None
    argument = asked_for(tool)
    about = [
        f"{name}: {value}"
        for name, value in (params.arguments or {}).items()
        if name != tool.asks and name in tool.schema["properties"] and isinstance(value, str)
    ]
    form = types.ElicitRequestFormParams(
        message="\n".join([f"{tool.description} {argument['description']}:", *about]),
        requested_schema={
            "type": "object",
            "properties": {tool.asks: {"type": argument["type"], "title": argument["description"]}},
            "required": [tool.asks],
        },
    )
    return types.InputRequiredResult(input_requests={tool.asks: types.ElicitRequest(params=form)})


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client can put a form to its user when it is told to."""
    capabilities = ctx.session.client_capabilities
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or capabilities is None:
        return False
    elicitation = capabilities.elicitation
    # One that names no mode means forms.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def asked_for(tool: Tool) -> dict[str, Any]:
    """The schema of the argument that is for a person to give."""
    argument: dict[str, Any] = tool.schema["properties"][tool.asks]
    return argument
