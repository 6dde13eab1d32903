"""What the official conformance suite expects to find on a server: the fixtures.

The suite calls tools, prompts and resources by names of its own (`test_*`, `test://…`). They stand
beside the hub's own only when the setting `mcp.conformance_fixtures` says so, and only in the SDK's
server: the hub's table of tools does not know them. Their tools need an account, as the hub's do.

- `content`: tools that answer at once
- `streams`: tools that say something, or ask the client, before they answer (handshake era)
- `rounds`: tools and a prompt that answer with a question first (stateless era)
- `prompts`, `resources`: the rest of what is listed
- `mount`: puts them on a server
"""

from __future__ import annotations

from folkmoot.transports.mcp.conformance.mount import mount

__all__ = ["mount"]
