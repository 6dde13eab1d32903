"""Handles: the names nobody can take, and how long an old one leads to its owner."""

from __future__ import annotations

from folkmoot.names.grammar import HANDLE, HERE, parse_handle

__all__ = [
    "HANDLE",
    "HERE",
    "OFFICIAL",
    "RESERVED",
    "is_official",
    "parse_handle",
]


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

OFFICIAL = frozenset(
    {
        "abuse",
        "admin",
        "administrator",
        "admins",
        "all",
        "anonymous",
        "channel",
        "daemon",
        "everybody",
        "everyone",
        "guest",
        "guests",
        "help",
        "helpdesk",
        "here",
        "hostmaster",
        "hub",
        "info",
        "mailerdaemon",
        "me",
        "moderator",
        "moderators",
        "nobody",
        "noreply",
        "null",
        "official",
        "operator",
        "operators",
        "postmaster",
        "root",
        "security",
        "staff",
        "superuser",
        "support",
        "sysadmin",
        "undefined",
        "webmaster",
        "you",
    }
)
"""Names under which someone could speak for the hub, or be taken for nobody or for everyone.

They need an invite that the operator made for them; whoever has one already keeps it.
"""


def is_official(handle: str) -> bool:
    """Whether a handle is one of these names, with underscores or without."""
    return handle.replace("_", "") in OFFICIAL
