"""MCP on the wire: its names, eras, framing, servers and clients.

- `wire`: the names of methods, headers and keys, and how to read and write them
- `eras`: handshake and stateless, and the pure machines that translate between them
- `peer`: the requests that are open over one link, and whom what the other side says is for
- `server`: the side that clients reach: Streamable HTTP of both eras, HTTP+SSE, stdio
- `client`: the side that reaches servers, over the same transports
- `carrier`: what both sides are, ends of a conversation that envelopes travel between
- `framing`: how messages are cut out of bytes; `pipes`: how they are read and written as lines
"""
