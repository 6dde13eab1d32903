"""The table of acts: which kinds a room does something with, beyond carrying them."""

from __future__ import annotations

from typing import Final

from folkmoot.core import chat
from folkmoot.mcp.wire import CANCELLED, PROGRESS
from folkmoot.rooms.machine.asking import (
    about_request,
    propose,
    reject,
    request,
    respond,
    say,
    withdraw,
)
from folkmoot.rooms.machine.holding import let_go_on, stop
from folkmoot.rooms.machine.ruling import give, invite, kick, take_back
from folkmoot.rooms.machine.serving import begin
from folkmoot.rooms.machine.turn import Act

ACTS: Final[dict[str, Act]] = {
    "mcp.request": request,
    "mcp.response": respond,
    "mcp.proposal": propose,
    "mcpx.begin": begin,
    "mcpx.withdraw": withdraw,
    "mcpx.reject": reject,
    "capability.grant": give,
    "capability.revoke": take_back,
    "room.kick": kick,
    "room.invite": invite,
    "participant.pause": stop,
    "participant.resume": let_go_on,
    "chat.message": say,
    f"mcp.notification.{chat.METHOD}": say,
    f"mcp.notification.{CANCELLED}": about_request,
    f"mcp.notification.{PROGRESS}": about_request,
}
"""By the root of a kind; notifications, of which only a few are acted on, by the base."""

RIGHT_OF_THEIR_OWN: Final = frozenset((respond, begin, about_request, take_back))
"""Acts that may be somebody's right without a capability; they are asked when policy says no."""
