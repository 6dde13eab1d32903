"""How fast one participant may send, whatever the kind: in messages and in bytes.

An account has one bucket for what it begins and one for what it answers. They outlive a connection:
to leave and come back gains nothing.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from folkmoot.ratelimits import Buckets, Rate

ANSWERS: Final = ("mcp.response.", "mcp.notification.notifications/progress", "mcpx.begin.")
"""How the kinds begin that need an open request."""


class Rates(Struct, frozen=True):
    """The rates of a room, for each participant alone."""

    sent: Rate
    """Of what a participant begins."""
    answers: Rate
    """Of answers and progress, which others asked for."""


class SendRates:
    """How much each account sent lately, on whichever connection and by whichever transport."""

    __slots__ = ("_answers", "_sent")

    def __init__(self) -> None:
        self._sent = Buckets()
        self._answers = Buckets()

    def take(self, account: str, rates: Rates, base: str, size: int, now: float) -> None:
        """Count a message of a kind, or raise `RateLimited` with the time to wait."""
        if base.startswith(ANSWERS):
            self._answers.take(account, rates.answers, size, now)
        else:
            self._sent.take(account, rates.sent, size, now)
