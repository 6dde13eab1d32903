"""How much the long tests do: so many times as much with `make test-full TIMES=10`."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("TEST_TIMES") or 1)


def times(number: int) -> int:
    """So many rounds or examples, or as often as whoever runs the tests wants it."""
    return number * TIMES
