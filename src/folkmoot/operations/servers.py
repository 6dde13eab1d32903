"""The servers behind the hub for the people who use them: listing tools and calling them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject
from folkmoot.gateway.access import AccessReason, access
from folkmoot.gateway.configured_rights import may_use
from folkmoot.mcp.wire import PROGRESS
from folkmoot.operations.declare import Topic, get, post
from folkmoot.operations.operator.servers import Namespace, ServerTool, page_of
from folkmoot.operations.row import Absent, After

if TYPE_CHECKING:
    from folkmoot.core.message import Notification, Response
    from folkmoot.core.policy import Principal
    from folkmoot.gateway.requests import CallExtras
    from folkmoot.operations.call import Call

PATH: Final = "/v1/me/servers"
using = Topic(
    scope="tools",
    needs=("gateway", "rights"),
    tool=Absent("MCP lists the tools that one may call."),
    commands=Absent("'folkmoot call' lists tools and calls them."),
)


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


@using.reads("folkmoot/my_servers", get(PATH, "listMyServers", "List the servers that you may use"))
async def my_servers(call: Call) -> MyServers:
    """List the servers behind the hub that you may use, and why you may."""
    found = [mine(call, namespace) for namespace in sorted(call.services.gateway.backends)]
    return MyServers(servers=[each for each in found if each is not None])


class MyTools(Struct, frozen=True, kw_only=True):
    """A server the caller may use, with a page of the tools they may call."""

    server: MyServer
    tools: list[ServerTool]
    next: str | None


@using.reads(
    "folkmoot/my_tools",
    get(PATH + "/{namespace}", "listMyTools", "List the tools of a server that you may call"),
    about="namespace",
    others_words=("tools",),
    errors=(e.BackendUnknown,),
)
async def my_tools(call: Call, namespace: Namespace, *, after: After = "") -> MyTools:
    """List the tools of a server that you may call, with their schemas."""
    server = mine(call, namespace)
    if server is None:
        # Whoever may not use a server is not told whether there is one.
        raise e.BackendUnknown("There is no such server, or you may not use it.")
    part = call.services.gateway.catalogue.parts.get(namespace)
    names = allowed(call, namespace)
    if part is None or not names:
        return MyTools(server=server, tools=[], next=None)
    tools, following = page_of(part, after, names)
    callable_ = [replace(tool, may_call=True) for tool, _ in tools]
    return MyTools(server=server, tools=callable_, next=following)


def mine(call: Call, namespace: str) -> MyServer | None:
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


def allowed(call: Call, namespace: str) -> list[str]:
    """The tools of a server that the caller may call, by their names."""
    part = call.services.gateway.catalogue.parts.get(namespace)
    if part is None:
        return []
    rights = call.services.rights.of_principal(call.caller.principal)
    return [row.key for row in part.rows["tools"] if rights.allows(row.kind)]


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


@using.acts(
    "folkmoot/try_tool",
    post(
        "/v1/tools/call",
        "callTool",
        "Call a tool of a server",
        example={"name": "files:read", "arguments": {"path": "notes.txt"}},
    ),
    reaches_others=True,
    others_words=("result", "error"),
    progress=ToolProgress,
    needs=("gateway", "rights", "call_server"),
    tool=Absent("A model calls the tool itself."),
)
async def try_tool(
    call: Call,
    name: Annotated[str, "The tool, by its canonical name, such as files:read."],
    *,
    arguments: Annotated[dict[str, Any], "The arguments of the tool."] = {},  # noqa: B006 - it is copied
    era: Annotated[
        Literal["stateless", "handshake"], "The era of MCP that the call is made in."
    ] = "stateless",
) -> TriedTool:
    """Call a tool of a server behind the hub. You need the right to call it."""
    from folkmoot.gateway.requests import CallExtras

    services = call.services
    entry = services.gateway.catalogue.tool(name)
    began = services.clock.monotonic()
    answer = await services.call_server(
        call.caller.principal,
        name if entry is None else entry.canonical,
        arguments,
        era,
        CallExtras(tell=telling(call), progress=True, credential_id=call.caller.credential_id),
    )
    error = answer.error if isinstance(answer.error, ErrorObject) else None
    return TriedTool(
        seconds=round(services.clock.monotonic() - began, 3),
        result=None if error else answer.result,
        error=None if error is None else {"code": error.code, "message": error.message},
    )


def telling(call: Call) -> Callable[[Notification], None]:
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
