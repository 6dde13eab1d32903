"""The gateway: many MCP servers behind one endpoint, under names that never collide.

It knows what the servers offer and who may use it, and routes requests. It does not connect to
servers itself: it is given `Backend`s.
"""
