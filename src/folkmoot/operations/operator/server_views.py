"""One server behind the hub, for operators: its tools, its calls over time, its users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.decisions import Risk
from folkmoot.gateway.access import ServerAccess
from folkmoot.gateway.history import MINUTE, ServerHistory
from folkmoot.gateway.limits import HISTORY_MINUTES
from folkmoot.operations.limits import MAX_TOOLS_PAGE, MAX_TOOLS_PAGE_BYTES
from folkmoot.operations.operator.servers import catalogue_counts, check_known
from folkmoot.operations.risks import risk_of
from folkmoot.operations.row import (
    Absent,
    After,
    Arguments,
    Route,
    describe,
    operated,
)

if TYPE_CHECKING:
    from folkmoot.gateway.model import ToolEntry
    from folkmoot.gateway.part import BackendOffer
    from folkmoot.operations.call import Call

IN_THE_CONSOLE: Final = Absent("The console shows it; 'folkmoot backends list' shows the rest.")

Namespace = Annotated[str, describe("The server, by its namespace.", max_length=64)]


class ServerTool(Struct, frozen=True, kw_only=True):
    """A tool of a server, with its name on this hub."""

    name: str
    """The canonical name."""
    own: str
    """The server's own name for it."""
    title: str
    description: str
    schema: dict[str, Any]
    annotations: dict[str, Any]
    risk: Risk
    """What it can do, by its annotations."""
    held: str
    """Why it is held back: `changed` or `new`; empty while it is listed."""
    findings: list[str]
    """What its description has that it should not."""
    may_call: bool


class ShowServer(Arguments, frozen=True, kw_only=True):
    """Which server, and after which of its tools."""

    namespace: Namespace
    after: After = ""


class ShownServer(Struct, frozen=True, kw_only=True):
    """A server, and a page of its tools by name."""

    server: dict[str, Any]
    """As the list of servers has it."""
    instructions: str
    """What it says of its use, as far as that was accepted."""
    everyone: bool
    """Whether every account may use it, by the settings."""
    trusted: bool
    """Whether changed and new tools are listed without review."""
    tools: list[ServerTool]
    next: str | None
    """The tool after which the next page begins, if there is one."""


class AskHistory(Arguments, frozen=True, kw_only=True):
    """Of which server."""

    namespace: Annotated[
        str, describe("Only that of one server, by its namespace.", max_length=64)
    ] = ""


class Histories(Struct, frozen=True, kw_only=True):
    """What came of calls, minute by minute; the minutes since a server was started, at most."""

    until: int
    """The end of the last minute, in seconds since 1970; that minute has not passed yet."""
    seconds: int
    """How long each is."""
    count: int
    """How many there are."""
    servers: list[ServerHistory]


class AskAccess(Arguments, frozen=True, kw_only=True):
    """To which server or tool, and after which handle."""

    namespace: Namespace
    tool: Annotated[str, describe("One tool of it, by its canonical name.", max_length=1024)] = ""
    after: After = ""


async def show_server(call: Call[ShowServer]) -> ShownServer:
    """One server, and a page of its tools."""
    services, namespace = call.services, call.arguments.namespace
    check_known(services.fleet, namespace)
    view = next(each for each in services.fleet.views() if namespace_of(each) == namespace)
    gateway = services.gateway
    spec, part = gateway.backends[namespace].spec, gateway.catalogue.parts.get(namespace)
    rights = services.rights.of_principal(call.caller.principal)
    tools, following = ([], None) if part is None else page_of(part, call.arguments.after)
    return ShownServer(
        server={**msgspec.to_builtins(view), **catalogue_counts(gateway, namespace)},
        instructions="" if part is None else part.instructions,
        everyone=spec.everyone,
        trusted=spec.trusted,
        tools=[
            msgspec.structs.replace(tool, may_call=not tool.held and rights.allows(kind))
            for tool, kind in tools
        ],
        next=following,
    )


def page_of(
    part: BackendOffer, after: str, among: Iterable[str] = ()
) -> tuple[list[Any], str | None]:
    """Tools of a server with their kinds, as many as fit; and the last, where there are more."""
    from folkmoot.gateway.part import kind_of

    names = sorted(name for name in among or part.tools if name > after)
    findings = part.findings.get("tools", {})
    found: list[Any] = []
    size = 0
    for name in names[:MAX_TOOLS_PAGE]:
        tool = shown_tool(part.tools[name], findings.get(name, ()))
        size += len(msgspec.json.encode(tool))
        if found and size > MAX_TOOLS_PAGE_BYTES:
            break
        found.append((tool, kind_of("tools", name)))
    return found, found[-1][0].name if len(found) < len(names) else None


def shown_tool(entry: ToolEntry, findings: Iterable[str]) -> ServerTool:
    """A tool as it is shown."""
    definition = entry.definition
    return ServerTool(
        name=entry.canonical,
        own=entry.own,
        title=str(definition.get("title", "")),
        description=str(definition.get("description", "")),
        schema=entry.schema,
        annotations=dict(definition.get("annotations") or {}),
        risk=risk_of(definition.get("annotations")),
        held=entry.quarantined,
        findings=list(findings),
        may_call=False,
    )


def namespace_of(view: Struct) -> str:
    """Which server a view is of."""
    return str(getattr(view, "namespace", ""))


async def history(call: Call[AskHistory]) -> Histories:
    """What came of the calls of every server, or of one."""
    fleet, namespace = call.services.fleet, call.arguments.namespace
    check_known(fleet, namespace)
    found = [each for each in fleet.histories() if namespace in ("", each.namespace)]
    # The minutes are counted from when the machine started, and told by the clock on the wall.
    clock = call.services.clock
    left = MINUTE - clock.monotonic() % MINUTE
    return Histories(
        until=round(clock.now() + left), seconds=MINUTE, count=HISTORY_MINUTES, servers=found
    )


async def server_access(call: Call[AskAccess]) -> ServerAccess:
    """Who may use a server or a tool of it, and why."""
    from folkmoot.gateway.part import kind_of

    given, services = call.arguments, call.services
    check_known(services.fleet, given.namespace)
    part = services.gateway.catalogue.parts.get(given.namespace)
    kind = None
    if given.tool:
        if part is None or given.tool not in part.tools:
            raise e.UnknownTool(f"{given.namespace} has no such tool.")
        kind = kind_of("tools", given.tool)
    rows = () if part is None else part.rows["tools"]
    return await services.grant_views.access(given.namespace, rows, kind, given.after)


SERVER_VIEWS = (
    operated(
        name="folkmoot/server",
        description="Show one server behind the hub and its tools, also those that are held back.",
        handler=show_server,
        errors=(e.BackendUnknown,),
        needs=("fleet",),
        routes=(Route("GET", "/v1/servers/{namespace}", "getServer", "Show a server"),),
        commands=IN_THE_CONSOLE,
    ),
    operated(
        name="folkmoot/server_history",
        description="Show how many calls servers had in each minute of the latest hour, how many "
        "failed, and how long answers took.",
        handler=history,
        errors=(e.BackendUnknown,),
        needs=("fleet",),
        routes=(
            Route("GET", "/v1/server-history", "getServerHistory", "Show the calls of servers"),
        ),
        commands=IN_THE_CONSOLE,
    ),
    operated(
        name="folkmoot/server_access",
        description="Show who may use a server or one of its tools, and why: by which grant, "
        "group or setting.",
        handler=server_access,
        errors=(e.BackendUnknown, e.UnknownTool),
        needs=("fleet", "grant_views"),
        routes=(
            Route(
                "GET",
                "/v1/servers/{namespace}/access",
                "getServerAccess",
                "Show who may use a server",
            ),
        ),
        commands=Absent("'folkmoot rights HANDLE' shows one person's; the console shows both."),
    ),
)
