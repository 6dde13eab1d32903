"""Handles: the names nobody can take, and how long an old one leads to its owner."""

from __future__ import annotations

from folkmoot.names.handles import HANDLE, parse_handle

__all__ = ["HANDLE", "MOST_REDIRECTS", "REDIRECT_SECONDS", "RESERVED", "parse_handle"]

REDIRECT_SECONDS = 2_592_000
"""30 days: how long an old handle leads to its owner, and a deleted one stays reserved."""

MOST_REDIRECTS = 10
"""Old handles that may lead to one account at once, so that nobody hoards names by renaming."""

RESERVED = frozenset(
    {
        "gateway",
        "system",
        "folkmoot",
        "mmp",
        "msg",
        "room",
        "chat",
        "file",
        "http",
        "https",
    }
)
