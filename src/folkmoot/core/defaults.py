"""The clock and the process id that are meant where none is given.

The core reads neither by itself: the package around it puts them here when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _missing() -> Any:
    raise RuntimeError("The core has no clock and no process id of its own, and none was given.")


now: Callable[[], float] = _missing
monotonic: Callable[[], float] = _missing
process_id: Callable[[], int] = _missing
