"""The client side of MCP: links to servers, for the proxy, the gateway and every other client.

- `link`: what all of them are: carriers that receive what a server says
- `stdio`: a server that is a child of this process; `child` is the process with everything it
  starts
- `http`: Streamable HTTP of both eras; `exchange` has its streams, one for each request and one for
  what the server says by itself
- `target`: a server that many links may share, with its `pool` of HTTP connections; `connection`
  is one of them, `url` an address
- `oldsse`: HTTP with Server-Sent Events as it was in the protocol's first version
- `weblink`: what both have in common; `headers`: which HTTP headers pass, and which repeat what a
  message says
- `connect`: finds out which of them a server needs
"""
