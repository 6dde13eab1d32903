"""The running proxy: connects two ends of a conversation and passes messages between them.

- `steps`: what every message takes; `conversation`: its session, and the requests that are open
- `carrying`, `pump`: one conversation between two carriers
- `forward`, `replies`, `contexts`: exchanges with a Streamable HTTP server
- `era_switch`: which of them must be bridged
- `proxy`, `listening`, `assemble`, `recording`: a proxy put together, on pipes or on a port
- `tap`, `passing`: the same steps at the hub's own endpoint
- `tape_server`, `play`: a tape in a server's place, and in a client's
- `deciding_room`: held messages as proposals in a room
- `upstream`: the links to the servers behind the hub
"""
