"""Few tools instead of many: one that finds a tool, and one that calls what was found.

A call inside `folkmoot/call_tool` is taken out of it before anything else looks at it, so policy,
limits and audit see the tool that is meant. Only what cannot be taken out reaches its handler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from msgspec import Meta, field

from folkmoot.core.errors import ArgumentInvalid
from folkmoot.core.message import ProtocolMessage, Request, replace
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.tools.model import Arguments, Call, Payload, Tool
from folkmoot.tools.schemas import anything, integer, obj, text

FIND_TOOL: Final = "folkmoot/find_tool"
CALL_TOOL: Final = "folkmoot/call_tool"
METHOD: Final = TOOLS_CALL

MOST_FOUND: Final = 50
FoundLimit = Annotated[int, Meta(ge=1, le=MOST_FOUND)]


class FindTool(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look for."""

    query: str
    limit: FoundLimit = 10


class CallTool(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to call, and with what."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


async def find_tool(call: Call[FindTool]) -> Payload:
    """The tools that fit best, best first, and which servers could not be looked through."""
    find = call.caller.find
    if find is None:
        return {"tools": []}
    return await find(call.arguments.query, call.arguments.limit)


async def call_tool(_: Call[CallTool]) -> Payload:
    """Refuse a call that was not taken out of this one."""
    raise ArgumentInvalid(
        f"name must be another tool: {CALL_TOOL} cannot call itself.", field="name"
    )


def inner_call(arguments: dict[str, Any] | None) -> tuple[str, dict[str, Any] | None] | None:
    """The name and the arguments of the call inside a call of `folkmoot/call_tool`.

    None for whatever is not one such call: its own handler says what is wrong with it.
    """
    if arguments is None or not arguments.keys() <= {"name", "arguments"}:
        return None
    name, given = arguments.get("name"), arguments.get("arguments")
    if type(name) is not str or not (given is None or type(given) is dict):
        return None
    return name, given


def taken_out(message: ProtocolMessage, canonical: Callable[[str], str]) -> ProtocolMessage:
    """The call inside a call of `folkmoot/call_tool`; every other message as it is.

    `canonical` is the one name of a tool, however it is spelled.
    """
    params = message.params if type(message) is Request and message.method == METHOD else None
    if type(message) is not Request or not isinstance(params, dict):
        return message
    name, arguments = params.get("name"), params.get("arguments")
    if type(name) is not str or canonical(name) != CALL_TOOL or type(arguments) is not dict:
        return message
    inner = inner_call(arguments)
    if inner is None or canonical(inner[0]) == CALL_TOOL:
        return message
    called = {**params, "name": inner[0], "arguments": inner[1] or {}}
    return replace(message, params=called)


FINDER_TOOLS: Final = (
    Tool(
        name=FIND_TOOL,
        description=(
            "Find tools by a few words about what they do. Returns the name, description "
            "and input schema of each, best match first. Call a tool you found with "
            "folkmoot_call_tool."
        ),
        schema=obj(
            {
                "query": text("What the tool should do, in a few words."),
                "limit": integer(
                    "Maximum number of tools to return. Default 10, max 50.",
                    minimum=1,
                    maximum=MOST_FOUND,
                ),
            },
            ("query",),
        ),
        arguments=FindTool,
        handler=find_tool,
        public=True,
        finder=True,
        kind="reads",
        open_world=True,
    ),
    Tool(
        name=CALL_TOOL,
        description="Call a tool that folkmoot_find_tool returned, with arguments that match "
        "its input schema.",
        schema=obj(
            {
                "name": text("The name of the tool."),
                "arguments": anything("The arguments of the tool."),
            },
            ("name",),
        ),
        arguments=CallTool,
        handler=call_tool,
        public=True,
        finder=True,
        kind="acts",
        open_world=True,
    ),
)
