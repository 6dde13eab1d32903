"""The clock of a running hub."""

from __future__ import annotations

import time


class SystemClock:
    """`core.ports.Clock` by the machine's own clock."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
