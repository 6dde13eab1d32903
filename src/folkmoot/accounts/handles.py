"""The grammar of handles, and the names nobody can take."""

from __future__ import annotations

import re

REDIRECT_SECONDS = 2_592_000
"""30 days: how long an old handle leads to its owner, and a deleted one stays reserved."""

MOST_REDIRECTS = 10
"""Old handles that may lead to one account at once, so that nobody hoards names by renaming."""

HANDLE = re.compile(r"[a-z][a-z0-9_]{2,19}")

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


def parse_handle(text: str) -> str | None:
    """The handle as it is stored, or nothing where the text is none: `@Alice` is `alice`."""
    # Beyond ASCII some letters, such as the Kelvin sign, have a plain one as their lower case.
    if not text.isascii():
        return None
    handle = text.removeprefix("@").lower()
    return handle if HANDLE.fullmatch(handle) else None
