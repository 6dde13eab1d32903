"""How a message was protected, as the bridge tells it: by what it saw, not by what it was told."""

from __future__ import annotations

from typing import Any, Final

BRIDGE: Final = "bridge"
"""The member of messages and results that is the bridge's own; a hub's is never passed on."""

E2E: Final = "e2e"
SERVER_ASSISTED: Final = "server_assisted"
NOT_VERIFIED: Final = "not_verified"

MODES: Final = {
    E2E: "Sealed with the writer's key, which is the one pinned here, and opened here. The hub "
    "could not read it.",
    SERVER_ASSISTED: "The hub handed it over as text, so it could read it, and could have written "
    "it.",
    NOT_VERIFIED: "Not shown. It does not open here, or is not what the hub says it is; `error` "
    "says why.",
}


def mark(mode: str, *, note: str = "", **more: Any) -> dict[str, Any]:
    """What the bridge says about one message."""
    said: dict[str, Any] = {"mode": mode, "verified": mode == E2E, **more}
    if note:
        said["note"] = note
    return said
