"""The page of all operations, from the table that tools, routes and commands come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.pages.markdown import document, table
from folkmoot.core.scopes import SCOPES
from folkmoot.operations import CATALOGUE, OPERATIONS, Absent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from folkmoot.core.scopes import ScopeRow
    from folkmoot.operations import Operation

INTRODUCTION = """\
An operation is something that can be asked of the hub. It has one name, whichever way it is asked,
and one right: policy judges it as `mcp.request.tools/call:` and its name, so a
[deny](capabilities.md) holds for the tool, the route and the command alike. Where an operation
cannot be reached on one of the ways, the table gives the reason. Operations with an action under
"Audit" leave a line of their own in the [audit log](../operations/people.md#the-audit-log).

[Tools](tools.md), [REST](rest.md) and [commands](commands.md) describe each of them."""

ABOUT_SCOPES = """\
A [token](../operations/security.md#tokens) has a scope: `*`, or some of these. It may do what its
account may do and its scope names. `*` is every scope but `operate`."""
EXAMPLES = {"room": "square", "server": "github"}

WHO = {
    "anyone": "anyone",
    "guest": "accounts and guests",
    "account": "accounts",
    "operator": "operators",
}
TOOLS = {"app": ", for apps", "finder": ", in search mode"}


def page() -> str:
    """The whole page."""
    heads = ["Operation", "For", "Scope", "Effect", "Tool", "REST", "Command", "Audit"]
    return document(
        "# Operations",
        INTRODUCTION,
        table(heads, map(row, OPERATIONS)),
        "## Scopes",
        ABOUT_SCOPES,
        table(["Scope", "What it is for", "For one alone"], map(scope_row, SCOPES)),
        *reasons(),
    )


def scope_row(scope: ScopeRow) -> list[str]:
    example = f"`{scope.name}:{EXAMPLES[scope.about]}`" if scope.about else ""
    return [f"`{scope.name}`", scope.description, example]


def row(operation: Operation) -> list[str]:
    scope = f"`{operation.scope}`" if operation.scope else ""
    routes = operation.routes
    ways = [
        tool_of(operation),
        told(routes if isinstance(routes, Absent) else [f"{r.method} {r.path}" for r in routes]),
        told(operation.commands),
    ]
    audit = f"`{operation.audit.action}`" if operation.audit else ""
    return [f"`{operation.name}`", WHO[operation.who], scope, operation.effect, *ways, audit]


def tool_of(operation: Operation) -> str:
    """The tool of an operation, as most clients see it named."""
    if isinstance(operation.tool, Absent):
        return told(operation.tool)
    name = CATALOGUE.names.spell(operation.name, "safe")
    return f"`{name}`{TOOLS.get(operation.tool, '')}"


def told(way: Sequence[str] | Absent) -> str:
    """What an operation is called on one of the ways in, or the number of the reason."""
    if isinstance(way, Absent):
        return f"no [{whys().index(way.why) + 1}](#what-is-absent)"
    return ", ".join(f"`{each}`" for each in way)


def whys() -> list[str]:
    """Every reason once, in the order of the table."""
    ways = (way for row in OPERATIONS for way in (row.tool, row.routes, row.commands))
    return list(dict.fromkeys(way.why for way in ways if isinstance(way, Absent)))


def reasons() -> Iterator[str]:
    """Why some cannot be reached in one way or the other."""
    yield "## What is absent"
    yield "\n".join(f"{number}. {why}" for number, why in enumerate(whys(), 1))
