"""The running proxy: connects two ends of a conversation and passes messages between them.

- `steps`: what every message takes; `conversation`: its session, and the requests that are open
- `pump`: one conversation between two carriers
- `forward`, `exchanges`: exchanges with a Streamable HTTP server
- `era_switch`: which of them must be bridged
- `proxy`, `http_server`, `recording`: a proxy put together, on pipes or on a port
- `tap`: the same steps at the hub's own endpoint
- `tape_server`, `play`: a tape in a server's place, and in a client's
- `deciding_room`: held messages as proposals in a room
- `hub_gateway`, `room_backends`: the gateway of a hub, and backends in its rooms
- `upstream`: the links to the servers behind the hub
"""
