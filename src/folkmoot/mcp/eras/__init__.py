"""Bridging MCP's two eras: with a handshake and sessions, or request by request. Nothing here does
I/O or knows the time: each machine is told what came and says what to send.

An `EraBridge` stands between a client and a server. Its `openings` pass on the client's first words
and judge the answer. Where both speak one era it becomes `transparent`; else one of two machines
translates from then on: `HandshakeClient` for a client that shakes hands, with its `rounds` of
input; `StatelessClient` for clients that do not, with their `calls` and the server's questions.
`subscriptions` are those of either; `table` says what is carried and what cannot be.
"""

from __future__ import annotations

from folkmoot.mcp.eras.bridge import EraBridge
from folkmoot.mcp.eras.steps import Step, ToClient, ToServer
