"""How messages and requests reach the hub, and how answers leave it.

`listen` binds the sockets, `accept` takes connections from them, `server` runs uvicorn on them with
our connection `protocol`. A request passes the steps that `http` puts together: id, log line,
metrics and span, then `guard` (host, origin), then `bodies` (size), then its route; `answers` turns
errors into responses. `credentials` reads the token, `browsers` the cookie of a page.
"""
