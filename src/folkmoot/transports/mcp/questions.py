"""Asking the user before something is done that cannot be undone (stateless era).

A tool may name one argument that is for a person to give. Where the client can ask, the call is
answered with the question, whatever the assistant gave for the argument; the client asks, and calls
again with what the user said. Where it cannot, the argument counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.mcp.wire import ELICIT, INPUT_REQUIRED, members_of

if TYPE_CHECKING:
    from folkmoot.mcp.server.service import Asked
    from folkmoot.operations import Operation

ACTIONS: Final = frozenset({"accept", "decline", "cancel"})


def answered(asked: Asked, tool: Operation, arguments: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call, with what the user was asked for and gave."""
    given = dict(arguments or {})
    response = response_of(asked, tool)
    if response is not None:
        # Whoever declines or says nothing is told by the tool that the argument is missing.
        nothing = "" if asked_for(tool)["type"] == "string" else False
        content = members_of(response.get("content")) if response["action"] == "accept" else {}
        given[tool.asks] = content.get(tool.asks, nothing)
    return given


def question(
    asked: Asked, tool: Operation, arguments: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The question to ask first, unless it was answered or the client cannot ask it."""
    if response_of(asked, tool) is not None or not can_ask(asked):
        return None
    argument = asked_for(tool)
    about = [
        f"{name}: {value}"
        for name, value in (arguments or {}).items()
        if name != tool.asks and name in tool.schema["properties"] and isinstance(value, str)
    ]
    form = {
        "mode": "form",
        "message": "\n".join([f"{tool.description} {argument['description']}:", *about]),
        "requestedSchema": {
            "type": "object",
            "properties": {tool.asks: {"type": argument["type"], "title": argument["description"]}},
            "required": [tool.asks],
        },
    }
    wanted = {tool.asks: {"method": ELICIT, "params": form}}
    return {"resultType": INPUT_REQUIRED, "inputRequests": wanted}


def response_of(asked: Asked, tool: Operation) -> dict[str, Any] | None:
    """What the user said to the question, if it was put."""
    response = members_of(asked.params.get("inputResponses")).get(tool.asks)
    return response if members_of(response).get("action") in ACTIONS else None


def can_ask(asked: Asked) -> bool:
    """Whether the client can put a form to its user when it is told to."""
    elicitation = asked.capabilities.get("elicitation")
    if not asked.stateless or type(elicitation) is not dict:
        return False
    # One that names no mode means forms.
    return "form" in elicitation or "url" not in elicitation


def asked_for(tool: Operation) -> dict[str, Any]:
    """The schema of the argument that is for a person to give."""
    argument: dict[str, Any] = tool.schema["properties"][tool.asks]
    return argument
