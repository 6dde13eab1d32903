"""The operations of a hub as one table, independent of MCP and HTTP.

An operation is declared as a function: see `declare`. From it comes a row of the table, an
`Operation`: its name, the struct it *takes*, the struct it *gives*, its handler, what it does to
the world and who may ask for it, and how it is reached: as a *tool*, at a *route*, by a *command*,
or why not. `OPERATIONS` holds all rows, and `CATALOGUE` finds and lists them as tools; loading them
does not load the hub, and loading this package loads nothing. `Dispatcher.call` takes one call
through authentication, arguments and rate limits to its handler, and answers an `OperationResult`:
plain data, also for errors. A `Caller` is whoever calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from folkmoot.lazy_packages import loading

if TYPE_CHECKING:
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
        operator,
        passkeys,
        people,
        registration,
        rooms,
        servers,
        sessions,
        tapes,
        threads,
        tokens,
    )
    from folkmoot.operations.call import Call, Caller, OperationResult, Services
    from folkmoot.operations.row import Absent, Arguments, Operation, Route
    from folkmoot.operations.table import CATALOGUE, OPERATIONS, ToolCatalogue
else:
    __getattr__ = loading(
        __name__,
        {
            "call": "Call Caller OperationResult Services",
            "row": "Absent Arguments Operation Route",
            "table": "CATALOGUE OPERATIONS ToolCatalogue",
        },
    )
