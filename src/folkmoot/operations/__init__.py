"""The operations of a hub as one table, independent of MCP and HTTP.

An `Operation` is a row: its name, the struct it *takes*, the struct it *gives*, its handler, what
it does to the world and who may ask for it, and how it is reached: as a *tool*, at a *route*, by a
*command*, or why not. `OPERATIONS` holds all rows, and `CATALOGUE` finds and lists them as tools;
loading them does not load the hub. `Dispatcher.call` takes one call through authentication,
arguments and rate limits to its handler, and answers an `OperationResult`: plain data, also for
errors. A `Caller` is whoever calls.
"""

from __future__ import annotations

from folkmoot.operations.call import (
    Call,
    Caller,
    OperationResult,
    Services,
)
from folkmoot.operations.row import (
    Absent,
    Arguments,
    Operation,
    Route,
)
from folkmoot.operations.table import CATALOGUE, OPERATIONS, ToolCatalogue
