"""Handles that only an operator's invite gives."""

from __future__ import annotations

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
