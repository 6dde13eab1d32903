"""`/mcp`: the tools of the hub for MCP clients of both eras, through the official SDK.

A request becomes an `Exchange`: who asks (`credentials`, `sessions`, `address`) and what is to be
done once its answer has left. The SDK's server (`server`) reads the exchange from the request and
calls the table of tools; `deliveries` marks as read what has arrived; `notices` tells of new mail.
"""

from __future__ import annotations

from folkmoot.transports.mcp.endpoint import McpEndpoint

__all__ = ["McpEndpoint"]
