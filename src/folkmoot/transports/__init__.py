"""How messages and requests reach the hub, and how answers leave it.

`descriptors` makes room for connections, `listen` binds the sockets, `server` runs uvicorn on them
with the connection `protocol` of ours. A request passes `observe` (id, log line, metrics, span),
then `guard` (host, origin, body size), then the routes that `http` puts together; `answers` turns
errors into responses.
"""
