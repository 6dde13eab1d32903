"""Seeing, recording, replaying and changing MCP conversations. Nothing here opens a socket."""
