"""The clock of a running hub."""

from __future__ import annotations

import time


class SystemClock:
    """`core.ports.Clock` by the machine's own clock."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never run backwards."""
        return time.monotonic()
