"""What servers that we start write to their standard error, in our log."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable
from itertools import groupby
from typing import Final

from folkmoot.telemetry.clean import clean

logger = logging.getLogger("folkmoot.backend")

BURST: Final = 100.0
LINES_A_SECOND: Final = 20.0
"""More lines than these are counted and left out: a log must not be flooded by one server."""
LONGEST: Final = 2048

REMEMBERED: Final = 40
"""The last lines that are looked through for why a server ended."""
MOST_TOLD: Final = 2
LONGEST_TOLD: Final = 200

_BESIDE: Final = re.compile(
    r"\s{4}|\s*(?:File \"|[\W_]*$)|Node\.js v|npm (?:notice|warn)|.*complete log|"
    r"The above exception|During handling of the above"
)
"""Frames, code, marks below code, and what programs say after what matters."""
_TELLING: Final = (
    re.compile(r"\b\w*(?:error|exception)\b|\bERR!|\bfatal\b|\bpanic", re.IGNORECASE),
    re.compile(
        r"\b(?:cannot|could not|unable|no such|not found|no \w+ found|denied|refused|required|"
        r"requires|needs|unsupported|missing|invalid|failed)\b",
        re.IGNORECASE,
    ),
    re.compile(""),
)
"""What a line has in it that tells why, the most telling first."""


class ChildLog:
    """Takes the lines of one server's log."""

    def __init__(self, namespace: str, monotonic: Callable[[], float]) -> None:
        self._namespace = namespace
        self._monotonic = monotonic
        self._room = BURST
        self._since = monotonic()
        self._left_out = 0
        self._last: deque[str] = deque(maxlen=REMEMBERED)

    def __call__(self, line: bytes) -> None:
        """Log one line."""
        text = line[:LONGEST].decode("utf-8", "replace").rstrip()
        if not text:
            return
        self._last.append(text)
        if not self._may():
            return
        extra: dict[str, object] = {"backend": self._namespace}
        if self._left_out:
            extra["left_out"], self._left_out = self._left_out, 0
        logger.info("%s", text, extra=extra)

    def forget(self) -> None:
        """The server is there: what it wrote before is of no more use."""
        self._last.clear()

    def telling(self) -> str:
        """The lines that say best why the server ended; empty if it wrote nothing."""
        for pattern in _TELLING:

            def tells(line: str, pattern: re.Pattern[str] = pattern) -> bool:
                return not _BESIDE.match(line) and pattern.search(line) is not None

            blocks = [list(block) for told, block in groupby(self._last, tells) if told]
            if blocks:
                # The last that went wrong, from its beginning: programs often go on to give advice.
                told = blocks[-1][:MOST_TOLD] if pattern.pattern else blocks[-1][-1:]
                return " ".join(clean(line.strip(), LONGEST_TOLD) for line in told)
        return ""

    def _may(self) -> bool:
        now = self._monotonic()
        self._room = min(BURST, self._room + (now - self._since) * LINES_A_SECOND)
        self._since = now
        if self._room < 1.0:
            self._left_out += 1
            return False
        self._room -= 1.0
        return True
