"""Upstream: live links to the servers behind the hub.

- `conversation`: one open link with many requests at once, and `hearing`, the side of it that
  listens: its `mcp.peer` knows what is open and whose it is, `waiting` is who waits for it,
  `asking` how requests are said, `outbox` what nobody waits for, `pace` how fast, `sessions` what
  is forgotten
- `connecting`: how a server is reached: `secrets`, `isolation`, `childlog`, `weblink`
- `line`: a conversation that is opened again when it ends; `pool`: others, opened for a
  person or for what callers can be asked, and closed when idle
- `backend`: one server, kept reached: `health`, `taking` its lists, `watching` its resources,
  `affinity` of repeated calls, `sentences` for callers, `tally` and `viewing` for operators
- `fleet`: all of them; `following`: as the settings change
- `inventory`: everything a server lists; `findings`: what descriptions hold and should not;
  `model`: what is told of servers
"""
