"""The commands for the servers behind the hub: how they are, reading their settings, their pins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta, Struct

from folkmoot.audit import OPERATOR
from folkmoot.control.commands import NoArguments, convert
from folkmoot.control.wire import MAX_ANSWER, Command, Progress
from folkmoot.core.errors import BackendUnknown, CommandInvalid, SettingsError
from folkmoot.gateway.gateway import Gateway
from folkmoot.gateway.pindiff import PinDiff
from folkmoot.proxy.interceptors.scrub import poisons_of

audit_logger = logging.getLogger("folkmoot.audit")

BACKENDS = "backends"
BACKENDS_RELOAD = "backends-reload"
BACKENDS_DIFF = "backends-diff"
BACKENDS_ACCEPT = "backends-accept"

START_SECONDS = 5.0
"""How long an answer about held tools waits for servers that are still starting."""
MOST_DIFF_BYTES = MAX_ANSWER // 2
"""How much of differences one answer tells; the rest are left for the next time."""
MOST_DIFF_CHARACTERS = MAX_ANSWER // 8
"""How much of one difference is told: escaped, a character may take six bytes."""


class Fleet(Protocol):
    """The links to the servers."""

    def views(self) -> Sequence[Struct]:
        """How it is with each of them."""
        ...

    async def settled(self, seconds: float, namespace: str = "") -> list[str]:
        """Wait until one server, or every, was reached or could not be; those still starting."""
        ...


class Settings(Protocol):
    """What reads the settings of a running hub again."""

    async def reload(self) -> Struct:
        """Read and apply them; the answer tells what changed."""
        ...


class DiffArguments(Struct, forbid_unknown_fields=True):
    """Of which server; of all when it is empty."""

    namespace: Annotated[str, Meta(max_length=64)] = ""


class Accepted(Struct, forbid_unknown_fields=True):
    """A tool, and the change of it that was looked at."""

    namespace: Annotated[str, Meta(max_length=64)]
    name: Annotated[str, Meta(max_length=1024)]
    changed_hash: Annotated[str, Meta(max_length=128)]


class AcceptArguments(Struct, forbid_unknown_fields=True):
    """The tools to accept."""

    tools: Annotated[list[Accepted], Meta(max_length=1000)]


def backend_commands(
    fleet: Fleet, gateway: Gateway, settings: Settings | None = None
) -> dict[str, Command]:
    """What an operator can ask about servers; without `settings` there is nothing to reload."""

    async def list_backends(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        convert(arguments, NoArguments)
        views = [msgspec.to_builtins(view) for view in fleet.views()]
        return {"backends": [{**view, **shown(gateway, view["namespace"])} for view in views]}

    async def reload(arguments: dict[str, Any], _progress: Progress) -> Any:
        convert(arguments, NoArguments)
        if settings is None:
            raise CommandInvalid("This hub was not started from settings.")
        try:
            return msgspec.to_builtins(await settings.reload())
        except SettingsError as error:
            # Each line has its place; the command line tells them one by one.
            return {"problems": error.data.get("problems", [error.message])}

    async def diff(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        namespace = convert(arguments, DiffArguments).namespace
        known(fleet, namespace)
        starting = await fleet.settled(START_SECONDS, namespace)
        found = await gateway.pins.diff(namespace or None)
        tools = await asyncio.to_thread(told, found)
        return {"tools": tools, "count": len(found), "starting": starting}

    async def accept(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        accepted: list[str] = []
        for tool in convert(arguments, AcceptArguments).tools:
            names = await gateway.accept(tool.namespace, tool.name, changed_hash=tool.changed_hash)
            for name in names:
                told = {"by": OPERATOR, "about": name, "detail": tool.changed_hash}
                audit_logger.info("backend.accept", extra=told)
            accepted += names
        return {"accepted": accepted}

    return {
        BACKENDS: list_backends,
        BACKENDS_RELOAD: reload,
        BACKENDS_DIFF: diff,
        BACKENDS_ACCEPT: accept,
    }


def shown(gateway: Gateway, namespace: str) -> dict[str, Any]:
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


def known(fleet: Fleet, namespace: str) -> None:
    """Refuse a namespace that no server has."""
    names = [getattr(view, "namespace", "") for view in fleet.views()]
    if namespace and namespace not in names:
        raise BackendUnknown(f"No backend has the namespace {namespace}.")


def told(found: Sequence[PinDiff]) -> list[dict[str, Any]]:
    """As many differences as fit into an answer, and at least one."""
    tools: list[dict[str, Any]] = []
    size = 0
    for each in found:
        lines = list(fitting(each.lines))
        tool = {
            "namespace": each.namespace,
            "name": each.name,
            "canonical": each.canonical,
            "changed_hash": each.changed_hash,
            "new": each.new,
            "findings": list(poisons_of(each.changed)),
            "since": each.since,
            "lines": lines,
        }
        size += len(msgspec.json.encode(tool))
        if tools and size > MOST_DIFF_BYTES:
            break
        tools.append(tool)
    return tools


def fitting(lines: Sequence[str]) -> Iterator[str]:
    """As many lines as fit into an answer; what is left out is told."""
    left = MOST_DIFF_CHARACTERS
    for line in lines:
        if len(line) > left:
            yield line[:left]
            yield "… the rest is too long to be shown; look at what the server itself lists"
            return
        left -= len(line)
        yield line
