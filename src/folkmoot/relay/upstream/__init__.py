"""Upstream: live links to the servers behind the hub.

- `conversation`: one open link with many requests at once, and `hearing`, the side of it that
  listens: its `mcp.peer` knows what is open and whose it is; `requests` are how it is asked, and
  who waits
- `connecting`: how a server is reached: `secrets`, `isolation`
- `line`: a conversation that is opened again when it ends; `pool`: others, opened for a
  person or for what callers can be asked, and closed when idle, and which of them knows of a call
- `backend`: one server, kept reached: its `health`, and `watching` what it changes
- `fleet`: all of them; `following`: as the settings change
- `inventory`: everything a server lists; `model`: what is told of servers
"""
