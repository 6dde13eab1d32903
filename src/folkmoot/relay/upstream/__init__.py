"""Upstream: live links to the servers behind the hub.

- `conversation`: one open link with many requests at once, and `hearing`, the side of it that
  listens: its `mcp.peer` knows what is open and whose it is, `waiting` is who waits for it, and
  `asking` how requests are said
- `connecting`: how a server is reached: `secrets`, `isolation`
- `line`: a conversation that is opened again when it ends; `pool`: others, opened for a
  person or for what callers can be asked, and closed when idle
- `backend`: one server, kept reached: its `health`, `watching` what it changes, `affinity` of
  repeated calls
- `fleet`: all of them; `following`: as the settings change
- `inventory`: everything a server lists; `model`: what is told of servers
"""
