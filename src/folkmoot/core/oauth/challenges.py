"""Challenges: how a client is told, in `WWW-Authenticate`, that it needs a token, and which."""

from __future__ import annotations

import re
from typing import Final

INVALID_TOKEN: Final = "invalid_token"  # noqa: S105 - an error's name
INSUFFICIENT_SCOPE: Final = "insufficient_scope"
BASIC: Final = 'Basic realm="Folkmoot"'
"""For an app that showed a wrong secret in its header."""

_UNQUOTABLE: Final = re.compile(r'[^\x20-\x7e]|["\\]')


def challenge(
    resource_metadata_url: str, scope: str, error: str = "", description: str = ""
) -> str:
    """The value of `WWW-Authenticate`; without an error for who came without a token."""
    members = {
        "error": error,
        "error_description": description,
        "resource_metadata": resource_metadata_url,
        "scope": scope,
    }
    told = (f'{name}="{_UNQUOTABLE.sub("", text)}"' for name, text in members.items() if text)
    return f"Bearer {', '.join(told)}"
