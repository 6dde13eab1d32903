"""What a hub refused, as an error that can be raised."""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core.errors import ERRORS, FolkmootError, MessageRefused

_TOLD: Final = frozenset(("error", "message"))


def refusal(payload: dict[str, Any]) -> FolkmootError:
    """What the hub refused, as the error of the tree that has its code."""
    words = payload.get("message")
    message = words if isinstance(words, str) else "The hub refused the message."
    data = {name: value for name, value in payload.items() if name not in _TOLD}
    code = payload.get("error")
    known = ERRORS.get(code, MessageRefused) if isinstance(code, str) else MessageRefused
    error = known.__new__(known)
    # Some leaves ask for more than the hub tells.
    FolkmootError.__init__(error, message, **data)
    return error
