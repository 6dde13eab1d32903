"""The grammar of handles, the names of people; namespaces are names of the same world."""

from __future__ import annotations

import re

HANDLE = re.compile(r"[a-z][a-z0-9_]{2,19}")
HERE = "@localhost"
"""What a handle of this hub may end in, as one of another hub would in its name."""


def parse_handle(text: str) -> str | None:
    """The handle as it is stored, or nothing where the text is none.

    `@Alice` and `@alice@localhost` are `alice`.
    """
    # Beyond ASCII some letters, such as the Kelvin sign, have a plain one as their lower case.
    if not text.isascii():
        return None
    handle = text.removeprefix("@").lower().removesuffix(HERE)
    return handle if HANDLE.fullmatch(handle) else None
