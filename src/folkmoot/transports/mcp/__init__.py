"""`/mcp`: the hub's tools and all that its backends have, for MCP clients of both eras.

A request becomes an `Exchange`: who asks (`credentials`, `sessions`, `address`, `arrivals`), and
what is to be done once its answer has left. What is plain the `lane` reads (`heads`, `plain`) and
answers without the official SDK: lists from `lists`, the hub's own tools through `calls`, and what
is a backend's by a `passage`, whose `line` is one answer or a stream. The SDK's `server` has the
rest, and does the same through `unusual`.

`backends` resolves names. `opencalls` knows the calls that can be cancelled and the questions that
can be answered; `rounds` puts such questions. `deliveries` marks as read what has arrived. The
`hearers` are told of new mail by `notices`, of lists by `changes` and of resources by `watches`.
`assembly` puts all of it together.
"""

from __future__ import annotations

from folkmoot.transports.mcp.endpoint import McpEndpoint

__all__ = ["McpEndpoint"]
