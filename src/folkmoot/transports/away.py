"""Counts the connections that find no room, and tells of them once a second instead of each time.

When there are too many of them, a line for each would be one more thing there is too much of.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from folkmoot.telemetry.metrics import Metrics

logger = logging.getLogger("folkmoot.http")

TELL_SECONDS = 1.0


class TurnedAway:
    """Those that were answered 503, or not at all, because others were here before."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._metrics = metrics
        self._untold = 0
        self._timer: asyncio.TimerHandle | None = None

    def count(self) -> None:
        """One more found no room."""
        if self._metrics is not None:
            self._metrics.turned_away.inc()
        self._untold += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TELL_SECONDS, self.tell)

    def tell(self) -> None:
        """Log how many there were since the last time, if any."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._untold:
            logger.warning("connections were turned away", extra={"count": self._untold})
            self._untold = 0
