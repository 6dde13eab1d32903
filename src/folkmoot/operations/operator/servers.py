"""The servers behind the hub: how they are, reading their settings again, tools that changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.operations.limits import (
    MAX_DIFF_CHARACTERS,
    MAX_DIFFS_BYTES,
    MAX_TOOLS_ACCEPTED,
    SERVERS_START_SECONDS,
)
from folkmoot.operations.records import remember_decision
from folkmoot.operations.row import (
    Arguments,
    AuditSpec,
    Nothing,
    Route,
    describe,
    operated,
    view_of,
)

if TYPE_CHECKING:
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.history import ServerHistory
    from folkmoot.gateway.pin_comparison import PinDiff
    from folkmoot.gateway.trial import TestReport
    from folkmoot.operations.call import Call
    from folkmoot.settings import BackendSpec, Loaded


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


class ListChangedTools(Arguments, frozen=True, kw_only=True):
    """Of which server."""

    namespace: Annotated[
        str, describe("Only those of one server, by its namespace.", max_length=64)
    ] = ""


class AcceptedTool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool, and the change of it that was looked at."""

    namespace: Annotated[str, describe("The namespace of its server.", max_length=64)]
    name: Annotated[str, describe("Its name there.", max_length=1024)]
    changed_hash: Annotated[str, describe("The hash of the change.", max_length=128)]


class Accept(Arguments, frozen=True, kw_only=True):
    """The tools to accept."""

    tools: Annotated[
        list[AcceptedTool], describe("Which, as the list has them.", max_length=MAX_TOOLS_ACCEPTED)
    ]


class Servers(Struct, frozen=True):
    """Every server: its state, what it offers, and how it is used."""

    backends: list[dict[str, Any]]
    editable: bool = False
    """Whether servers can be added and removed over the network."""


class Reloaded(Struct, frozen=True):
    """What reading the settings again came to; servers are told by their namespaces."""

    file: str | None
    backends: int
    added: list[str]
    removed: list[str]
    changed: list[str]
    rights: bool
    """Whether groups or grants changed."""
    restart: list[str]
    """Other settings that changed, which count from the next start on."""
    notes: list[str]


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


class AcceptedTools(Struct, frozen=True):
    """The names of tools that are shown again."""

    accepted: list[str]


async def servers(call: Call[Nothing]) -> Servers:
    views = [msgspec.to_builtins(view) for view in call.services.fleet.views()]
    gateway = call.services.gateway
    following = call.services.reloading
    return Servers(
        [{**view, **catalogue_counts(gateway, view["namespace"])} for view in views],
        editable=following is not None and following.loaded.settings.gateway.edit_from_web,
    )


async def reload(call: Call[Nothing]) -> Reloaded:
    """Read the settings again; wrong ones change nothing."""
    assert call.services.reloading is not None  # noqa: S101 - see `needs`
    return msgspec.convert(msgspec.to_builtins(await call.services.reloading.reload()), Reloaded)


async def pins(call: Call[ListChangedTools]) -> ChangedTools:
    """The tools that are held back."""
    fleet, namespace = call.services.fleet, call.arguments.namespace
    check_known(fleet, namespace)
    starting = await fleet.settled(SERVERS_START_SECONDS, namespace)
    found = await call.services.gateway.pins.diff(namespace or None)
    return ChangedTools(await asyncio.to_thread(shown_differences, found), len(found), starting)


async def accept(call: Call[Accept]) -> AcceptedTools:
    """List tools again, exactly as they were looked at."""
    accepted: list[str] = []
    for tool in call.arguments.tools:
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
    names = [getattr(view, "namespace", "") for view in fleet.views()]
    if namespace and namespace not in names:
        raise e.BackendUnknown(f"No backend has the namespace {namespace}.")


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


SERVERS = (
    operated(
        name="folkmoot/servers",
        description="List the servers behind the hub: their state, what they offer, and how they "
        "are used.",
        handler=servers,
        needs=("fleet",),
        routes=(Route("GET", "/v1/servers", "listServers", "List the servers"),),
        commands=("backends list",),
    ),
    operated(
        name="folkmoot/reload",
        description="Read the settings again and apply them. Invalid settings change nothing.",
        handler=reload,
        errors=(e.SettingsError,),
        needs=("reloading",),
        audit=AuditSpec("settings.reloaded"),
        routes=(Route("POST", "/v1/settings/reload", "reloadSettings", "Reload the settings"),),
        commands=("backends reload",),
    ),
    operated(
        name="folkmoot/pins",
        description="List the tools that changed or were added, and are neither listed nor "
        "callable until they are accepted.",
        handler=pins,
        errors=(e.BackendUnknown,),
        needs=("fleet",),
        routes=(Route("GET", "/v1/pins", "listPins", "List tools that are held back"),),
        commands=("backends diff",),
    ),
    operated(
        name="folkmoot/accept",
        description="Accept tools that changed or were added, exactly as they were looked at; a "
        "later change is held back again.",
        handler=accept,
        errors=(e.BackendUnknown, e.CommandInvalid),
        needs=("fleet",),
        audit=AuditSpec("backend.accept", by_service=True),
        routes=(
            Route(
                "POST",
                "/v1/pins/accept",
                "acceptTools",
                "Accept tools that changed",
                example={"tools": [{"namespace": "files", "name": "read", "changed_hash": "…"}]},
            ),
        ),
        commands=("backends accept",),
    ),
)
