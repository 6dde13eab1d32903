"""How much the long tests do: so many times as much with `make test-full TIMES=10`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

TIMES = int(os.environ.get("TEST_TIMES") or 1)


more_than_once = pytest.mark.skipif(TIMES < 2, reason="takes minutes: make test-full TIMES=2")


def times(number: int) -> int:
    """So many rounds or examples, or as often as whoever runs the tests wants it."""
    return number * TIMES


def few(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Parameters of which the first are for every day; the others repeat them in the long tests."""
    return [
        pytest.param(value, marks=[pytest.mark.long] if place >= count else [])
        for place, value in enumerate(values)
    ]
