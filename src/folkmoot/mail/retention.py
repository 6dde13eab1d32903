"""Removes old mail after a time, if the hub does not keep it for ever."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.ports import Clock, RoomOwners
from folkmoot.mail.limits import MAX_OLD_REMOVED

if TYPE_CHECKING:
    from folkmoot.mail.mail import Mail


LOG = logging.getLogger(__name__)

DAY = 86_400


class Retention(Struct, eq=False):
    """Removes messages that are older than so many days; with no days, nothing."""

    mail: Mail
    clock: Clock
    keep_days: int
    pause_seconds: float = 600.0
    owners: RoomOwners | None = None

    async def run(self) -> None:
        """Remove what is too old at once and from time to time, until cancelled."""
        while True:
            try:
                removed = await self.tidy() if self.keep_days else 0
            except e.FolkmootError as error:
                # The mail stays a while longer; the next look tries again.
                LOG.warning("Old mail was not removed: %s", error.message)
            else:
                if removed:
                    LOG.info("removed old mail", extra={"messages": removed})
            await asyncio.sleep(self.pause_seconds)

    async def tidy(self) -> int:
        """Remove all that is too old now, and answer how many messages that were.

        Where several processes use the database, one of them does.
        """
        if self.owners is not None and not await self.owners.is_first():
            return 0
        before = int(self.clock.now()) - self.keep_days * DAY
        removed = 0
        while self.keep_days:
            gone = await self.mail.expire(before, MAX_OLD_REMOVED)
            removed += gone
            if gone < MAX_OLD_REMOVED:
                break
        return removed
