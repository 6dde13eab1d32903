"""Upstream: live links to the servers behind the hub.

- `conversation`: one open link with many requests at once, and `link_reader`, the side of it that
  listens: its `mcp.peer` knows what is open and whose it is; `requests` are how it is asked, and
  who waits
- `connecting`: how a server is reached: `secrets`, `isolation`
- `links`: a conversation that is opened again when it ends; others, opened for a person or for what
  callers can be asked, and closed when idle; and which of them knows of a call
- `backend`: one server, kept reached: its `health`, and `watching` what it changes
- `fleet`: all of them; `settings_follower`: as the settings change
- `inventory`: everything a server lists; `model`: what is told of servers
"""
