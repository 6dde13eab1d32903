"""The hub as an OAuth 2.1 authorization server, without I/O.

A *client* is an app that asks to act for a person; it is registered at the hub, or its id is the
URL of a document about it. It sends the person to the hub with an *authorization request*, is sent
back to one of its *redirect addresses* with a code, and exchanges the code for tokens.
"""
