"""The table of acts: which kinds a room does something with, beyond carrying them."""

from __future__ import annotations

from typing import Final

from folkmoot.core import chat
from folkmoot.core.kinds import Kind
from folkmoot.rooms.machine.asking import about_request, propose, reject, request, respond, say, withdraw
from folkmoot.rooms.machine.requests import CANCELLED, PROGRESS
from folkmoot.rooms.machine.ruling import give, invite, kick, take_back
from folkmoot.rooms.machine.turn import Act

ACTS: Final[dict[tuple[str, str], Act]] = {
    ("mcp", "request"): request,
    ("mcp", "response"): respond,
    ("mcp", "proposal"): propose,
    ("mcpx", "withdraw"): withdraw,
    ("mcpx", "reject"): reject,
    ("capability", "grant"): give,
    ("capability", "revoke"): take_back,
    ("room", "kick"): kick,
    ("room", "invite"): invite,
    ("chat", "message"): say,
}

NOTIFIED: Final[dict[str | None, Act]] = {
    chat.METHOD: say,
    CANCELLED: about_request,
    PROGRESS: about_request,
}
"""The notifications among them, by method."""

RIGHT_OF_THEIR_OWN: Final = frozenset((respond, about_request, take_back))
"""Acts that may be somebody's right without a capability; they are asked when policy says no."""


def act_for(kind: Kind) -> Act | None:
    """What is done with a message of a kind, if anything is beyond carrying it."""
    if kind.protocol == "mcp" and kind.operation == "notification":
        return NOTIFIED.get(kind.method)
    return ACTS.get((kind.protocol, kind.operation))
