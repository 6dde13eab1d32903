"""A local MCP server between a client and a hub that encrypts mail end to end.

It is a proxy made of interceptors. A **device key** encrypts and decrypts bodies; a **pin** is the
first key that a correspondent was seen with; a **letter** is the content of a box, with its author
and recipient; the **ledger** stores pins and letters. `mail` encrypts what is sent and decrypts
what arrives, `reading` says how each message was protected, `tools` refuses calls that the bridge
cannot protect. The bridge makes its own requests to the hub, never in the client's conversation.
"""
