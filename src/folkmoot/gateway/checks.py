"""Arguments held against the pinned schema of their tool, before anything is sent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from folkmoot.jsonschemas import Fault, Schema, Schemas, prepare

if TYPE_CHECKING:
    from folkmoot.gateway.model import ToolEntry

MOST_KEPT: Final = 4_096


class Checks:
    """The compiled schemas of the tools that were called, by the entry they belong to."""

    def __init__(self) -> None:
        self._schemas = Schemas()
        self._of_tool: dict[str, tuple[ToolEntry, Schema | None]] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        """By namespace: one schema of a backend is read at a time."""

    def prepare(self) -> None:
        """Have the library at hand before the first call."""
        prepare()

    async def faults(self, tool: ToolEntry, arguments: Any) -> list[Fault]:
        """What is wrong with the arguments of a call, as much as can be told in time.

        A schema is read when it is first needed, where that holds nobody up but those who call
        tools of the same backend.
        """
        if not isinstance(arguments, dict):
            return ["the arguments must be an object"]
        schema = self._schema(tool)
        if schema is None or schema.surely_fits(arguments):
            return []
        if not schema.prepared:
            async with self._reading.setdefault(tool.namespace, asyncio.Lock()):
                await asyncio.to_thread(schema.prepare)
        return schema.faults(arguments)

    def _schema(self, tool: ToolEntry) -> Schema | None:
        entry, schema = self._of_tool.get(tool.canonical, (None, None))
        if entry is not tool:
            schema = self._schemas.of(tool.schema)
            if len(self._of_tool) >= MOST_KEPT:
                self._of_tool.clear()
            self._of_tool[tool.canonical] = tool, schema
        return schema
