"""All operations, in the order their tools are listed, and how those are found and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.scopes import ROOM, Need
from folkmoot.names import WireNames
from folkmoot.names.safe_names import NAME_KEY, without_combinators
from folkmoot.operations import (
    accounts,
    activity,
    apps,
    asking,
    asks,
    connections,
    events,
    finder,
    inbox_app,
    invites,
    mail,
    passkeys,
    people,
    registration,
    servers,
    sessions,
    tapes,
    threads,
    tokens,
)
from folkmoot.operations.declare import rows_of
from folkmoot.operations.operator import (
    data,
    grants,
    groups,
    held,
    hub,
    server_edits,
    settings_edits,
)
from folkmoot.operations.operator import people as operated_people
from folkmoot.operations.operator import servers as operated_servers
from folkmoot.operations.rooms import (
    calls,
    invitations,
    membership,
    messages,
    proposals,
    rights,
    settings,
)
from folkmoot.operations.row import Absent
from folkmoot.operations.scopes import needs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from folkmoot.names import NameStyle
    from folkmoot.operations.row import Operation


OPERATOR: Final = tuple(
    rows_of(
        hub,
        operated_people,
        grants,
        groups,
        operated_servers,
        server_edits,
        settings_edits,
        held,
        data,
    )
)
"""What operators are asked for on their socket."""
OPERATIONS: Final = (
    *rows_of(registration, accounts, mail, threads, people, invites, inbox_app),
    *rows_of(membership, messages, calls, proposals, invitations, settings, rights),
    *rows_of(asks, asking, tokens, activity, sessions, passkeys, apps, finder, events),
    *rows_of(servers, connections, tapes),
    *OPERATOR,
)


class ToolCatalogue:
    """The tools of a table of operations; one is found by either spelling of its name."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.tools = tuple(row for row in operations if not isinstance(row.tool, Absent))
        self.names = WireNames(tool.name for tool in self.tools)
        canonical = {tool.name: tool for tool in self.tools}
        safe = {self.names.spell(tool.name, "safe"): tool for tool in self.tools}
        self.named: Callable[[str], Operation | None] = canonical.get
        self.find: Callable[[str], Operation | None] = {**safe, **canonical}.get
        """The tool with this name, in either spelling."""

    def listing(
        self, style: NameStyle, *, app_only: bool, finders: bool = False
    ) -> list[dict[str, Any]]:
        """The tools as `tools/list` shows them, with those of the app or without.

        With `finders` only the few that stand for all of them.
        """
        return [
            self.listed(tool, style)
            for tool in self.tools
            if tool.finder is finders and (app_only or not tool.app_only)
        ]

    def listed(self, tool: Operation, style: NameStyle) -> dict[str, Any]:
        """One tool as `tools/list` shows it."""
        schema = tool.tool_schema
        meta: dict[str, Any] = {NAME_KEY: tool.name}
        if tool.app_only:
            meta["ui"] = {"visibility": ["app"]}
        elif tool.app:
            meta["ui"] = {"resourceUri": tool.app}
        return {
            "name": self.names.spell(tool.name, style),
            "title": tool.name,
            "description": tool.listed_description,
            "inputSchema": without_combinators(schema) if style == "safe" else schema,
            "annotations": tool.hints,
            "_meta": meta,
        }


CATALOGUE: Final = ToolCatalogue(OPERATIONS)
NEEDS: Final = {**needs_of(OPERATIONS), "room/control": Need("rooms.manage", ROOM)}
"""The scope that each operation needs, whichever way it is asked for.

Only messages in rooms ask for `room/control`: it has no tool and no address.
"""
