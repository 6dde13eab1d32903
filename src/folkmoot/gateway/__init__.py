"""The gateway: many MCP servers behind one endpoint, under names that never collide.

It knows what the servers offer and who may use it, and routes what is asked; how a server is
reached is not its business: it is given `Backend`s.
"""
