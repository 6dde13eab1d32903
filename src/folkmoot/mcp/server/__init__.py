"""The server side of MCP: where clients reach the hub and the proxy.

Before a *service* of stateless requests (`service`), `direct` serves Streamable HTTP of both eras:
it reads the head (`heads`) and the message, and writes one of the `responses`, which notice clients
that leave; `sessions` has what a session of the handshake era needs, and
`questions` asks its client.

What a response says as a stream waits in one of the `streams` until it is written. `resumable`
keeps those of sessions for clients that come back, for the hub and the proxy alike.

For the proxy a client is a carrier: what it sends is handed on as envelopes from client to server,
and what comes back leaves to the client it is meant for. `stdio` is one client and one carrier;
`http` makes a carrier for each session of either transport (`session`), and one for all clients of
the stateless era (`stateless`), whose `streams` wait for their readers. Each carrier is given to
`serve` by its front (`fronts`), which carries that conversation until it ends.
"""
