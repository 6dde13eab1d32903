"""All tools, in the order they are listed, and how they are found and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.names import WireNames
from folkmoot.names.schemas import without_combinators
from folkmoot.tools.account_tools import ACCOUNT_TOOLS
from folkmoot.tools.app_tools import APP_TOOLS
from folkmoot.tools.finder import FINDER_TOOLS
from folkmoot.tools.message_tools import MESSAGE_TOOLS
from folkmoot.tools.people_tools import PEOPLE_TOOLS
from folkmoot.tools.room_tools import ROOM_TOOLS
from folkmoot.tools.thread_tools import THREAD_TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from folkmoot.names import NameStyle
    from folkmoot.tools.model import Tool

NAME_KEY = "folkmoot/name"
"""The member of `_meta` that tells a listed tool's canonical name."""


class Catalogue:
    """A table of tools; a tool is found by either spelling of its name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.tools = tuple(tools)
        self.names = WireNames(tool.name for tool in self.tools)
        self._by_name = {tool.name: tool for tool in self.tools}

    def __contains__(self, name: object) -> bool:
        """Whether a tool has this canonical name."""
        return name in self._by_name

    def find(self, wire: str) -> Tool | None:
        """The tool with this name, in either spelling."""
        canonical = self.names.canonical(wire)
        return None if canonical is None else self._by_name[canonical]

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

    def listed(self, tool: Tool, style: NameStyle) -> dict[str, Any]:
        """One tool as `tools/list` shows it."""
        meta: dict[str, Any] = {NAME_KEY: tool.name}
        if tool.app_only:
            meta["ui"] = {"visibility": ["app"]}
        elif tool.app:
            meta["ui"] = {"resourceUri": tool.app}
        return {
            "name": self.names.spell(tool.name, style),
            "title": tool.name,
            "description": tool.listed_description,
            "inputSchema": without_combinators(tool.schema) if style == "safe" else tool.schema,
            "annotations": tool.hints,
            "_meta": meta,
        }


CATALOGUE = Catalogue(
    (
        *ACCOUNT_TOOLS,
        *MESSAGE_TOOLS,
        *THREAD_TOOLS,
        *PEOPLE_TOOLS,
        *APP_TOOLS,
        *ROOM_TOOLS,
        *FINDER_TOOLS,
    )
)
