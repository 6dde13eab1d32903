"""How a message was protected, as the bridge tells it: by what it saw, not by what it was told."""

from __future__ import annotations

from typing import Any, Final

BRIDGE: Final = "bridge"
"""The member of messages and results that is the bridge's own; a hub's is never passed on."""

E2E: Final = "e2e"
SERVER_ASSISTED: Final = "server_assisted"
NOT_VERIFIED: Final = "not_verified"

MODES: Final = {
    E2E: "Sealed between this device's key and the one pinned here for the other side. The hub "
    "could not read it, unless it named a key of its own when you first met: `key` says whether "
    "you have compared it.",
    SERVER_ASSISTED: "The hub handed it over as text, so it could read it, and could have written "
    "it.",
    NOT_VERIFIED: "Not shown. It does not open here, or is not what the hub says it is; `error` "
    "says why.",
}


NEW, PINNED, VERIFIED = "new", "pinned", "verified"
"""A correspondent's key: first seen now, the one seen before, or compared by the two people."""


def mark(mode: str, *, key: str = "", note: str = "", **more: Any) -> dict[str, Any]:
    """What the bridge says about one message; only a key that was compared makes it verified."""
    said: dict[str, Any] = {"mode": mode, "verified": key == VERIFIED, **more}
    if key:
        said["key"] = key
    if note:
        said["note"] = note
    return said
