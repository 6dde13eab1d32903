"""The servers behind the hub for the people who use them: listing tools and calling them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject
from folkmoot.gateway.access import AccessReason, access
from folkmoot.gateway.configured_rights import may_use
from folkmoot.mcp.wire import PROGRESS
from folkmoot.operations.operator.server_views import Namespace, ServerTool, page_of
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Nothing,
    Operation,
    Route,
    describe,
)

if TYPE_CHECKING:
    from folkmoot.core.message import Notification, Response
    from folkmoot.core.policy import Principal
    from folkmoot.gateway.requests import CallExtras
    from folkmoot.operations.call import Call

LISTED: Final = Absent("MCP lists the tools that one may call.")
NO_COMMAND: Final = Absent("'folkmoot call' lists tools and calls them.")


class CallServer(Protocol):
    """Has a tool of a server called, with everything on the way there."""

    def __call__(
        self, principal: Principal, name: str, arguments: dict[str, Any], era: str,
        extras: CallExtras,
    ) -> Awaitable[Response]:  # fmt: skip
        """The answer, or the error that keeps it from being called."""


class MyServer(Struct, frozen=True, kw_only=True):
    """A server the caller may use."""

    namespace: str
    state: str
    """`up`, or why not: `starting`, `sign_in`, `down`, `broken`, `off`."""
    why: str
    """Why it is away; empty while it is there."""
    tools: int
    """How many of its tools one may call."""
    reasons: list[AccessReason]
    """Why one may use it."""


class MyServers(Struct, frozen=True, kw_only=True):
    """The servers the caller may use, by namespace."""

    servers: list[MyServer]


class ShowMine(Arguments, frozen=True, kw_only=True):
    """Which server, and after which of its tools."""

    namespace: Namespace
    after: Annotated[str, describe("Continue where an earlier answer ended: its `next`.")] = ""


class MyTools(Struct, frozen=True, kw_only=True):
    """A server the caller may use, with a page of the tools they may call."""

    server: MyServer
    tools: list[ServerTool]
    next: str | None


class TryTool(Arguments, frozen=True, kw_only=True):
    """The tool and its arguments."""

    name: Annotated[str, describe("The tool, by its canonical name, such as files:read.")]
    arguments: Annotated[dict[str, Any], describe("The arguments of the tool.")] = field(
        default_factory=dict
    )
    era: Annotated[
        Literal["stateless", "handshake"], describe("The era of MCP that the call is made in.")
    ] = "stateless"


class TriedTool(Struct, frozen=True, kw_only=True):
    """The answer of a tool."""

    seconds: float
    result: dict[str, Any] | None
    """As MCP has it: `content`, `isError`."""
    error: dict[str, Any] | None
    """What the server answered instead: `code` and `message`."""


class ToolProgress(Struct, frozen=True, kw_only=True):
    """The progress a tool reports."""

    progress: float | None
    total: float | None
    message: str


async def my_servers(call: Call[Nothing]) -> MyServers:
    """The servers that the caller may use."""
    found = [mine(call, namespace) for namespace in sorted(call.services.gateway.backends)]
    return MyServers(servers=[each for each in found if each is not None])


async def my_tools(call: Call[ShowMine]) -> MyTools:
    """One server, and the tools the caller may call there."""
    namespace = call.arguments.namespace
    server = mine(call, namespace)
    if server is None:
        # Whoever may not use a server is not told whether there is one.
        raise e.BackendUnknown("There is no such server, or you may not use it.")
    part = call.services.gateway.catalogue.parts.get(namespace)
    names = allowed(call, namespace)
    if part is None or not names:
        return MyTools(server=server, tools=[], next=None)
    tools, following = page_of(part, call.arguments.after, names)
    return MyTools(server=server, tools=[callable_(tool) for tool, _ in tools], next=following)


def callable_(tool: ServerTool) -> ServerTool:
    """The tool, marked as one the caller may call."""
    from msgspec.structs import replace

    return replace(tool, may_call=True)


def mine(call: Call[Any], namespace: str) -> MyServer | None:
    """A server as the caller sees it; None if they may use none of its tools."""
    gateway, rights = call.services.gateway, call.services.rights
    backend = gateway.backends.get(namespace)
    if backend is None or not may_use(rights.of_principal(call.caller.principal), namespace):
        return None
    catalogue = gateway.catalogue
    part = catalogue.parts.get(namespace)
    rows = () if part is None else part.rows["tools"]
    return MyServer(
        namespace=namespace,
        state=backend.state.value,
        why=catalogue.absent.get(namespace, ""),
        tools=len(allowed(call, namespace)),
        reasons=access(rights.held(call.account), namespace, rows).reasons,
    )


def allowed(call: Call[Any], namespace: str) -> list[str]:
    """The tools of a server that the caller may call, by their names."""
    part = call.services.gateway.catalogue.parts.get(namespace)
    if part is None:
        return []
    rights = call.services.rights.of_principal(call.caller.principal)
    return [row.key for row in part.rows["tools"] if rights.allows(row.kind)]


async def try_tool(call: Call[TryTool]) -> TriedTool:
    """Call a tool of a server, as a client of an era would."""
    from folkmoot.gateway.requests import CallExtras

    given, services = call.arguments, call.services
    entry = services.gateway.catalogue.tool(given.name)
    name = given.name if entry is None else entry.canonical
    began = services.clock.monotonic()
    answer = await services.call_server(
        call.caller.principal,
        name,
        given.arguments,
        given.era,
        CallExtras(tell=telling(call), progress=True),
    )
    error = answer.error if isinstance(answer.error, ErrorObject) else None
    return TriedTool(
        seconds=round(services.clock.monotonic() - began, 3),
        result=None if error else answer.result,
        error=None if error is None else {"code": error.code, "message": error.message},
    )


def telling(call: Call[Any]) -> Callable[[Notification], None]:
    """Passes on what a server says of its progress, and nothing else."""

    def tell(notification: Notification) -> None:
        params = notification.params
        if notification.method == PROGRESS and isinstance(params, dict):
            call.progress(progress_of(params))

    return tell


def progress_of(params: dict[str, Any]) -> ToolProgress:
    """What a progress notification says."""
    message = params.get("message")
    return ToolProgress(
        progress=number(params.get("progress")),
        total=number(params.get("total")),
        message=message[:1_000] if isinstance(message, str) else "",
    )


def number(value: Any) -> float | None:
    """The value as a number; None for anything else."""
    return value if type(value) in (int, float) else None


USING: Final = (
    Operation(
        name="folkmoot/my_servers",
        description="List the servers behind the hub that you may use, and why you may.",
        handler=my_servers,
        scope="tools",
        needs=("gateway", "rights"),
        tool=LISTED,
        routes=(
            Route("GET", "/v1/me/servers", "listMyServers", "List the servers that you may use"),
        ),
        commands=NO_COMMAND,
    ),
    Operation(
        name="folkmoot/my_tools",
        description="List the tools of a server that you may call, with their schemas.",
        handler=my_tools,
        scope="tools",
        about="namespace",
        others_words=("tools",),
        errors=(e.BackendUnknown,),
        needs=("gateway", "rights"),
        tool=LISTED,
        routes=(
            Route(
                "GET",
                "/v1/me/servers/{namespace}",
                "listMyTools",
                "List the tools of a server that you may call",
            ),
        ),
        commands=NO_COMMAND,
    ),
    Operation(
        name="folkmoot/try_tool",
        description="Call a tool of a server behind the hub. You need the right to call it.",
        handler=try_tool,
        scope="tools",
        effect="acts",
        reaches_others=True,
        others_words=("result", "error"),
        progress=ToolProgress,
        needs=("gateway", "rights", "call_server"),
        tool=Absent("A model calls the tool itself."),
        routes=(
            Route(
                "POST",
                "/v1/tools/call",
                "callTool",
                "Call a tool of a server",
                example={"name": "files:read", "arguments": {"path": "notes.txt"}},
            ),
        ),
        commands=NO_COMMAND,
    ),
)
