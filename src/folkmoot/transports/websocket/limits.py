"""What a link may cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from folkmoot.rooms.limits import BURST_SECONDS


class ConnectionRate:
    """A rate that each of many connections is held to.

    A connection counts down from what it was last given, and asks for more when nothing is left:
    so the clock is read once for many frames. One that was silent for long may therefore send
    up to twice the burst at once, and none sends more than the rate for long.
    """

    __slots__ = ("_now", "burst", "per_second")

    def __init__(self, per_second: int, now: Callable[[], float]) -> None:
        self.per_second = per_second
        self.burst = per_second * BURST_SECONDS
        self._now = now

    def begin(self) -> tuple[int, float]:
        """What a new connection is given, and when."""
        return self.burst, self._now()

    def more(self, since: float) -> tuple[int, float]:
        """What a connection gets that was given something at `since`, and when it is given."""
        now = self._now()
        earned = (now - since) * self.per_second
        if earned >= self.burst:
            return self.burst, now
        whole = int(earned)
        # What is earned of the next one is not lost.
        return whole, now - (earned - whole) / self.per_second


class LinkLimits(NamedTuple):
    """The limits of every link of an endpoint."""

    max_message_bytes: int = 1_048_576
    """Of a message that a client sends, however many frames it comes in."""
    max_unfinished_bytes: int = 8_388_608
    """Of large messages that have come in part, over all links; beyond it the oldest is given up.
    """
    max_unsent_bytes: int = 4_194_304
    max_unsent_frames: int = 10_000
    """How much may wait for a client that does not read; with more it is closed as too slow."""
    ping_seconds: float = 20.0
    """How long a link is left alone before it is pinged."""
    pong_seconds: float = 20.0
    """How soon something must come back then."""
    close_seconds: float = 5.0
    """How long a client may take over the closing handshake, and over reading what precedes it."""
    stop_seconds: float = 1.0
    """The same while the hub stops."""
    rate: ConnectionRate | None = None
    """How many frames a client may send, of whatever kind."""
