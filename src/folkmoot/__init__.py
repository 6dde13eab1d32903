"""Folkmoot: one self-hosted place where people, AI assistants, agents and MCP tools meet."""

__version__ = "0.1.0"
