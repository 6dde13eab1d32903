"""Mail that is not kept for ever: now and then what is too old is removed, a little at a time."""

from __future__ import annotations

import asyncio
import logging

from folkmoot.core.errors import FolkmootError
from folkmoot.core.ports import Clock
from folkmoot.mail.mail import Mail

LOG = logging.getLogger(__name__)

DAY = 86_400
PAUSE_SECONDS = 600.0
"""From one look to the next; nobody needs a day to be exact."""
BATCH = 100
"""Messages that go in one transaction: whoever writes meanwhile waits for no more than these."""


class Retention:
    """Removes messages that are older than so many days; with no days, nothing."""

    def __init__(
        self, mail: Mail, clock: Clock, *, keep_days: int, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._mail = mail
        self._clock = clock
        self._keep_days = keep_days
        self._pause = pause_seconds

    async def run(self) -> None:
        """Remove what is too old at once and from time to time, until cancelled."""
        while self._keep_days:
            try:
                removed = await self.tidy()
            except FolkmootError as error:
                # The mail stays a while longer; the next look tries again.
                LOG.warning("Old mail was not removed: %s", error.message)
            else:
                if removed:
                    LOG.info("removed old mail", extra={"messages": removed})
            await asyncio.sleep(self._pause)

    async def tidy(self) -> int:
        """Remove all that is too old now, and answer how many messages that were."""
        before = int(self._clock.now()) - self._keep_days * DAY
        removed = 0
        while self._keep_days:
            gone = await self._mail.expire(before, BATCH)
            removed += gone
            if gone < BATCH:
                break
        return removed
