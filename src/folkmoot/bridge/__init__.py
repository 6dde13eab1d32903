"""The bridge: a local MCP server that keeps mail from the hub that carries it.

It stands between a client on this computer and a hub, and is made of interceptors. A **device key**
seals and opens bodies here; a **pin** is the key a correspondent had when they were first met; a
**letter** is what lies in a box, with who wrote it to whom; the **ledger** remembers pins and
letters. `sealing` encrypts what is sent, `opening` decrypts what comes and says truthfully how each
message was protected, `guarding` and `telling` keep the client within what the bridge can promise.
What the bridge needs to know it asks the hub by itself, never in the client's conversation.
"""
