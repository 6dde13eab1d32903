"""The tools of a hub as a table, independent of MCP and HTTP.

A `Tool` is a row: name, schema, the struct its arguments become, and a handler. `CATALOGUE` holds
all rows; `Dispatcher.call` takes one call through authentication, decoding and rate limits to its
handler, and answers a `ToolResult`: plain data, also for errors. A `Caller` is whoever calls.
"""

from __future__ import annotations

from folkmoot.tools.catalogue import CATALOGUE, Catalogue
from folkmoot.tools.dispatch import Dispatcher, UnknownTool
from folkmoot.tools.model import Call, Caller, Services, Tool, ToolResult

__all__ = [
    "CATALOGUE",
    "Call",
    "Caller",
    "Catalogue",
    "Dispatcher",
    "Services",
    "Tool",
    "ToolResult",
    "UnknownTool",
]
