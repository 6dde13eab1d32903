"""Pace: how fast a server is heard that has more to say than anyone asked for."""

from __future__ import annotations

import asyncio
from typing import Final

A_SECOND: Final = 4000.0
BURST: Final = 8000.0
"""Messages. For more than these the server waits, and nobody else does."""
A_MESSAGE: Final = 4096
VALUES: Final = 50
"""Bytes, and values, that count as one message more."""
TURN: Final = 64
"""So many messages are taken before others have their turn."""
PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 1.0


class Pace:
    """Counts messages, and pauses whoever reads them."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = BURST
        self._since = self._loop.time()
        self._taken = 0

    def spend(self, raw: bytes) -> None:
        """One more message; a long one, and one of many values, counts as several."""
        self._room -= 1.0 + len(raw) / A_MESSAGE + raw.count(b",") / VALUES

    async def keep(self) -> None:
        """Let others have their turn now and then, and a server that floods wait."""
        self._taken += 1
        if self._taken < TURN and self._room > 0:
            return
        self._taken = 0
        now = self._loop.time()
        self._room = min(BURST, self._room + (now - self._since) * A_SECOND)
        self._since = now
        owed = max(PAUSE, min(LONGEST_PAUSE, -self._room / A_SECOND))
        await asyncio.sleep(0 if self._room > 0 else owed)
