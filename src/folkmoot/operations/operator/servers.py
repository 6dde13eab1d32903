"""The servers behind the hub, for operators: how they are, tools that changed, calls and users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.decisions import Risk
from folkmoot.gateway.access import ServerAccess
from folkmoot.gateway.history import MINUTE, ServerHistory
from folkmoot.gateway.limits import HISTORY_MINUTES
from folkmoot.operations.declare import OPERATED, Topic, get, post
from folkmoot.operations.limits import (
    MAX_DIFF_CHARACTERS,
    MAX_DIFFS_BYTES,
    MAX_TOOLS_ACCEPTED,
    MAX_TOOLS_PAGE,
    MAX_TOOLS_PAGE_BYTES,
    SERVERS_START_SECONDS,
)
from folkmoot.operations.records import remember_decision
from folkmoot.operations.risks import risk_of
from folkmoot.operations.row import Absent, After, AuditSpec, describe, view_of

if TYPE_CHECKING:
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import ToolEntry
    from folkmoot.gateway.part import BackendOffer
    from folkmoot.gateway.pin_comparison import PinDiff
    from folkmoot.gateway.trial import TestReport
    from folkmoot.operations.call import Call
    from folkmoot.settings import BackendSpec, Loaded

PATH: Final = "/v1/servers/{namespace}"
IN_THE_CONSOLE: Final = Absent("The console shows it; 'folkmoot backends list' shows the rest.")

Namespace = Annotated[str, describe("The server, by its namespace.", max_length=64)]
operator = Topic(scope="operate", who="operator", tool=OPERATED, needs=("fleet", "gateway"))


class ServerLinks(Protocol):
    """The links to the servers."""

    def views(self) -> Sequence[Struct]:
        """The state of each server."""

    async def settled(self, seconds: float, namespace: str = "") -> list[str]:
        """Wait until one server, or every, was reached or could not be; those still starting."""

    def histories(self) -> list[ServerHistory]:
        """The outcomes of each server's calls, minute by minute."""

    async def restart(self, namespace: str) -> None:
        """Reach one anew."""

    async def test(self, spec: BackendSpec, progress: Callable[[str], None]) -> TestReport:
        """Connect once to a server, configured or not."""


class Reloading(Protocol):
    """What reads the settings of a running hub again."""

    async def reload(self) -> Struct:
        """Read and apply them; the answer tells what changed."""

    @property
    def loaded(self) -> Loaded:
        """The settings as last read."""

    async def edit(self, change: Callable[[str], str], *, pretend: bool = False) -> Struct | None:
        """Change the settings file and apply it; what cannot be applied is taken back."""


class Servers(Struct, frozen=True):
    """Every server: its state, what it offers, and how it is used."""

    backends: list[dict[str, Any]]
    editable: bool = False
    """Whether servers can be added and removed over the network."""


@operator.reads(
    "folkmoot/servers",
    get("/v1/servers", "listServers", "List the servers"),
    commands=("backends list",),
)
async def servers(call: Call) -> Servers:
    """List the servers behind the hub: their state, what they offer, and how they are used."""
    views = [msgspec.to_builtins(view) for view in call.services.fleet.views()]
    gateway = call.services.gateway
    following = call.services.reloading
    return Servers(
        [{**view, **catalogue_counts(gateway, view["namespace"])} for view in views],
        editable=following is not None and following.loaded.settings.gateway.edit_from_web,
    )


class Reloaded(Struct, frozen=True):
    """What reading the settings again came to; servers are told by their namespaces."""

    file: str | None
    backends: int
    added: list[str]
    removed: list[str]
    changed: list[str]
    rights: bool
    """Whether groups, grants or rules of asks changed."""
    restart: list[str]
    """Other settings that changed, which count from the next start on."""
    notes: list[str]


@operator.changes(
    "folkmoot/reload",
    post("/v1/settings/reload", "reloadSettings", "Reload the settings"),
    errors=(e.SettingsError,),
    needs=("reloading",),
    audit=AuditSpec("settings.reloaded"),
    commands=("backends reload",),
)
async def reload(call: Call) -> Reloaded:
    """Read the settings again and apply them. Invalid settings change nothing."""
    assert call.services.reloading is not None  # noqa: S101 - see `needs`
    return msgspec.convert(await call.services.reloading.reload(), Reloaded, from_attributes=True)


class ChangedTool(Struct, frozen=True, kw_only=True):
    """A tool that has changed or is new, and waits to be accepted."""

    namespace: str
    name: str
    canonical: str
    changed_hash: str
    new: bool
    findings: list[str]
    """What its description has that it should not."""
    since: int
    lines: list[str]
    """The difference as a person reads it."""
    pinned: dict[str, Any] | None = None
    """What was accepted; null for a new tool, and where it is too long."""
    changed: dict[str, Any] | None = None
    """What it is now; null where that is too long."""


class ChangedTools(Struct, frozen=True):
    """A page of changed tools, their number, and the servers not reached yet."""

    tools: list[ChangedTool]
    count: int
    starting: list[str]


@operator.reads(
    "folkmoot/pins",
    get("/v1/pins", "listPins", "List tools that are held back"),
    errors=(e.BackendUnknown,),
    commands=("backends diff",),
)
async def pins(
    call: Call,
    *,
    namespace: Annotated[
        str, describe("Only those of one server, by its namespace.", max_length=64)
    ] = "",
) -> ChangedTools:
    """List the tools that changed or were added, and are neither listed nor callable until they
    are accepted.
    """
    fleet = call.services.fleet
    check_known(fleet, namespace)
    starting = await fleet.settled(SERVERS_START_SECONDS, namespace)
    found = await call.services.gateway.pins.diff(namespace or None)
    return ChangedTools(await asyncio.to_thread(shown_differences, found), len(found), starting)


class AcceptedTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool, and the change of it that was looked at."""

    namespace: Annotated[str, describe("The namespace of its server.", max_length=64)]
    name: Annotated[str, describe("Its name there.", max_length=1024)]
    changed_hash: Annotated[str, describe("The hash of the change.", max_length=128)]


class AcceptedTools(Struct, frozen=True):
    """The names of tools that are shown again."""

    accepted: list[str]


@operator.changes(
    "folkmoot/accept",
    post(
        "/v1/pins/accept",
        "acceptTools",
        "Accept tools that changed",
        example={"tools": [{"namespace": "files", "name": "read", "changed_hash": "…"}]},
    ),
    errors=(e.BackendUnknown, e.CommandInvalid),
    audit=AuditSpec("backend.accept", by_service=True),
    commands=("backends accept",),
)
async def accept(
    call: Call,
    tools: Annotated[
        list[AcceptedTool], describe("Which, as the list has them.", max_length=MAX_TOOLS_ACCEPTED)
    ],
) -> AcceptedTools:
    """Accept tools that changed or were added, exactly as they were looked at; a later change is
    held back again.
    """
    accepted: list[str] = []
    for tool in tools:
        done = await call.services.gateway.accept(
            tool.namespace,
            tool.name,
            changed_hash=tool.changed_hash,
            by=call.caller.account,
        )
        for name in done:
            await remember_decision(call, "tool", "accepted", name, name, place=tool.namespace)
        accepted += done
    return AcceptedTools(accepted)


def catalogue_counts(gateway: Gateway, namespace: str) -> dict[str, Any]:
    """How much of a server is shown here, and what cannot be; its lists may have more."""
    part = gateway.catalogue.parts.get(namespace)
    if part is None:
        return {}
    return {
        **{what: len(rows) for what, rows in part.rows.items()},
        "faults": list(part.faults),
        "held": list(part.held),
        "findings": part.findings,
    }


def check_known(fleet: ServerLinks, namespace: str) -> None:
    """Refuse a namespace that no server has."""
    if namespace and namespace not in map(namespace_of, fleet.views()):
        raise e.BackendUnknown(f"No backend has the namespace {namespace}.")


def namespace_of(view: Struct) -> str:
    """Which server a view is of."""
    return str(getattr(view, "namespace", ""))


def shown_differences(found: Sequence[PinDiff]) -> list[ChangedTool]:
    """As many differences as fit into an answer, and at least one."""
    from folkmoot.proxy.interceptors.descriptions import poisons_of

    tools: list[ChangedTool] = []
    size = 0
    for each in found:
        tool = view_of(
            ChangedTool,
            each,
            findings=list(poisons_of(each.changed)),
            lines=list(fitting(each.lines)),
            pinned=whole(each.pinned) or None,
            changed=whole(each.changed),
        )
        size += len(msgspec.json.encode(tool))
        if tools and size > MAX_DIFFS_BYTES:
            break
        tools.append(tool)
    return tools


def whole(definition: dict[str, Any]) -> dict[str, Any] | None:
    """A definition that fits into an answer."""
    return definition if len(msgspec.json.encode(definition)) <= MAX_DIFF_CHARACTERS else None


def fitting(lines: Sequence[str]) -> Iterator[str]:
    """As many lines as fit into an answer; what is left out is told."""
    left = MAX_DIFF_CHARACTERS
    for line in lines:
        if len(line) > left:
            yield line[:left]
            yield "… the rest is too long to be shown; look at what the server itself lists"
            return
        left -= len(line)
        yield line


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


@operator.reads(
    "folkmoot/server",
    get(PATH, "getServer", "Show a server"),
    errors=(e.BackendUnknown,),
    commands=IN_THE_CONSOLE,
)
async def show_server(call: Call, namespace: Namespace, *, after: After = "") -> ShownServer:
    """Show one server behind the hub and its tools, also those that are held back."""
    services = call.services
    check_known(services.fleet, namespace)
    view = next(each for each in services.fleet.views() if namespace_of(each) == namespace)
    gateway = services.gateway
    spec, part = gateway.backends[namespace].spec, gateway.catalogue.parts.get(namespace)
    rights = services.rights.of_principal(call.caller.principal)
    tools, following = ([], None) if part is None else page_of(part, after)
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


class Histories(Struct, frozen=True, kw_only=True):
    """What came of calls, minute by minute; the minutes since a server was started, at most."""

    until: int
    """The end of the last minute, in seconds since 1970; that minute has not passed yet."""
    seconds: int
    """How long each is."""
    count: int
    """How many there are."""
    servers: list[ServerHistory]


@operator.reads(
    "folkmoot/server_history",
    get("/v1/server-history", "getServerHistory", "Show the calls of servers"),
    errors=(e.BackendUnknown,),
    commands=IN_THE_CONSOLE,
)
async def history(
    call: Call,
    *,
    namespace: Annotated[
        str, describe("Only that of one server, by its namespace.", max_length=64)
    ] = "",
) -> Histories:
    """Show how many calls servers had in each minute of the latest hour, how many failed, and how
    long answers took.
    """
    fleet = call.services.fleet
    check_known(fleet, namespace)
    found = [each for each in fleet.histories() if namespace in ("", each.namespace)]
    # The minutes are counted from when the machine started, and told by the clock on the wall.
    clock = call.services.clock
    left = MINUTE - clock.monotonic() % MINUTE
    return Histories(
        until=round(clock.now() + left), seconds=MINUTE, count=HISTORY_MINUTES, servers=found
    )


@operator.reads(
    "folkmoot/server_access",
    get(PATH + "/access", "getServerAccess", "Show who may use a server"),
    errors=(e.BackendUnknown, e.UnknownTool),
    needs=("fleet", "grant_views"),
    commands=Absent("'folkmoot rights HANDLE' shows one person's; the console shows both."),
)
async def server_access(
    call: Call,
    namespace: Namespace,
    *,
    tool: Annotated[str, describe("One tool of it, by its canonical name.", max_length=1024)] = "",
    after: After = "",
) -> ServerAccess:
    """Show who may use a server or one of its tools, and why: by which grant, group or setting."""
    from folkmoot.gateway.part import kind_of

    services = call.services
    check_known(services.fleet, namespace)
    part = services.gateway.catalogue.parts.get(namespace)
    kind = None
    if tool:
        if part is None or tool not in part.tools:
            raise e.UnknownTool(f"{namespace} has no such tool.")
        kind = kind_of("tools", tool)
    rows = () if part is None else part.rows["tools"]
    return await services.grant_views.access(namespace, rows, kind, after)
