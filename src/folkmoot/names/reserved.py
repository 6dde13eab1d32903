"""The names nobody can take: handles and namespaces are names of one world."""

from __future__ import annotations

RESERVED_NAMES = frozenset(
    {"gateway", "system", "folkmoot", "mmp", "msg", "room", "chat", "file", "http", "https"}
)
"""Neither a person's handle nor the namespace of a server."""
