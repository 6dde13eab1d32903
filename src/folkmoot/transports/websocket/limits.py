"""What a link may cost."""

from __future__ import annotations

from typing import NamedTuple


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
