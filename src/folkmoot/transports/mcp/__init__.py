"""`/mcp`: the hub's tools and all that its backends have, for MCP clients of both eras.

A request becomes an `Exchange`: who asks (`arrivals`, `sessions`, `address`). The
server in `folkmoot.mcp.server` reads it, whatever its era, and asks the `service`, which has a row
for each method. Lists come from `lists`, its resources are in `resources`, and the hub's own tools
and what is a backend's are called through `calls`.

`service` also marks as read what has arrived. The `subscribers` are told of new mail by `notices`,
of lists and resources by `backend_changes`; `listening` serves their streams. `assembly` puts all
of it together, and `endpoint` is the ASGI application.
"""

from __future__ import annotations

from folkmoot.transports.mcp.endpoint import McpEndpoint
