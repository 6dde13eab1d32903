"""What the hub offers about itself: finding and calling its tools, and its OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from msgspec import UNSET, Struct, UnsetType

from folkmoot.core import errors as e
from folkmoot.core.message import ProtocolMessage, Request, replace
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.operations.declare import Topic, get
from folkmoot.operations.limits import MAX_TOOLS_FOUND
from folkmoot.operations.row import Absent, describe

if TYPE_CHECKING:
    from folkmoot.operations.call import Call

FIND_TOOL: Final = "folkmoot/find_tool"
CALL_TOOL: Final = "folkmoot/call_tool"
STANDS_FOR_OTHERS: Final = Absent("It stands for other tools, where few are listed.")
finding = Topic(
    scope="tools",
    who="anyone",
    reaches_others=True,
    tool="finder",
    commands=STANDS_FOR_OTHERS,
)


class FoundTools(Struct, frozen=True):
    """Tools, best match first, and the servers that could not be looked through."""

    tools: list[dict[str, Any]]
    absent: dict[str, str] | UnsetType = UNSET


@finding.reads(FIND_TOOL, STANDS_FOR_OTHERS)
async def find_tool(
    call: Call,
    query: Annotated[str, "What the tool should do, in a few words."],
    *,
    limit: Annotated[
        int,
        describe(
            "Maximum number of tools to return. Default 10, max 50.", ge=1, le=MAX_TOOLS_FOUND
        ),
    ] = 10,
) -> FoundTools:
    """Find tools by a few words about what they do. Returns the name, description and input schema
    of each, best match first. Call a tool you found with folkmoot_call_tool.
    """
    find = call.caller.find
    return FoundTools([]) if find is None else FoundTools(**await find(query, limit))


class Whatever(Struct, frozen=True):
    """The answer of the called tool, unchanged."""


@finding.acts(CALL_TOOL, STANDS_FOR_OTHERS)
async def call_tool(
    _: Call,
    name: Annotated[str, "The name of the tool."],  # noqa: ARG001 - see below
    *,
    arguments: Annotated[dict[str, Any], "The arguments of the tool."] = {},  # noqa: ARG001, B006
) -> Whatever:
    """Call a tool that folkmoot_find_tool returned, with arguments that match its input schema."""
    # Calls of other tools are dispatched before.
    raise e.ArgumentInvalid(
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
    params = message.params if type(message) is Request and message.method == TOOLS_CALL else None
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


class Document(Struct, frozen=True):
    """An OpenAPI document."""


@Topic(scope="", who="anyone").reads(
    "folkmoot/openapi",
    get(
        "/v1/openapi.json", "describe", "Read this document", answer="The document, in OpenAPI 3.1."
    ),
    gives=Document,
    tool=Absent("Tools describe themselves when they are listed."),
    commands=Absent("It is for programs that make clients from it."),
)
async def openapi(call: Call) -> dict[str, Any]:
    """Read this document."""
    return cast("dict[str, Any]", call.services.document())
