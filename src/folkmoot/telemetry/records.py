"""Log records that are made often."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

_EMPTY: Final = vars(logging.makeLogRecord({}))


class PlainRecord(logging.LogRecord):
    """A record that does not tell where in the program, and in which thread, it was made.

    To find that out costs more than the rest, and nobody asks for it.
    """

    def __init__(self, name: str, level: int, message: str, values: Mapping[str, Any]) -> None:
        """As the library makes one, without what it looks up."""
        vars(self).update(_EMPTY)
        self.name = name
        self.levelno = level
        self.levelname = logging.getLevelName(level)
        self.msg = message
        self.created = time.time()
        self.msecs = self.created % 1 * 1000
        self.values = values
        vars(self).update(values)
