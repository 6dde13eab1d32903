"""The server side of MCP: where clients reach the proxy.

It takes what a client sends and hands it on as envelopes from client to server; what comes back
leaves to the client it is meant for. `stdio` is one client and one carrier; `http` makes a carrier
for each session and one for all clients of the stateless era; `oldsse` makes one for each
connection. Each carrier is given to `serve`, which carries that conversation until it ends.
"""
